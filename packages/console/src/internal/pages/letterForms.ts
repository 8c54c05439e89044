/** Forms that count, park, export or remove letters. */
import type { Capabilities } from "@requeue/core/port"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import * as FormToken from "../guard/formToken.ts"
import { type Page, queryOf, type Visit } from "../visit.ts"
import { crumbs, form, forThose, type Problem, textField } from "./parts.ts"

/** The letters that a form acts on: all letters of a place, those of a cause, or one letter. */
interface Meant {
  readonly place: Place
  readonly cause?: string
  readonly letter?: string
}

/** The letters and their broker. */
export interface Held extends Meant {
  readonly capabilities: Capabilities.Capabilities
}

const fieldsOf = ({ cause, letter, place }: Meant): Readonly<Record<string, string>> => ({
  ...queryOf(place),
  ...(cause === undefined ? {} : { cause }),
  ...(letter === undefined ? {} : { letter })
})

/** Describes the effect of a browse on the letters. */
export const cost = ({ broker, uncountedBrowse }: Capabilities.Capabilities): string =>
  uncountedBrowse
    ? "A browse changes nothing. Other readers do not get the letters while it runs"
    : `${broker} counts a browse as a delivery of each letter, and hides the letters from other readers until it ends`

/** Renders the form that counts what a redrive would do. `isTold`: the page already describes the cost of a browse. */
export const planForm = (visit: Visit, held: Held, button: Html, isTold = false): Html =>
  form(
    visit,
    "plan",
    fieldsOf(held),
    html`${!held.capabilities.uncountedBrowse &&
    !isTold &&
    html`<span class="soft">A dry run counts the letters first. ${cost(held.capabilities)}.</span>`}${button}`
  )

/** Renders a form that is closed at first. */
const shut = (title: string, content: Html): Html =>
  html`<details>
    <summary>${title}…</summary>
    ${content}
  </details>`

const parkForm = (visit: Visit, meant: Meant, letters: string): Part =>
  forThose(
    visit,
    "redrive",
    shut(
      "Park",
      form(
        visit,
        "park",
        fieldsOf(meant),
        html`<span class="soft"
            >Parked letters move unchanged to a separate queue, until an operator redrives them or parks them back. To
            park letters that are parked moves them back to the dead-letter queue.</span
          >
          <button>Park ${letters}</button>`
      )
    )
  )

/** Renders the field of a purge in which the operator confirms the queue by its name. */
export const nameField = (queue: string, letters: string, problem?: Problem): Html =>
  html`<label
    >Type the queue's name to remove ${letters} for good
    ${textField("name", problem, { attributes: html`required placeholder="${queue}"` })}</label
  >`

/** Renders the form that removes letters for good. The operator must type the queue's name. */
export const purgeForm = (visit: Visit, fields: Readonly<Record<string, string>>, letters: string): Part =>
  forThose(
    visit,
    "purge",
    shut(
      "Purge",
      form(
        visit,
        "purge",
        fields,
        html`${nameField(fields["queue"] ?? "", letters)} <button class="danger">Purge ${letters}</button>`
      )
    )
  )

/** Renders the page of a purge whose form had a wrong field. It has the same form, with the error next to the field. */
export const purgeAgain = (
  visit: Visit,
  {
    letters,
    place,
    route
  }: { readonly place: Place; readonly letters: string; readonly route: "purge" | "purgeDelayed" },
  problem: Problem
): Page => {
  const hidden = [...problem.typed].filter(([name]) => name !== "name" && name !== FormToken.field)
  return {
    title: `Purge ${place.queue}`,
    body: html`${crumbs(visit, place, route === "purge" ? "deadLetters" : "delayed")}
      <h1>Purge: ${letters}</h1>
      <p>Nothing was removed.</p>
      ${form(
        visit,
        route,
        Object.fromEntries(hidden),
        html`<div class="ask">${nameField(place.queue, "these", problem)}<button class="danger">Purge</button></div>`
      )}`
  }
}

const exportForm = (visit: Visit, held: Held, letters: string): Part =>
  forThose(
    visit,
    "bodies",
    shut(
      "Export",
      form(
        visit,
        "export",
        fieldsOf(held),
        html`<button data-again>Export ${letters}</button>
          <span class="soft"
            >The file has one JSON line for each letter. A letter with hidden parts is marked, and an import refuses it.
            <span class="mono">requeue dead-letters export</span> writes whole letters.
            ${cost(held.capabilities)}.</span
          >`
      )
    )
  )

/** Renders the forms that export, park and purge letters. A single letter has only the form that parks it. */
export const letterForms = (visit: Visit, held: Held, letters: string): Part =>
  held.letter === undefined
    ? [exportForm(visit, held, letters), parkForm(visit, held, letters), purgeForm(visit, fieldsOf(held), letters)]
    : parkForm(visit, held, letters)
