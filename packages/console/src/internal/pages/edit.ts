/** The page that edits a copy of a letter, and the page that shows its differences. */
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import { jobQuery, type Page, type Visit } from "../visit.ts"
import * as Difference from "../work/difference.ts"
import * as Drafts from "../work/drafts.ts"
import type { Job } from "../work/job.ts"
import { alarm, crumbs, form, type Problem } from "./parts.ts"

/** Other edits of the same letter. */
interface Others {
  readonly editors: ReadonlyArray<Drafts.Draft>
  readonly edits: ReadonlyArray<Job>
}

const told = (visit: Visit, { edits, editors }: Others): Part => [
  ...editors.map(({ opened, operator }) =>
    alarm("Another operator edits this letter.", html`${operator} opened it ${Format.ago(opened, visit.now)}`)
  ),
  ...edits.map((job) =>
    alarm(
      "An edited copy exists already.",
      html`${job.operator} redrove a copy ${Format.ago(job.begun, visit.now)}:
        <a href="${visit.paths.to("job", jobQuery(job))}">job ${job.id}</a>`
    )
  )
]

const rows = (text: string, most: number): number => Math.min(most, Math.max(3, text.split("\n").length + 1))

const headersOf = (draft: Drafts.Draft, typed: URLSearchParams | undefined): Html => {
  if (!draft.hasHeaders) {
    return html`<p class="soft">The headers stay unchanged: a part of them is hidden, or cannot be shown.</p>`
  }
  const lines = typed?.get("headers") ?? Drafts.headerLines(draft.copy ?? draft.letter)
  return html`<label
    >Headers, one a line: <span class="mono">name: value</span>
    <textarea name="headers" class="mono" rows="${rows(lines, 12)}" spellcheck="false" autocomplete="off">
${lines}</textarea
    >
  </label>`
}

const targetsOf = ({ letter: { origin } }: Drafts.Draft, targets: ReadonlyArray<string>): Html =>
  html`<label
    >To
    <select name="to">
      ${origin !== undefined && html`<option value="">${origin.queue} (its queue)</option>`}${targets
        .filter((name) => name !== origin?.queue)
        .map((name) => html`<option value="${name}">${name}</option>`)}
    </select></label
  >`

/** Renders the form with the letter. After an error, the form has what the operator typed. */
export const editor = (
  visit: Visit,
  draft: Drafts.Draft,
  { targets, ...others }: Others & { readonly targets: ReadonlyArray<string> },
  problem?: Problem
): Page => ({
  title: `Edit ${draft.title}`,
  body: html`${crumbs(visit, draft.place)}
    <h1>Edit a copy of <span class="mono">${draft.title}</span></h1>
    ${told(visit, others)} ${problem !== undefined && alarm("Nothing was done.", problem.text)}
    <p class="soft">
      The copy keeps the id and the history of the letter, and counts as redriven. The letter stays in the queue until
      the broker reports that its copy has succeeded.
    </p>
    ${form(
      visit,
      "preview",
      { draft: draft.id },
      html`<div class="edit">
        ${headersOf(draft, problem?.typed)}
        <label
          >Body${draft.isLaidOut && ", formatted with one value a line; the copy is sent like this"}
          <textarea name="body" class="mono" rows="${rows(draft.shown, 30)}" spellcheck="false" autocomplete="off">
${problem?.typed.get("body") ?? Drafts.bodyOf(draft)}</textarea
          >
        </label>
        <div class="do">${targetsOf(draft, targets)}<button class="primary">See the difference…</button></div>
      </div>`
    )}`
})

const signs = { both: " ", old: "−", new: "+" } as const

const difference = (old: string, now: string): Html =>
  html`<pre class="panel diff" tabindex="0" role="region" aria-label="Difference">
${Difference.of(old, now).map((line) =>
      line === undefined
        ? html`<span class="soft">⋯</span>`
        : html`<span class="${line.kind}">${signs[line.kind]} ${line.text}</span>`
    )}</pre
  >`

/** Renders the differences between the copy and its letter, and the form that sends the copy. */
export const preview = (
  visit: Visit,
  draft: Drafts.Draft,
  { to, ...others }: Others & { readonly to: string | undefined }
): Page => {
  const { copy = draft.letter, letter, shown, title } = draft
  const [before, after] = [Drafts.headerLines(letter), Drafts.headerLines(copy)]
  const goal = to ?? letter.origin?.queue ?? ""
  return {
    title: `Edit ${title}`,
    body: html`${crumbs(visit, draft.place)}
      <h1>The copy of <span class="mono">${title}</span></h1>
      ${told(visit, others)}
      ${before !== after &&
      html`<h2>Headers</h2>
        ${difference(before, after)}`}
      <h2>Body</h2>
      ${shown === Drafts.bodyOf(draft) ? html`<p class="soft">Unchanged.</p>` : difference(shown, Drafts.bodyOf(draft))}
      ${form(
        visit,
        "send",
        { draft: draft.id, copy: Drafts.nameOf(draft), ...(to === undefined ? {} : { to }) },
        html`<p class="do">
          <button class="primary">Redrive the copy to ${goal}</button>
          <span class="soft">To change the copy, go back</span>
        </p>`
      )}`
  }
}
