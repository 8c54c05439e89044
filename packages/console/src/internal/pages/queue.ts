/** The page of a queue: its numbers, its configuration in words, its schedule, its plan, and what an outage would do. */
import {
  type Capabilities,
  ConsumerOptions,
  Delay,
  Feasibility,
  Plan,
  type QueueStatus,
  RetryPolicy
} from "@requeue/core"
import { Explanation } from "@requeue/core/explain"
import type { Queue } from "../../BrokerSource.ts"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { type Page, queryOf, type Visit } from "../visit.ts"
import type { Comparison } from "../work/comparison.ts"
import type { Answer } from "../work/outage.ts"
import * as Diagram from "./diagram.ts"
import * as Outage from "./outage.ts"
import { columns, remarks } from "./overview.ts"
import { alarm, facts } from "./parts.ts"
import * as Schedule from "./schedule.ts"

/** A queue, and all that is known of it. */
export interface Shown {
  readonly place: Place
  readonly queue: Queue
  /** Its numbers; `undefined` where the broker does not answer. */
  readonly status: QueueStatus.QueueStatus | undefined
  /** Why the broker does not tell, or parts of it. */
  readonly trouble: ReadonlyArray<string>
  readonly capabilities: Capabilities.Capabilities | undefined
  readonly comparison: Comparison
  readonly asked: Outage.Asked
  /** What was simulated, where somebody has asked for it. */
  readonly answer: Answer | undefined
}

const numbers = (status: QueueStatus.QueueStatus): Html => {
  const notes = remarks([status])
  return html`${facts(
    columns.map(({ isAlarming = () => false, number, show = Format.count, title }) => {
      const value = number(status)
      if (value === undefined) return [title, html`<span class="zero" title="unknown">–</span>`]
      const kind = isAlarming(status, value) ? "alarm" : value === 0 ? "zero" : "strong"
      return [title, html`<span class="${kind}">${show(value)}</span>`]
    })
  )}
  ${status.backoff !== undefined &&
  status.backoff.length > 0 &&
  html`<p>
    Due next:
    ${status.backoff.map(({ count, within }) => `${Format.count(count)} within ${Delay.format(within)}`).join(", ")}.
  </p>`}
  ${notes.length > 0 &&
  html`<ul class="remarks">
    ${notes.map((note) => html`<li>${note}</li>`)}
  </ul>`}`
}

/** Its dead-letter queues, with their numbers where they are known. */
const deadLetters = ({ paths }: Visit, { place: { broker }, queue, status }: Shown): Html => {
  const queues = RetryPolicy.deadLetterQueues(queue.retry, queue.name)
  const countOf = (name: string) => status?.dead.find((each) => each.queue === name)?.count
  return html`<p>
    ${queues.length === 0 && html`<span class="soft">It keeps no dead letters.</span>`}${queues.map((name, index) => {
      const count = countOf(name)
      return html`${index > 0 && " · "}<a href="${paths.to("deadLetters", { broker, queue: name })}">${name}</a
        >${count !== undefined &&
        html` <span class="${count > 0 ? "alarm" : "soft"}">${Format.counted(count, "letter")}</span>`}`
    })}
  </p>`
}

const words = (parts: ReadonlyArray<Explanation.Part>): Html =>
  html`<dl class="words panel">
    ${parts.map(
      ({ about, isDefault, sentences }) =>
        html`<div>
          <dt>${about}${isDefault && html`<br />by default`}</dt>
          <dd>${sentences.map((sentence) => html`<p>${sentence}</p>`)}</dd>
        </div>`
    )}
  </dl>`

const states: { readonly [S in Plan.State]: string } = {
  present: "as planned",
  missing: "missing",
  different: "different",
  unknown: "not known"
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

const objectTable = (objects: ReadonlyArray<Plan.Shown>): Html => html`<table class="panel objects">
  <thead>
    <tr>
      <th scope="col">object</th>
      <th scope="col">on the broker</th>
      <th scope="col">what</th>
      <th scope="col">details</th>
    </tr>
  </thead>
  <tbody>
    ${Plan.grouped(objects).map(objectRow)}
  </tbody>
</table>`

/** What helps where objects are not as planned. */
const remedy = (objects: ReadonlyArray<Plan.Inspected>, queue: string): Part => {
  const missing = objects.filter(({ state }) => state === "missing").length
  const different = objects.filter(({ state }) => state === "different").length
  return html`${missing > 0 &&
  alarm(
    `${Format.counted(missing, "object")} missing.`,
    html`Its first consumer makes what is missing, and so does <code>requeue create --queue ${queue}</code>.`
  )}${different > 0 &&
  alarm(
    `${Format.counted(different, "object")} with other settings.`,
    "Nothing changes an object that is there. Configure it as it is, or have it deleted when it is empty: then it is made anew."
  )}`
}

/** Requirements that the broker meets in another way than exactly, or not at all. */
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
      : html`<p><b>${about}</b> <span class="soft">${verdict === "unknown" ? "not known: " : ""}${detail}</span></p>`
  )

const differences = (visit: Visit, shown: Shown): Html => {
  const { comparison, place, queue } = shown
  const { compared, plan, trouble } = comparison
  const objects = compared?.inspection.objects ?? plan?.objects ?? []
  const asPlanned = compared?.inspection.objects.filter(({ state }) => state === "present").length ?? 0
  return html`<section aria-labelledby="differences">
    <h2 id="differences">
      What it needs on the broker
      ${compared !== undefined &&
      html`<span class="soft"
        >${asPlanned} of ${Format.counted(objects.length, "object")} as planned,
        ${Format.ago(compared.at, visit.now)}</span
      >`}
    </h2>
    ${trouble !== undefined &&
    html`${alarm("It was not compared.", trouble)}
      <p><a href="${visit.paths.to("queue", queryOf(place))}">Look again</a></p>`}
    ${compared !== undefined && remedy(compared.inspection.objects, queue.name)} ${demands(shown)}
    ${compared !== undefined && findings(compared.inspection.findings)} ${objects.length > 0 && objectTable(objects)}
  </section>`
}

const planned = ({ comparison: { compared, plan }, queue }: Shown): Part => {
  if (plan === undefined) return undefined
  const nodes = Diagram.nodesOf(plan, compared?.inspection.objects ?? plan.objects, queue.retry)
  return html`<section aria-labelledby="plan">
    <h2 id="plan">
      Its plan on ${plan.broker}
      <span class="soft">delays: ${plan.delays}${compared === undefined && ", as on the newest version"}</span>
    </h2>
    ${Diagram.diagram(plan, nodes)} ${Diagram.table(plan)}
    ${plan.notes.length > 0 &&
    html`<ul class="remarks">
      ${plan.notes.map((note) => html`<li>${note}</li>`)}
    </ul>`}
  </section>`
}

const schedule = ({ queue: { options, retry } }: Shown): Html => {
  const description = RetryPolicy.describe(retry, ConsumerOptions.resolve(options ?? {}).retryDelay)
  return html`<section aria-labelledby="schedule">
    <h2 id="schedule">Its schedule <span class="soft">${description.text}</span></h2>
    ${description.schedule.length > 0 &&
    html`${Schedule.plot(description, retry)}
      <p class="soft">${Schedule.legend(description)}</p>
      ${Schedule.table(description)}`}
  </section>`
}

/** A queue. */
export const queue = (visit: Visit, shown: Shown): Page => {
  const { answer, asked, capabilities, place, queue, status, trouble } = shown
  const lease = capabilities?.lease
  return {
    title: place.queue,
    body: html`<p class="crumbs"><a href="${visit.paths.to("overview")}">Queues</a> / ${place.broker}</p>
      <h1>
        ${place.queue}${status?.isMissing === true && html` <span class="alarm">missing</span>`}${status?.isPaused ===
          true && html` <span class="alarm">paused</span>`}
      </h1>
      ${trouble.map((text) =>
        alarm(status === undefined ? "The broker does not answer." : "A part of it does not answer.", text)
      )}
      ${status !== undefined && numbers(status)}
      <section aria-labelledby="dead">
        <h2 id="dead">Its dead letters</h2>
        ${deadLetters(visit, shown)}
      </section>
      <section aria-labelledby="words">
        <h2 id="words">What it does</h2>
        ${words(Explanation.of(queue.name, queue.options ?? { retry: queue.retry }, lease))}
      </section>
      ${schedule(shown)} ${planned(shown)} ${differences(visit, shown)} ${Outage.section(visit, place, asked, answer)}`
  }
}
