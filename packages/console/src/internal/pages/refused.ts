/** The page of a request that is not served. */
import { html } from "../html.ts"
import type { Page } from "../visit.ts"

interface Refused {
  readonly status: number
  readonly detail: string
  readonly remedy: string
}

/** Says why, and what helps. */
export const refused = ({ detail, remedy, status }: Refused): Page => ({
  title: String(status),
  body: html`<h1>${detail}</h1>
    <p>${remedy}.</p>`
})
