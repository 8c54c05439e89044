/** The page of delayed messages: retries and scheduled deliveries. */
import { Delay } from "@requeue/core"
import { type Capabilities } from "@requeue/core/port"
import type { DeadLetters, QueueStatus } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { type Page, queryOf, type Visit } from "../visit.ts"
import * as CauseId from "../work/causeId.ts"
import * as Delayed from "../work/delayed.ts"
import { nameField } from "./letterForms.ts"
import { alarm, facts, form, forThose } from "./parts.ts"

/** A queue and what is known about its delayed messages. */
export interface Shown {
  readonly place: Place
  readonly status: QueueStatus.QueueStatus
  readonly capabilities: Capabilities.Capabilities
  /** The result of a browse; `undefined` if the operator has not asked for one. */
  readonly found: Delayed.Found | undefined
}

/** Describes the common error of messages in words. */
export const titleOf = ({ pattern }: DeadLetters.Cause): string => pattern || "no failed attempt yet"

/** Renders the time until a message is due, to the second. */
const dueIn = (due: number | undefined, now: number): Html | string => {
  if (due === undefined) return "–"
  const left = Math.ceil((due - now) / 1000) * 1000
  const iso = new Date(due).toISOString()
  return html`<time datetime="${iso}" title="${iso}">${left <= 0 ? "now" : `in ${Delay.format(left)}`}</time>`
}

const remark = (text: string | undefined): Part => text !== undefined && html` <span class="soft">${text}</span>`

/** Renders the numbers that need no browse. */
const numbers = ({ status: { backoff = [], delayed, remarks } }: Shown): Html =>
  facts([
    ["waiting", html`${delayed === undefined ? "–" : Format.count(delayed)}${remark(remarks.delayed)}`],
    ...backoff
      .slice(0, 8)
      .map(({ count, within }) => [`due within ${Delay.format(within)}`, Format.count(count)] as const),
    ...(backoff.length === 0 && delayed !== 0 ? [["due", html`–${remark(remarks.backoff)}`] as const] : [])
  ])

/** Describes the effect of a browse. */
const cost = ({ broker, uncountedBrowse }: Capabilities.Capabilities): string =>
  uncountedBrowse
    ? "A browse delivers nothing. A message that becomes due meanwhile is late until the browse ends"
    : `${broker} counts a browse as a return of each message. A message that becomes due meanwhile is late until the browse ends`

const lookForm = (visit: Visit, { capabilities, found, place }: Shown): Html =>
  form(
    visit,
    "delayed",
    queryOf(place),
    html`<span class="soft">${cost(capabilities)}.</span>
      <button${found === undefined && html` class="primary"`}>${found === undefined ? "Browse" : "Browse again"}</button>`
  )

const headersOf = (headers: Delayed.Waiting["headers"]): Part => {
  const all = Object.entries(headers)
  return (
    all.length > 0 &&
    html`<details class="own">
      <summary>${Format.counted(all.length, "header")}</summary>
      <div class="mono">
        ${all.map(([name, value]) => html`<div><span class="soft">${name}:</span> ${value}</div>`)}
      </div>
    </details>`
  )
}

const row = (visit: Visit, { attempt, due, error, headers, id, publishedAt }: Delayed.Waiting): Html => html`<tr>
  <th scope="row" class="wrap"><span class="mono">${id}</span>${headersOf(headers)}</th>
  <td class="wrap" data-label="last error">${error ?? html`<span class="zero">none</span>`}</td>
  <td class="n" data-label="next attempt">${attempt}</td>
  <td class="n" data-label="due">${dueIn(due, visit.now)}</td>
  <td class="n" data-label="published">${Format.ago(publishedAt, visit.now)}</td>
</tr>`

const messagesOf = (visit: Visit, { browsed, messages }: Delayed.Found): Html => html`<table class="panel letters">
  <caption>
    ${messages.length < browsed ? `The first ${Format.count(messages.length)} by due time` : "By due time"}
  </caption>
  <thead>
    <tr>
      <th scope="col">id</th>
      <th scope="col">last error</th>
      <th scope="col" class="n">next attempt</th>
      <th scope="col" class="n">due</th>
      <th scope="col" class="n">published</th>
    </tr>
  </thead>
  <tbody>
    ${messages.map((each) => row(visit, each))}
  </tbody>
</table>`

const groupsOf = (visit: Visit, { groups, other }: Delayed.Found, place: Place): Html => html`<h2>By last error</h2>
  <table class="panel causes">
    <thead>
      <tr>
        <th scope="col">error</th>
        <th scope="col" class="n">messages</th>
        <th scope="col" class="n">first due</th>
      </tr>
    </thead>
    <tbody>
      ${groups.map(
        (group) => html`<tr>
          <th scope="row" class="wrap">${titleOf(visit.shown(group, place))}</th>
          <td class="n" data-label="messages">${Format.count(group.count)}</td>
          <td class="n" data-label="first due">${dueIn(group.due, visit.now)}</td>
        </tr>`
      )}
    </tbody>
  </table>
  ${other > 0 && html`<p class="soft">${Format.counted(other, "more message")} with other errors than these</p>`}
  <h2>Messages</h2>`

const option = (visit: Visit, place: Place, group: Delayed.Group): Html =>
  html`<option value="${CauseId.of(group)}">
    ${Format.count(group.count)}: ${titleOf(visit.shown(group, place)).slice(0, 80)}
  </option>`

/** Renders the form that removes messages for good. The operator must type the queue's name. */
const purgeForm = (visit: Visit, { found, place }: Shown): Part => {
  const isChoice = found !== undefined && found.groups.length > 0
  return forThose(
    visit,
    "purge",
    html`<details>
      <summary>Purge…</summary>
      ${form(
        visit,
        "purgeDelayed",
        { ...queryOf(place), ...(isChoice ? {} : { cause: Delayed.all }) },
        html`${isChoice &&
          html`<label
            >Messages
            <select name="cause" required>
              <option value="">choose</option>
              <option value="${Delayed.all}">all</option>
              ${found?.groups.map((group) => option(visit, place, group))}
            </select></label
          >`}${nameField(place.queue, "the messages")}
          <button class="danger">Purge${found === undefined && " all delayed messages"}</button>
          <span class="soft">A message that becomes due meanwhile is removed or delivered.</span>`
      )}
    </details>`
  )
}

const lookedAt = ({ isWhole, browsed }: Delayed.Found): Html => html`<p class="soft" role="status">
  Browsed ${isWhole ? "all " : ""}${Format.counted(browsed, "message")} just
  now${!isWhole && ". The broker did not show all messages, or another reader holds some"}
</p>`

/** Renders the result of a browse, or why there is none. */
const content = (visit: Visit, shown: Shown): Html => {
  const { capabilities, found, place, status } = shown
  if (capabilities.delayedMessages !== true) {
    return html`<p>
      ${capabilities.broker} shows no message before it is due. The numbers above are those that it counts.
    </p>`
  }
  if (found === undefined) {
    return html`<p class="soft">${status.delayed === 0 ? "No delayed messages." : "No browse yet."}</p>`
  }
  if (found.browsed === 0)
    return html`${lookedAt(found)}${found.isWhole && html`<p class="well">No delayed messages.</p>`}`
  return html`${lookedAt(found)}${groupsOf(visit, found, place)}${messagesOf(visit, found)}`
}

/** Renders the page of the messages that wait for their delay. */
export const delayed = (visit: Visit, shown: Shown): Page => {
  const { capabilities, place, status } = shown
  const isAble = capabilities.delayedMessages === true
  return {
    title: `${place.queue} in backoff`,
    body: html`<div class="head">
        <div>
          <p class="crumbs"><a href="${visit.paths.to("overview")}">Queues</a> / ${place.broker}</p>
          <h1>${place.queue} <span class="soft">in backoff: retries and scheduled deliveries</span></h1>
        </div>
        <div class="do">${isAble && lookForm(visit, shown)}</div>
      </div>
      ${status.isMissing && alarm("The broker has no such queue.", "Delayed messages may wait for it nevertheless")}
      ${numbers(shown)} ${content(visit, shown)} ${isAble && purgeForm(visit, shown)}`
  }
}
