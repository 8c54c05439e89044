/** The page of a dead-letter queue: its causes, as far as somebody has browsed. */
import { Delay } from "@requeue/core"
import { type Capabilities } from "@requeue/core/port"
import { DeadLetters, type LetterFilter } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { type Page, queryOf, type Visit } from "../visit.ts"
import * as CauseId from "../work/causeId.ts"
import { longest, type Look } from "../work/looks.ts"
import { filterForm, filterWords } from "./filter.ts"
import { cost, letterForms, planForm } from "./letterForms.ts"
import { alarm, bar, form, forThose } from "./parts.ts"

/** A dead-letter queue, and what is known of it. */
export interface Shown {
  readonly place: Place
  /** The filter of the place. */
  readonly filter: LetterFilter.LetterFilter | undefined
  /** The dead-letter queue whose parked letters these are; `undefined` where they are none. */
  readonly home: string | undefined
  /** Letters that are parked; `undefined` where nobody tells. */
  readonly parked: number | undefined
  /** Letters that wait; `undefined` where the broker cannot count. */
  readonly count: number | undefined
  readonly capabilities: Capabilities.Capabilities
  /** Why the broker does not answer; `undefined` where it does. */
  readonly trouble: string | undefined
  readonly look: Look | undefined
}

/** A cause in words. */
export const titleOf = ({ error, pattern }: DeadLetters.Cause): string => {
  const text = [error, pattern].filter(Boolean).join(": ")
  return text === "" ? "No error is known" : text
}

const subtitle = ({ queue, reason }: DeadLetters.Cause): string =>
  reason === undefined ? "not given up by Requeue" : `${reason} · from ${queue}`

const row = (
  visit: Visit,
  { look, place }: { readonly look: Look; readonly place: Place },
  group: DeadLetters.Group
): Html => {
  const { count, newest, oldest } = group
  const href = visit.paths.to("group", { ...queryOf(place), cause: CauseId.of(group) })
  const whole = place.filter === undefined ? look.progress.browsed : foundIn(look)
  return html`<tr>
    <th scope="row" class="wrap">
      <a href="${href}">${titleOf(visit.shown(group, place))}</a><br /><span class="soft">${subtitle(group)}</span>
    </th>
    <td class="n strong" data-label="letters">${Format.count(count)}</td>
    <td class="share" data-label="share">
      ${bar(count, whole)}<span class="soft">${Format.share(count, whole)}</span>
    </td>
    <td class="n" data-label="first">${Format.ago(oldest, visit.now)}</td>
    <td class="n" data-label="last">${Format.ago(newest, visit.now)}</td>
  </tr>`
}

/** The letters of a look that the filter has selected. */
const foundIn = ({ groups }: Look): number => groups.reduce((sum, { count }) => sum + count, groups.other)

const progress = (look: Look, now: number): Part => {
  const {
    begun,
    ended,
    operator,
    place,
    progress: { browsed, total }
  } = look
  const found = place.filter !== undefined && html`<b>${Format.counted(foundIn(look), "letter")} found.</b> `
  const of = total === undefined ? "" : ` of ${Format.count(total)}`
  if (ended === undefined && browsed === 0 && total === undefined) {
    return html`<p class="soft" role="status">
      Looking: nothing yet. A look waits for the broker, and for a job or another look at this queue
    </p>`
  }
  if (ended === undefined) {
    return html`<p class="soft" role="status">
      ${found}Looking: ${Format.count(browsed)}${of} letters so far
      <progress max="${Math.max(total ?? 0, 1)}" value="${browsed}" aria-label="Letters looked at">${browsed}</progress>
    </p>`
  }
  const all =
    total !== undefined && browsed >= total
      ? `all ${Format.counted(browsed, "letter")}`
      : `${Format.count(browsed)}${of} letters`
  return html`<p class="soft" role="status">
    ${found}Browsed at ${all} in ${Delay.format(ended - begun)}, ${Format.ago(ended, now)}, by ${operator}
  </p>`
}

/** The causes of a look, which change while it runs. */
export const causes = (visit: Visit, look: Look): Html => {
  const { groups, place, trouble } = look
  return html`${progress(look, visit.now)}
  ${trouble !== undefined && alarm("The look failed.", `${trouble}. All letters are where they were`)}
  ${groups.length > 0 &&
  html`<table class="panel causes">
    <thead>
      <tr>
        <th scope="col">cause</th>
        <th scope="col" class="n">letters</th>
        <th scope="col">share</th>
        <th scope="col" class="n">first</th>
        <th scope="col" class="n">last</th>
      </tr>
    </thead>
    <tbody>
      ${groups.map((group) => row(visit, { look, place }, group))}
    </tbody>
  </table>`}
  ${groups.other > 0 &&
  html`<p class="soft">
    ${Format.counted(groups.other, "letter")} more of other causes than these ${Format.count(groups.length)}
  </p>`}
  ${look.ended !== undefined &&
  trouble === undefined &&
  groups.length === 0 &&
  html`<p class="well">${place.filter === undefined ? "No dead letters. All is well." : "No such letters."}</p>`}`
}

const size = (limit: number): Html => html`<option value="${limit}">${Format.count(limit)}</option>`

const lookForm = (visit: Visit, { capabilities, look, place }: Shown): Html =>
  form(
    visit,
    "look",
    queryOf(place),
    html`<span class="soft">${cost(capabilities)}.</span>
${
  capabilities.uncountedBrowse
    ? html`<input type="hidden" name="limit" value="${longest}" />`
    : html`<label
        >Letters
        <select name="limit">
          ${[100, 1000, 10_000, longest].map(size)}
        </select></label
      >`
}
<button${look === undefined ? html` class="primary"` : ""}>${look === undefined ? "Look" : "Look again"}</button>`
  )

/** The way to letters that are parked, and back. */
const asideOf = ({ paths }: Visit, { home, parked, place: { broker, queue } }: Shown): Part => {
  if (home !== undefined) {
    return html`<p>
      These letters are parked. <a href="${paths.to("deadLetters", { broker, queue: home })}">The others: ${home}</a>
    </p>`
  }
  const aside = paths.to("deadLetters", { broker, queue: DeadLetters.parkingQueue(queue) })
  return (
    parked !== 0 &&
    parked !== undefined &&
    html`<p><a href="${aside}">${Format.counted(parked, "letter")} parked</a></p>`
  )
}

const actionsOf = (visit: Visit, shown: Shown): Html =>
  html`<div class="do">
    ${forThose(
      visit,
      "redrive",
      planForm(
        visit,
        { place: shown.place, capabilities: shown.capabilities },
        html`<button>${shown.filter === undefined ? "Redrive all…" : "Redrive these…"}</button>`
      )
    )}${lookForm(visit, shown)}
  </div>`

/** A dead-letter queue. */
export const deadLetters = (visit: Visit, shown: Shown): Page => {
  const { capabilities, count, filter, look, place, trouble } = shown
  const uncounted = trouble === undefined ? "the broker cannot count its letters" : "letters unknown"
  const isLive = look !== undefined && look.ended === undefined
  const title = html`<p class="crumbs"><a href="${visit.paths.to("overview")}">Queues</a> / ${place.broker}</p>
    <h1>
      ${place.queue}
      <span class="soft">${count === undefined ? uncounted : Format.counted(count, "letter")}</span>
    </h1>`
  const found = look === undefined ? html`<p class="soft">Nobody has browsed yet.</p>` : causes(visit, look)
  return {
    title: place.queue,
    isLive,
    body: html`<div class="head"><div>${title}</div>${!isLive && actionsOf(visit, shown)}</div>
${trouble !== undefined && alarm(`${place.broker} does not answer.`, look === undefined ? trouble : `${trouble}. Below is what the last look saw`)}
${asideOf(visit, shown)}${filterForm(visit, place)}${filterWords(visit, place, filter)}
<div${isLive && html` data-live="${visit.paths.to("liveLook", queryOf(place))}" data-reload`}>${found}</div>
${letterForms(visit, { place, capabilities }, filter === undefined ? "all letters" : "these letters")}`
  }
}
