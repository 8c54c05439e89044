/** Forms about letters: those that are counted, moved aside, written to a file, or removed. */
import type { Capabilities } from "@requeue/core/port"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { queryOf, type Visit } from "../visit.ts"
import { form, forThose } from "./parts.ts"

/** The letters that a form is about: all of a place, those of a cause, or one. */
interface Meant {
  readonly place: Place
  readonly cause?: string
  readonly letter?: string
}

/** The letters, and the broker that has them. */
export interface Held extends Meant {
  readonly capabilities: Capabilities.Capabilities
}

const fieldsOf = ({ cause, letter, place }: Meant): Readonly<Record<string, string>> => ({
  ...queryOf(place),
  ...(cause === undefined ? {} : { cause }),
  ...(letter === undefined ? {} : { letter })
})

/** The effect of a look on the letters, in a sentence that stands before the button. */
export const cost = ({ broker, uncountedBrowse }: Capabilities.Capabilities): string =>
  uncountedBrowse
    ? "A look changes nothing; while it lasts, nobody else gets the letters"
    : `${broker} counts a look as a delivery of each letter, and gives them to nobody else until it ends`

/** The form that counts what a redrive would do. Where that costs something, it says so. */
export const planForm = (visit: Visit, held: Held, button: Html): Html =>
  form(
    visit,
    "plan",
    fieldsOf(held),
    html`${!held.capabilities.uncountedBrowse &&
    html`<span class="soft">It is counted first: ${cost(held.capabilities)}.</span>`}${button}`
  )

/** A form that is shut. */
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
            >Parked letters are in a queue of their own, as they are, until somebody redrives them, or parks them back.
            Those that are parked already go back among the dead letters.</span
          >
          <button>Park ${letters}</button>`
      )
    )
  )

/** The form that removes letters for good. It needs the queue's name. */
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
        html`<label
            >Type the queue's name to remove ${letters} for good
            <input name="name" required autocomplete="off" placeholder="${fields["queue"]}"
          /></label>
          <button class="danger">Purge ${letters}</button>`
      )
    )
  )

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
            >As lines of JSON, without what is hidden from you: a letter of which something is hidden says so, and no
            import takes it. <span class="mono">requeue dead-letters export</span> writes all as they are.
            ${cost(held.capabilities)}.</span
          >`
      )
    )
  )

/** Forms that write letters to a file, move them aside, or remove them. Those of one letter only move it. */
export const letterForms = (visit: Visit, held: Held, letters: string): Part =>
  held.letter === undefined
    ? [exportForm(visit, held, letters), parkForm(visit, held, letters), purgeForm(visit, fieldsOf(held), letters)]
    : parkForm(visit, held, letters)
