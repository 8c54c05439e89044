/** The page of a dead-letter queue: its causes, as the last browse saw them. */
import { Delay } from "@requeue/core"
import { type Capabilities } from "@requeue/core/port"
import { DeadLetters, type LetterFilter, type QueueStatus } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Place } from "../paths.ts"
import { jobQuery, type Page, queryOf, type Visit } from "../visit.ts"
import * as CauseId from "../work/causeId.ts"
import type { Job } from "../work/job.ts"
import { longest, type Look, type Outdated } from "../work/looks.ts"
import { filterForm, filterWords } from "./filter.ts"
import { cost, letterForms, planForm } from "./letterForms.ts"
import { alarm, bar, form, forThose, type Problem } from "./parts.ts"
import { held, missing } from "./report.ts"

/** A dead-letter queue and what is known about it. */
export interface Shown {
  readonly place: Place
  /** The filter of the shown letters; `undefined` for all letters. */
  readonly filter: LetterFilter.LetterFilter | undefined
  /** The dead-letter queue of these parked letters; `undefined` if the queue has no parked letters. */
  readonly home: string | undefined
  /** The number of parked letters; `undefined` if the broker does not report it. */
  readonly parked: number | undefined
  /** The dead letters of the queue; `undefined` if the broker does not answer. */
  readonly dead: QueueStatus.Dead | undefined
  readonly capabilities: Capabilities.Capabilities
  /** Why the broker does not answer; `undefined` if it answers. */
  readonly trouble: string | undefined
  readonly look: Look | undefined
  /** The last browse, if it is out of date. */
  readonly outdated: Outdated | undefined
  /** The job that works on the queue now. */
  readonly running: Job | undefined
}

/** Describes a cause in words. */
export const titleOf = ({ error, pattern }: DeadLetters.Cause): string => {
  const text = [error, pattern].filter(Boolean).join(": ")
  return text === "" ? "No known error" : text
}

const subtitle = ({ queue, reason }: DeadLetters.Cause): string =>
  reason === undefined ? "not dead-lettered by Requeue" : `${reason} · from ${queue}`

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

/** Returns the number of letters of a browse that pass the filter. */
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
      Browsing: no letters yet. A browse waits for the broker, for a job, and for another browse of this queue
    </p>`
  }
  if (ended === undefined) {
    return html`<p class="soft" role="status">
      ${found}Browsing: ${Format.count(browsed)}${of} letters so far
      <progress max="${Math.max(total ?? 0, 1)}" value="${browsed}" aria-label="Letters browsed">${browsed}</progress>
    </p>`
  }
  const all =
    total !== undefined && browsed >= total
      ? `all ${Format.counted(browsed, "letter")}`
      : `${Format.count(browsed)}${of} letters`
  return html`<p class="soft" role="status">
    ${found}Browsed ${all} in ${Delay.format(ended - begun)}, ${Format.ago(ended, now)}, by ${operator}
  </p>`
}

/** Renders the causes of a browse, which change while the browse runs. */
export const causes = (visit: Visit, look: Look): Html => {
  const { groups, place, trouble } = look
  return html`${progress(look, visit.now)}
  ${trouble !== undefined && alarm("The browse failed.", `${trouble}. All letters are still in the queue`)}
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
    ${Format.counted(groups.other, "more letter")} with other causes than these ${Format.count(groups.length)}
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
<button${look === undefined ? html` class="primary"` : ""}>${look === undefined ? "Browse" : "Browse again"}</button>`
  )

/** Renders links to the parked letters, and from there back. */
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

const actionsOf = (visit: Visit, shown: Shown): Html => {
  const kind = shown.look === undefined ? "" : html` class="primary"`
  const redrive = html`<button${kind}>${shown.filter === undefined ? "Redrive all…" : "Redrive these…"}</button>`
  const held = { place: shown.place, capabilities: shown.capabilities }
  return html`<div class="do">
    ${forThose(visit, "redrive", planForm(visit, held, redrive, true))}${lookForm(visit, shown)}
  </div>`
}

/** Renders why there is no browse to show. */
const unseen = ({ paths, now }: Visit, { filter, outdated }: Shown): Html => {
  if (outdated === undefined) {
    return html`<p class="soft">${filter === undefined ? "No browse yet." : "No browse with this filter yet."}</p>`
  }
  const { ended, job, operator } = outdated
  const why =
    job === undefined
      ? "letters have arrived since"
      : html`<a href="${paths.to("job", jobQuery({ id: job }))}">job ${job}</a> has worked on the queue since`
  return html`<p class="soft">The browse by ${operator}, ${Format.ago(ended, now)}, is out of date: ${why}.</p>`
}

const runningOf = ({ paths, now }: Visit, { begun, id, kind, operator, selection }: Job): Html =>
  alarm(
    "A job works on this queue.",
    html`${kind} of ${selection.title}, by ${operator}, ${Format.ago(begun, now)}:
      <a href="${paths.to("job", jobQuery({ id }))}">job ${id}</a>`
  )

const countOf = ({ dead, trouble }: Shown): Part => {
  if (dead === undefined) return trouble === undefined ? "" : html`<span class="soft">letters unknown</span>`
  if (dead.isMissing) return missing()
  const count = dead.count === undefined ? "the broker cannot count its letters" : Format.counted(dead.count, "letter")
  return html`<span class="soft">${count}${held(dead)}</span>`
}

const crumbsOf = ({ paths }: Visit, { broker }: Place): Html =>
  html`<p class="crumbs"><a href="${paths.to("overview")}">Queues</a> / ${broker}</p>`

const content = (visit: Visit, shown: Shown): Html => {
  const { dead, look, place } = shown
  if (look !== undefined) return causes(visit, look)
  if (dead?.isMissing !== true) return unseen(visit, shown)
  return html`<p class="soft">${place.broker} has no queue ${place.queue}: it has no dead letters.</p>`
}

/** Renders the page of a dead-letter queue. */
export const deadLetters = (visit: Visit, shown: Shown): Page => {
  const { capabilities, filter, look, place, running, trouble } = shown
  const isLive = look !== undefined && look.ended === undefined
  const title = html`${crumbsOf(visit, place)}
    <h1>${place.queue} ${countOf(shown)}</h1>`
  const all = filter === undefined ? "all letters" : "these letters"
  return {
    title: place.queue,
    isLive,
    body: html`<div class="head"><div>${title}</div>${!isLive && actionsOf(visit, shown)}</div>
${trouble !== undefined && alarm(`${place.broker} does not answer.`, look === undefined ? trouble : `${trouble}. The last browse is shown below`)}
${running !== undefined && runningOf(visit, running)}
${asideOf(visit, shown)}<div class="more">${filterForm(visit, place)}${letterForms(visit, { place, capabilities }, all)}</div>${filterWords(visit, place, filter)}
<div${isLive && html` data-live="${visit.paths.to("liveLook", queryOf(place))}" data-reload`}>${content(visit, shown)}</div>`
  }
}

/** Renders the filter form again, with the error next to its wrong field. */
export const filterAgain = (visit: Visit, place: Place, problem: Problem): Page => ({
  title: place.queue,
  body: html`${crumbsOf(visit, place)}
    <h1><a href="${visit.paths.to("deadLetters", queryOf(place))}">${place.queue}</a></h1>
    ${filterForm(visit, place, problem)}`
})
