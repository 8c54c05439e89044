/** The page of one cause: its first letters, and the actions on all of them. */
import type { Capabilities } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html } from "../html.ts"
import type { Place } from "../paths.ts"
import { type Page, queryOf, type Visit } from "../visit.ts"
import type { Kept } from "../work/letters.ts"
import { titleOf } from "./deadLetters.ts"
import { letterForms, planForm } from "./letterForms.ts"
import { crumbs, facts, forThose } from "./parts.ts"

/** The letters of a cause, as the last browse saw them. */
export interface Shown {
  readonly place: Place
  readonly cause: string
  readonly group: DeadLetters.Group
  readonly letters: ReadonlyArray<Kept>
  readonly capabilities: Capabilities.Capabilities
}

const row = (visit: Visit, { cause, place }: Shown, { id, key, origin, publishedAt, redrives }: Kept): Html => {
  const href = visit.paths.to("letter", { ...queryOf(place), cause, letter: key })
  return html`<tr>
    <th scope="row"><a class="mono" href="${href}">${id}</a></th>
    <td class="wrap" data-label="message">${origin?.error.message ?? "–"}</td>
    <td class="n" data-label="attempts">${origin?.attempts ?? "–"}</td>
    <td class="n${redrives === 0 ? " zero" : ""}" data-label="redriven">${redrives}</td>
    <td class="n" data-label="dead-lettered">${Format.ago(origin?.at ?? publishedAt, visit.now)}</td>
  </tr>`
}

/** A cause. */
export const group = (visit: Visit, shown: Shown): Page => {
  const { capabilities, cause, group, letters, place } = shown
  const { count, newest, oldest, queue, reason } = group
  const redrive = planForm(
    visit,
    { place, capabilities, cause },
    html`<button class="primary">Redrive ${Format.counted(count, "letter")}…</button>`
  )
  return {
    title: titleOf(group),
    body: html`<div class="head">
        <div>
          ${crumbs(visit, place)}
          <h1>${titleOf(group)}</h1>
        </div>
        <div class="do">${forThose(visit, "redrive", redrive)}</div>
      </div>
      ${facts([
        ["letters", Format.count(count)],
        ["reason", reason ?? "not dead-lettered by Requeue"],
        ["from", queue ?? "unknown"],
        ["first", Format.ago(oldest, visit.now)],
        ["last", Format.ago(newest, visit.now)]
      ])}
      <div class="more">
        ${letterForms(visit, { place, capabilities, cause }, `the ${Format.counted(count, "letter")} of this cause`)}
      </div>
      <table class="panel letters">
        <caption>
          ${letters.length < count
            ? `The first ${Format.count(letters.length)} of ${Format.counted(count, "letter")}`
            : `All ${Format.counted(count, "letter")}`}
        </caption>
        <thead>
          <tr>
            <th scope="col">id</th>
            <th scope="col">message</th>
            <th scope="col" class="n">attempts</th>
            <th scope="col" class="n">redriven</th>
            <th scope="col" class="n">dead-lettered</th>
          </tr>
        </thead>
        <tbody>
          ${letters.map((letter) => row(visit, shown, letter))}
        </tbody>
      </table>`
  }
}
