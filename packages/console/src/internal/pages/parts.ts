/** Parts that pages have in common. */
import type { Action } from "../../Authorization.ts"
import * as FormToken from "../guard/formToken.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Visit } from "../visit.ts"
import type { routes } from "../paths.ts"

/** The fields of a form that nobody sees, and what is between its tags. */
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

/** A part that only those see who may do it. */
export const forThose = ({ may }: Visit, action: Action, part: Part): Part => may.has(action) && part

/** A remark that asks for a person. */
export const alarm = (title: Part, text: Part): Html => html`<p class="note"><b>${title}</b> <span>${text}</span></p>`

/** A list of names and values. */
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

/** A bar of a part of a whole. */
export const bar = (part: number, whole: number): Html => {
  const width = whole === 0 ? 0 : Math.max(part > 0 ? 1 : 0, Math.round((100 * part) / whole))
  return html`<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
    <rect class="rest" width="100" height="6" />
    <rect class="part" width="${width}" height="6" />
  </svg>`
}
