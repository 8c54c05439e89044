/** Parts that several pages use. */
import type { Action } from "../../Authorization.ts"
import * as FormToken from "../guard/formToken.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place, routes } from "../paths.ts"
import { queryOf, type Visit } from "../visit.ts"

/** Renders links to the overview, and to the dead letters or another page of a queue. */
export const crumbs = (visit: Visit, place: Place, route: "deadLetters" | "delayed" = "deadLetters"): Html =>
  html`<p class="crumbs">
    <a href="${visit.paths.to("overview")}">Queues</a> / ${place.broker} /
    <a href="${visit.paths.to(route, queryOf(place))}">${place.queue}</a>${place.filter !== undefined && " (filtered)"}
  </p>`

/** Renders a form with hidden fields. */
export const form = (
  { paths, token }: Visit,
  route: keyof typeof routes,
  fields: Readonly<Record<string, string>>,
  content: Part
): Html => html`<form method="post" action="${paths.to(route)}">
  <input type="hidden" name="${FormToken.field}" value="${token}" />${Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`
  )}${content}
</form>`

/** Renders a part only for operators who may do the action. */
export const forThose = ({ may }: Visit, action: Action, part: Part): Part => may.has(action) && part

/** Renders a remark that needs attention. */
export const alarm = (title: Part, text: Part): Html => html`<p class="note"><b>${title}</b> <span>${text}</span></p>`

/** A form field that was wrong, and what the operator typed into the fields of the form. */
export interface Problem {
  readonly field: string
  readonly text: string
  readonly typed: URLSearchParams
}

/**
 * Renders a text field. After a problem, the field has what the operator typed, and the wrong field shows the error.
 */
export const textField = (
  name: string,
  problem: Problem | undefined,
  { attributes, value = "" }: { readonly value?: string; readonly attributes?: Part }
): Part => {
  const isWrong = problem?.field === name
  const shown = problem?.typed.get(name) ?? value
  return [
    html`<input
      name="${name}"
      value="${shown}"
      autocomplete="off"
      ${attributes}
      ${isWrong && html`aria-invalid="true" aria-describedby="wrong-${name}" autofocus`}
    />`,
    isWrong && html` <span class="alarm" id="wrong-${name}">${problem.text}</span>`
  ]
}

/** Renders a list of names and values. */
export const facts = (entries: ReadonlyArray<readonly [name: string, value: Part]>): Html =>
  html`<dl>
    ${entries.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`
    )}
  </dl>`

/** Renders a part of a whole as a bar. */
export const bar = (part: number, whole: number): Html => {
  const width = whole === 0 ? 0 : Math.max(part > 0 ? 1 : 0, Math.round((100 * part) / whole))
  return html`<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
    <rect class="rest" width="100" height="6" />
    <rect class="part" width="${width}" height="6" />
  </svg>`
}
