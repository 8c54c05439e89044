/** The overview: the queues of all brokers. */
import { Delay } from "@requeue/core"
import { QueueStatus } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { type Page, queryOf, type Visit } from "../visit.ts"
import type { BrokerView, QueueView } from "../work/overview.ts"
import { alarm } from "./parts.ts"
import { held } from "./report.ts"
import { spark } from "./spark.ts"

type Status = QueueStatus.QueueStatus

interface Column {
  readonly field: QueueStatus.Field
  readonly title: string
  /** Returns the number; `undefined` if the broker does not report it. */
  readonly number: (status: Status) => number | undefined
  readonly show?: (value: number) => string
  /** Whether the number needs attention. */
  readonly isAlarming?: (status: Status, value: number) => boolean
}

const isSome = (_: Status, value: number): boolean => value > 0

/** Whether messages wait, and the queue has no consumer. */
const isLeft = ({ ready = 0 }: Status, consumers: number): boolean => consumers === 0 && ready > 0

/** The numbers of a queue. */
export const columns: ReadonlyArray<Column> = [
  { field: "ready", title: "ready", number: ({ ready }) => ready },
  { field: "inFlight", title: "in flight", number: ({ inFlight }) => inFlight },
  { field: "delayed", title: "in backoff", number: ({ delayed }) => delayed },
  { field: "dead", title: "dead", number: QueueStatus.deadOf, isAlarming: isSome },
  { field: "undelivered", title: "undelivered", number: ({ undelivered }) => undelivered, isAlarming: isSome },
  { field: "quarantined", title: "quarantined", number: () => undefined },
  {
    field: "oldest",
    title: "oldest",
    number: ({ oldest }) => oldest,
    show: (age) => (age === 0 ? "none" : Delay.format(age))
  },
  { field: "consumers", title: "consumers", number: ({ consumers }) => consumers, isAlarming: isLeft }
]

const soonest = ({ backoff = [] }: Status): Part =>
  backoff[0] !== undefined &&
  html` <span class="soft">${Format.count(backoff[0].count)} in ${Delay.format(backoff[0].within)}</span>`

/** Renders the number of messages in backoff, as a link to these messages. */
const delayed = (visit: Visit, place: Place, text: string): Html =>
  html`<a href="${visit.paths.to("delayed", queryOf(place))}">${text}</a>`

const linked = (visit: Visit, broker: string, status: Status, text: string): Part =>
  status.dead.length === 1
    ? html`<a href="${visit.paths.to("deadLetters", { broker, queue: status.dead[0]!.queue })}">${text}</a>`
    : text

const cell = (visit: Visit, place: Place, { samples, status }: QueueView, column: Column): Html => {
  const { field, isAlarming = () => false, number, show = Format.count, title } = column
  const value = status && number(status)
  const line = (field === "ready" || field === "dead") && spark(samples, field)
  if (status === undefined || value === undefined) {
    return html`<td class="n zero" data-label="${title}">${line}<span title="unknown">–</span></td>`
  }
  const isMissing = field === "dead" && status.dead.length > 0 && status.dead.every((each) => each.isMissing)
  const text = isMissing ? "missing" : `${show(value)}${QueueStatus.remarksOf(status)[field] === undefined ? "" : "*"}`
  const kind = isAlarming(status, value) ? "n alarm" : value === 0 ? "n zero" : "n"
  const leading = { dead: () => linked(visit, place.broker, status, text), delayed: () => delayed(visit, place, text) }
  const content = field === "dead" || field === "delayed" ? leading[field]() : text
  const more = { dead: () => heldOf(status), delayed: () => soonest(status) }
  const all = [line, content, (field === "dead" || field === "delayed") && more[field]()]
  return html`<td class="${kind}" data-label="${title}">${all}</td>`
}

/** Renders the number of letters that readers hold, in all dead-letter queues of a queue. */
const heldOf = ({ dead }: Status): Part => {
  const all = dead.filter(({ isHeld }) => isHeld)
  const isCounted = all.every((each) => each.held !== undefined)
  const number = all.reduce((sum, each) => sum + (each.held ?? 0), 0)
  return held({ held: isCounted ? number : undefined, isHeld: all.length > 0 })
}

/** Renders the dead-letter queues of a queue that has several. */
const several = (visit: Visit, broker: string, dead: Status["dead"] = []): Part =>
  dead.length > 1 &&
  dead.map(
    ({ count, isMissing, queue }) =>
      html` <a class="soft" href="${visit.paths.to("deadLetters", queryOf({ broker, queue }))}"
        >${queue} ${isMissing ? "missing" : count === undefined ? "–" : Format.count(count)}</a
      >`
  )

const write = (visit: Visit, broker: string, view: QueueView, id: string): Html => {
  const { queue, status } = view
  return html`<tr id="${id}">
    <th scope="row" class="wrap">
      <a href="${visit.paths.to("queue", { broker, queue })}">${queue}</a>${status?.isMissing === true &&
      html` <span class="alarm">missing</span>`}${status?.isPaused === true &&
      html` <span class="alarm">paused</span>`}${status?.blocked !== undefined &&
      html` <span class="soft"
        >${Format.count(status.blocked)} blocked by earlier messages of their keys</span
      >`}${several(visit, broker, status?.dead)}
    </th>
    ${columns.map((column) => cell(visit, { broker, queue }, view, column))}
  </tr>`
}

/** Rendered rows, which all open pages share. A row changes only when its broker answers. */
const written = new WeakMap<QueueView, Html>()

const row = (visit: Visit, broker: string, view: QueueView, id: string): Html => {
  const row = written.get(view) ?? write(visit, broker, view, id)
  written.set(view, row)
  return row
}

/** Renders each remark once, with the mark of the numbers that it is about. */
export const remarks = (statuses: ReadonlyArray<Status | undefined>): ReadonlyArray<string> => {
  const known = statuses
    .flatMap((status) => status ?? [])
    .map((status) => ({ status, of: QueueStatus.remarksOf(status) }))
  const all = columns.flatMap(({ field, number, title }) =>
    known.flatMap(({ of: { [field]: remark }, status }) =>
      remark === undefined ? [] : [`${number(status) === undefined ? "–" : "*"} ${title}: ${remark}`]
    )
  )
  return [...new Set(all)]
}

/** Milliseconds after which an answer shows its age. While a page is open, most answers are newer. */
const fresh = 8000

/** Describes the number of queues, the age of their oldest answer, and how many have not answered. */
const known = ({ paths, now }: Visit, { asOf, queues, trouble }: BrokerView): Html => {
  const silent = queues.filter(({ status }) => status === undefined).length
  return html`<span class="soft"
    >${Format.counted(queues.length, "queue")}${asOf !== undefined &&
    now - asOf > fresh &&
    html`, the oldest answer ${Format.ago(asOf, now)}`}${trouble === undefined &&
    silent > 0 &&
    html`, ${Format.count(silent)} have not answered yet: <a href="${paths.to("overview")}">reload</a>`}</span
  >`
}

/** Renders a broker's name and its state. */
const head = (visit: Visit, view: BrokerView, id: string): Html => {
  const { missing, name, trouble, troubleAt = visit.now } = view
  const title =
    visit.now - troubleAt > fresh
      ? html`The broker did not answer ${Format.ago(troubleAt, visit.now)}.`
      : "The broker does not answer."
  return html`<div id="${id}">
    <h2 id="broker-${name}">
      <i class="${trouble === undefined ? "dot" : "dot bad"}"></i>${name} ${known(visit, view)}
    </h2>
    ${trouble !== undefined && alarm(title, trouble)}
    ${missing.map((text) => alarm("A part of the broker does not answer.", text))}
  </div>`
}

const notes = (brokers: ReadonlyArray<BrokerView>, id: string): Html =>
  html`<ul class="remarks" id="${id}">
    ${remarks(brokers.flatMap(({ queues }) => queues.map(({ status }) => status))).map(
      (note) => html`<li>${note}</li>`
    )}
  </ul>`

/** The id of the remarks. */
const notesId = "remarks"

const idOf = (broker: number, queue?: number): string => (queue === undefined ? `b${broker}` : `b${broker}q${queue}`)

const broker = (visit: Visit, view: BrokerView, index: number): Html =>
  html`<section aria-labelledby="broker-${view.name}">
    ${head(visit, view, idOf(index))}
    <table class="panel queues">
      <thead>
        <tr>
          <th scope="col">queue</th>
          ${columns.map(({ title }) => html`<th scope="col" class="n">${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${view.queues.map((each, at) => row(visit, view.name, each, idOf(index, at)))}
      </tbody>
    </table>
  </section>`

/** Renders the changing parts of the overview, by their element ids. */
export const parts = (visit: Visit, brokers: ReadonlyArray<BrokerView>): ReadonlyMap<string, Html> =>
  new Map([
    ...brokers.flatMap((view, index) => [
      [idOf(index), head(visit, view, idOf(index))] as const,
      ...view.queues.map((each, at) => [idOf(index, at), row(visit, view.name, each, idOf(index, at))] as const)
    ]),
    [notesId, notes(brokers, notesId)]
  ])

/** Renders the overview. */
export const overview = (visit: Visit, brokers: ReadonlyArray<BrokerView>): Page => ({
  title: "Queues",
  body: html`<h1 class="unseen">Queues</h1>
    <div data-live="${visit.paths.to("liveOverview")}">
      ${brokers.map((each, index) => broker(visit, each, index))} ${notes(brokers, notesId)}
    </div>`
})
