/** The page of events, the newest first. */
import * as Format from "../format.ts"
import { html, type Html } from "../html.ts"
import type { Page, Visit } from "../visit.ts"
import type { Kind, Told } from "../work/events.ts"

/** The events that an operator chose. */
export interface Choice {
  readonly broker: string | undefined
  readonly queue: string | undefined
  readonly kind: Kind | "bad" | undefined
  /** The number of the last event to show; `undefined` to show new events as well. */
  readonly until: number | undefined
}

/** The largest number of events on the page. */
const most = 200

const kinds: ReadonlyArray<readonly [kind: Kind | "bad", name: string]> = [
  ["bad", "alarms"],
  ["DeadLettered", "dead letters"],
  ["Dropped", "dropped"],
  ["AttemptFailed", "failed attempts"],
  ["RetryScheduled", "retries"],
  ["BackoffEntered", "pauses"],
  ["BackoffLeft", "ends of pauses"],
  ["Quarantined", "quarantine"],
  ["SettleFailed", "refused settlements"],
  ["LeaseLost", "lost leases"],
  ["Released", "returned"],
  ["CallIgnored", "late calls"],
  ["Operation", "operations"],
  ["Broker", "brokers"]
]

/** Returns the kind of event that a field names. */
export const kindOf = (text: string | null): Choice["kind"] => kinds.find(([kind]) => kind === text)?.[0]

/** Returns the query of a choice. */
const queryOf = ({ broker, kind, queue, until }: Choice): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries({ of: placeOf(broker, queue), kind, until: until?.toString() }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const]
    )
  )

/** Returns a broker, or a queue of it, as the value of a field. */
export const placeOf = (broker: string | undefined, queue: string | undefined): string | undefined =>
  broker === undefined ? undefined : JSON.stringify(queue === undefined ? [broker] : [broker, queue])

/** Returns the chosen events. */
export const chosen = (all: ReadonlyArray<Told>, { broker, kind, queue, until }: Choice): ReadonlyArray<Told> =>
  all
    .filter(
      (told) =>
        (until === undefined || told.seq <= until) &&
        (broker === undefined || told.broker === broker) &&
        (queue === undefined || told.queue === queue) &&
        (kind === undefined || (kind === "bad" ? told.isBad : told.kind === kind))
    )
    .slice(0, most)

const row = ({ at, broker, error, id, isBad, queue, words }: Told): Html => {
  const iso = new Date(at).toISOString()
  const text = [error?.name, error?.message].filter(Boolean).join(": ")
  return html`<tr>
    <td data-label="time"><time datetime="${iso}" title="${iso}">${iso.slice(11, 19)}</time></td>
    <th scope="row" class="wrap">
      ${queue ?? broker} ${queue !== undefined && html`<span class="soft">${broker}</span>`}
    </th>
    <td class="wrap" data-label="event">${isBad ? html`<span class="alarm">${words}</span>` : words}</td>
    <td class="wrap" data-label="error">${text}</td>
    <td class="wrap mono" data-label="message">${id ?? ""}</td>
  </tr>`
}

/** Renders the table of events, which changes while events arrive. */
export const table = (shown: ReadonlyArray<Told>): Html =>
  shown.length === 0
    ? html`<p class="soft">No events yet.</p>`
    : html`<table class="panel events">
        <thead>
          <tr>
            <th scope="col">UTC</th>
            <th scope="col">queue</th>
            <th scope="col">event</th>
            <th scope="col">error</th>
            <th scope="col">message</th>
          </tr>
        </thead>
        <tbody>
          ${shown.map(row)}
        </tbody>
      </table>`

const option = (value: string, text: string, current: string | undefined): Html =>
  html`<option value="${value}" ${value === (current ?? "") && html` selected`}>${text}</option>`

/** The content of the page of events. */
export interface Shown {
  readonly choice: Choice
  readonly shown: ReadonlyArray<Told>
  readonly last: number
  /** Whether consumers of this process report their events. */
  readonly isFed: boolean
  readonly brokers: ReadonlyArray<{ readonly name: string; readonly queues: ReadonlyArray<{ readonly name: string }> }>
}

const filters = (visit: Visit, { brokers, choice }: Shown): Html => {
  const current = placeOf(choice.broker, choice.queue)
  return html`<form method="get" action="${visit.paths.to("events")}">
    <label
      ><span class="unseen">Queue</span
      ><select name="of">
        ${option("", "every queue", current)}${brokers.flatMap(({ name, queues }) => [
          option(placeOf(name, undefined)!, name, current),
          ...queues.map((queue) => option(placeOf(name, queue.name)!, `${name} / ${queue.name}`, current))
        ])}
      </select></label
    >
    <label
      ><span class="unseen">Kind</span
      ><select name="kind">
        ${option("", "every event", choice.kind)}${kinds.map(([kind, name]) => option(kind, name, choice.kind))}
      </select></label
    >
    <button>Show</button>
  </form>`
}

/** Renders the page of events. */
export const events = (visit: Visit, all: Shown): Page => {
  const { choice, isFed, last, shown } = all
  const isPaused = choice.until !== undefined
  const { paths } = visit
  const goOn = html`<a href="${paths.to("events", queryOf({ ...choice, until: undefined }))}">Continue</a>`
  const pause = html`<a href="${paths.to("events", queryOf({ ...choice, until: last }))}">Pause</a>`
  const source = isFed
    ? "From consumers in this process, from operators, and from changes in the brokers' answers"
    : "From operators, and from changes in the brokers' answers. No consumer in this process reports events, so retries and their errors are missing"
  return {
    title: "Events",
    body: html`<div class="head">
        <div>
          <h1>Events ${isPaused && html`<span class="soft">paused</span>`}</h1>
          <p class="soft">
            ${source}. While this page is open, the console asks brokers every 5 s. It shows the newest
            ${Format.count(most)} of at most 1,000 events; messages that succeed have none.${
              !isPaused && html`<noscript> Without script, reload the page to see new events.</noscript>`
            }
          </p>
        </div>
        <div class="do">${filters(visit, all)}${isPaused ? goOn : pause}</div>
      </div>
      <div${!isPaused && html` data-live="${paths.to("liveEvents", queryOf(choice))}"`}>${table(shown)}</div>`
  }
}
