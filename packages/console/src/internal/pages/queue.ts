/** The page of a queue: its numbers, its configuration in words, its schedule, its plan, and what an outage would do. */
import { Delay, RetryPolicy } from "@requeue/core"
import { ConsumerOptions } from "@requeue/core/port"
import type { QueueStatus } from "@requeue/operations"
import { Explanation } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Page, Visit } from "../visit.ts"
import type { Result } from "../work/outage.ts"
import * as Diagram from "./diagram.ts"
import * as Differences from "./differences.ts"
import * as Outage from "./outage.ts"
import { columns, remarks } from "./overview.ts"
import { alarm, facts } from "./parts.ts"
import { held, missing } from "./report.ts"
import * as Schedule from "./schedule.ts"

/** A queue and what is known about it. */
export interface Shown extends Differences.Shown {
  /** The numbers of the queue; `undefined` if the broker does not answer. */
  readonly status: QueueStatus.QueueStatus | undefined
  /** Why the broker, or a part of it, does not answer; empty if all parts answer. */
  readonly trouble: ReadonlyArray<string>
  readonly asked: Outage.Asked
  /** The result of a simulated outage; `undefined` if the address asks for none. */
  readonly answer: Result | undefined
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

/** Renders the dead-letter queues of the queue, and their counts. */
const deadLetters = ({ paths }: Visit, { place: { broker }, queue, status }: Shown): Html => {
  const queues = RetryPolicy.deadLetterQueues(queue.retry, queue.name)
  const letters = (name: string): Part => {
    const dead = status?.dead.find((each) => each.queue === name)
    if (dead?.isMissing === true) return html` ${missing()}`
    return (
      dead?.count !== undefined &&
      html` <span class="${dead.count > 0 ? "alarm" : "soft"}">${Format.counted(dead.count, "letter")}</span>${held(
          dead
        )}`
    )
  }
  return html`<p>
    ${queues.length === 0 && html`<span class="soft">Its policy keeps no dead letters.</span>`}${queues.map(
      (name, index) =>
        html`${index > 0 && " · "}<a href="${paths.to("deadLetters", { broker, queue: name })}">${name}</a>${letters(
            name
          )}`
    )}
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

const planned = ({ comparison: { compared, plan }, queue }: Shown): Part => {
  if (plan === undefined) return undefined
  const nodes = Diagram.nodesOf(plan, compared?.inspection.objects ?? plan.objects, queue.retry)
  return html`<section class="part" aria-labelledby="plan">
    <h2 id="plan">
      Its plan on ${plan.broker}
      <span class="soft"
        >delays: ${plan.delays}${compared === undefined && ", as on the newest version of the broker"}</span
      >
    </h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Diagram of the plan">
      ${Diagram.diagram(plan, nodes)}
    </div>
    ${Diagram.table(plan)}
    ${plan.notes.length > 0 &&
    html`<ul class="remarks">
      ${plan.notes.map((note) => html`<li>${note}</li>`)}
    </ul>`}
  </section>`
}

const schedule = ({ queue: { options, retry } }: Shown): Html => {
  const description = RetryPolicy.describe(retry, ConsumerOptions.resolve(options ?? {}).retryDelay)
  return html`<section class="part" aria-labelledby="schedule">
    <h2 id="schedule">Its schedule <span class="soft">${description.text}</span></h2>
    ${description.schedule.length > 0 &&
    html`${Schedule.plot(description, retry)}
      <p class="soft">${Schedule.legend(description)}</p>
      ${Schedule.table(description)}`}
  </section>`
}

/** Renders the page of a queue. */
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
        alarm(status === undefined ? "The broker does not answer." : "A part of the broker does not answer.", text)
      )}
      ${status !== undefined && numbers(status)}
      <section class="part" aria-labelledby="dead">
        <h2 id="dead">Its dead letters</h2>
        ${deadLetters(visit, shown)}
      </section>
      <div class="two">
        <section class="part" aria-labelledby="words">
          <h2 id="words">What it does</h2>
          ${words(Explanation.of(queue.name, queue.options ?? { retry: queue.retry }, lease))}
        </section>
        <div>${schedule(shown)} ${planned(shown)}</div>
      </div>
      ${Differences.section(visit, shown)} ${Outage.section(visit, place, asked, answer)}`
  }
}
