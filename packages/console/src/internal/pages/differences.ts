/** Renders the objects that a queue needs on its broker, their states, and the remedy if they differ from the plan. */
import { type Capabilities, ConsumerOptions, Feasibility, Plan } from "@requeue/core/port"
import type { Queue } from "../../BrokerSource.ts"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { queryOf, type Visit } from "../visit.ts"
import type { Comparison } from "../work/comparison.ts"
import { alarm } from "./parts.ts"

/** A queue compared with its broker. */
export interface Shown {
  readonly place: Place
  readonly queue: Queue
  readonly capabilities: Capabilities.Capabilities | undefined
  readonly comparison: Comparison
}

const states: { readonly [S in Plan.State]: string } = {
  present: "as planned",
  missing: "missing",
  different: "different",
  unknown: "unknown"
}

const isBad = (state: Plan.State | undefined): boolean => state === "missing" || state === "different"

const objectRow = ({ details, kind, name, state, why }: Plan.Shown): Html => html`<tr>
  <th scope="row" class="wrap mono">${name}</th>
  <td class="${isBad(state) ? "alarm" : "soft"}" data-label="on the broker">
    ${state === undefined ? "–" : states[state]}
  </td>
  <td data-label="what">${kind}</td>
  <td class="wrap soft" data-label="details">${[details, why].filter(Boolean).join("; ") || "–"}</td>
</tr>`

const objectTable = (objects: ReadonlyArray<Plan.Shown>): Part =>
  objects.length > 0 &&
  html`<table class="panel objects">
    <thead>
      <tr>
        <th scope="col">object</th>
        <th scope="col">on the broker</th>
        <th scope="col">what</th>
        <th scope="col">details</th>
      </tr>
    </thead>
    <tbody>
      ${objects.map(objectRow)}
    </tbody>
  </table>`

/** Renders the objects in two tables. Objects that need attention are visible; the others are in a part that opens. */
const objectTables = (objects: ReadonlyArray<Plan.Shown>): Part => {
  const all = Plan.grouped(objects)
  return html`${objectTable(all.filter(({ state }) => isBad(state)))}${all.length > 0 &&
  html`<details class="table">
    <summary>All objects of the queue</summary>
    ${objectTable(all)}
  </details>`}`
}

/** Describes the number of objects that are as planned. */
const summary = (objects: ReadonlyArray<Plan.Inspected>): string => {
  const count = (wanted: Plan.State) => objects.filter(({ state }) => state === wanted).length
  const unknown = count("unknown")
  const told = `${Format.count(count("present"))} of ${Format.counted(objects.length, "object")} as planned`
  return unknown === 0 ? told : `${told}, ${Format.count(unknown)} unknown`
}

/** Renders the remedy if objects are not as planned. */
const remedy = (objects: ReadonlyArray<Plan.Inspected>, queue: string): Part => {
  const missing = objects.filter(({ state }) => state === "missing").length
  const different = objects.filter(({ state }) => state === "different").length
  return html`${missing > 0 &&
  alarm(
    `${Format.counted(missing, "object")} missing.`,
    html`The first consumer of the queue creates missing objects. Or run <code>requeue create --queue ${queue}</code>.`
  )}${different > 0 &&
  alarm(
    `${Format.counted(different, "object")} with other settings.`,
    "Requeue never changes an existing object. Change the configuration, or delete the object when it is empty: then the consumer creates it again."
  )}`
}

/** Renders the requirements that the broker meets only in part, or not at all. */
const demands = ({ capabilities, queue }: Shown): ReadonlyArray<Html> => {
  if (capabilities === undefined) return []
  const resolved = ConsumerOptions.resolve(queue.options ?? { retry: queue.retry }, capabilities.lease)
  return Feasibility.check(resolved, capabilities, queue.name).flatMap(({ field, support }) => {
    const told = Feasibility.describe(support)
    if (told.support === "exact") return []
    const text = `${told.support}: ${told.detail}`
    return [told.support === "impossible" ? alarm(field, text) : html`<p><b>${field}</b> ${text}.</p>`]
  })
}

const findings = (found: ReadonlyArray<Plan.Finding>): ReadonlyArray<Html> =>
  found.map(({ about, detail, verdict }) =>
    verdict === "bad"
      ? alarm(about, detail)
      : html`<p><b>${about}</b> <span class="soft">${verdict === "unknown" ? "unknown: " : ""}${detail}</span></p>`
  )

/** Renders the section of a queue's page. */
export const section = (visit: Visit, shown: Shown): Html => {
  const { comparison, place, queue } = shown
  const { compared, plan, refusal, trouble } = comparison
  return html`<section class="part" aria-labelledby="differences">
    <h2 id="differences">
      Its objects on the broker
      ${compared !== undefined &&
      html`<span class="soft">${summary(compared.inspection.objects)}, ${Format.ago(compared.at, visit.now)}</span>`}
    </h2>
    ${trouble !== undefined &&
    html`${alarm("The queue was not compared with its broker.", trouble)}
      <p><a href="${visit.paths.to("queue", queryOf(place))}">Try again</a></p>`}
    ${refusal !== undefined && alarm("This broker cannot have the queue.", refusal)}
    ${compared !== undefined && remedy(compared.inspection.objects, queue.name)} ${demands(shown)}
    ${compared !== undefined && findings(compared.inspection.findings)}
    ${objectTables(compared?.inspection.objects ?? plan?.objects ?? [])}
  </section>`
}
