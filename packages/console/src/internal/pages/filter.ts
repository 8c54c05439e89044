/** The form that asks for some of the letters of a queue, and the filter in words. */
import { Metadata } from "@requeue/core/port"
import { LetterFilter } from "@requeue/operations"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { queryOf, type Visit } from "../visit.ts"

const text = ({ filter = {} }: Place, name: string, label: string, example: string): Html =>
  html`<label
    >${label} <input name="${name}" value="${filter[name] ?? ""}" placeholder="${example}" autocomplete="off"
  /></label>`

const option = (value: string, chosen: string | undefined): Html =>
  html`<option value="${value}" ${value === chosen && html`selected`}>${value}</option>`

/** The form, whose answer has an address that can be kept. It is shut: a filter that is given stands below it in words. */
export const filterForm = ({ paths }: Visit, place: Place): Html =>
  html`<details class="filter">
    <summary>Filter…</summary>
    <form method="get" action="${paths.to("deadLetters")}">
      ${Object.entries(queryOf({ broker: place.broker, queue: place.queue })).map(
        ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`
      )}${text(place, "error", "Error has", "name or pattern")}
      <label
        >Reason
        <select name="reason">
          <option value="">any</option>
          ${Metadata.reasons.map((reason) => option(reason, place.filter?.["reason"]))}
        </select></label
      >
      ${text(place, "since", "Given up since", "2h or 2026-03-14")} ${text(place, "older", "Longer ago than", "30d")}
      ${text(place, "header", "Header", "tenant=acme")} ${text(place, "origin", "From queue", "orders")}
      ${text(place, "id", "Id", "order-1*")}
      <button>Filter</button>
    </form>
  </details>`

/** The filter in words, and the way back to all letters. */
export const filterWords = ({ paths }: Visit, place: Place, filter: LetterFilter.LetterFilter | undefined): Part =>
  filter !== undefined &&
  html`<p>
    Only letters with: <b>${LetterFilter.describe(filter).join("; ")}</b> ·
    <a href="${paths.to("deadLetters", { broker: place.broker, queue: place.queue })}">all letters</a>
  </p>`
