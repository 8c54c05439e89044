/** The form that filters the letters of a queue, and the filter in words. */
import { Metadata } from "@requeue/core/port"
import { LetterFilter } from "@requeue/operations"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { queryOf, type Visit } from "../visit.ts"
import { type Problem, textField } from "./parts.ts"

const text =
  ({ filter = {} }: Place, problem: Problem | undefined) =>
  (name: string, label: string, example: string): Html =>
    html`<label
      >${label}
      ${textField(name, problem, { value: filter[name] ?? "", attributes: html`placeholder="${example}"` })}</label
    >`

const option = (value: string, chosen: string | undefined): Html =>
  html`<option value="${value}" ${value === chosen && html`selected`}>${value}</option>`

/** Renders the form. It is closed, except after a problem: `filterWords` shows the filter below it. */
export const filterForm = ({ paths }: Visit, place: Place, problem?: Problem): Html => {
  const field = text(place, problem)
  return html`<details class="filter" ${problem !== undefined && html`open`}>
    <summary>Filter…</summary>
    <form method="get" action="${paths.to("deadLetters")}">
      ${Object.entries(queryOf({ broker: place.broker, queue: place.queue })).map(
        ([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`
      )}${field("error", "Error contains", "name or pattern")}
      <label
        >Reason
        <select name="reason">
          <option value="">any</option>
          ${Metadata.reasons.map((reason) => option(reason, place.filter?.["reason"]))}
        </select></label
      >
      ${field("since", "Dead-lettered since", "2h or 2026-03-14")} ${field("older", "Longer ago than", "30d")}
      ${field("header", "Header", "tenant=acme")} ${field("origin", "From queue", "orders")}
      ${field("id", "Id", "order-1*")}
      <button>Filter</button>
    </form>
  </details>`
}

/** Renders the filter in words, and a link to all letters. */
export const filterWords = ({ paths }: Visit, place: Place, filter: LetterFilter.LetterFilter | undefined): Part =>
  filter !== undefined &&
  html`<p>
    Only letters with: <b>${LetterFilter.describe(filter).join("; ")}</b> ·
    <a href="${paths.to("deadLetters", { broker: place.broker, queue: place.queue })}">all letters</a>
  </p>`
