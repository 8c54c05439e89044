/** The page of a refused request. */
import { html } from "../html.ts"
import { jobQuery, type Page, type Visit } from "../visit.ts"

interface Refused {
  readonly status: number
  readonly detail: string
  readonly remedy: string
  readonly job?: string
}

/** Shows the reason and the remedy, and a link to the job that is in the way. */
export const refused = ({ paths }: Visit, { detail, job, remedy, status }: Refused): Page => ({
  title: String(status),
  body: html`<h1>${detail}</h1>
    <p>${remedy}.</p>
    ${job !== undefined && html`<p><a href="${paths.to("job", jobQuery({ id: job }))}">Open job ${job}</a></p>`}`
})
