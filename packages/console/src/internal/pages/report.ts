/** The report of a job: its stages, and the outcome of its letters. */
import { Delay } from "@requeue/core"
import type { DeadLetters, QueueStatus } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Exported, Job, Pace, Purged } from "../work/job.ts"
import * as Redrive from "../work/redrive.ts"
import type { Visit } from "../visit.ts"
import { alarm, facts } from "./parts.ts"

type Report = DeadLetters.RedriveReport

const sizeOf = (size: number | undefined): string => (size === undefined ? "rest" : Format.count(size))

const stage = ({ cameBack = 0, published, size, succeeded, waiting = 0 }: DeadLetters.Stage, isNow: boolean): Html => {
  const told = succeeded === undefined ? `${Format.count(published)} published` : `${Format.count(succeeded)} succeeded`
  return html`<li class="${isNow ? "stage now" : "stage"}">
    <b>${sizeOf(size)}</b>${told}${cameBack > 0 &&
    html`<br /><span class="alarm">${Format.count(cameBack)} came back</span>`}${waiting > 0 &&
    html`<br />${Format.count(waiting)} still queued`}
  </li>`
}

/** Renders the stages. While the job runs, later stages already have their rows, so nothing moves when they begin. */
const stagesOf = (stages: Report["stages"], { ended, staged }: Pick<Job, "ended" | "staged">): Html => {
  const isRunning = ended === undefined
  const later = isRunning ? [...(staged ?? Redrive).stages, undefined].slice(stages.length) : []
  return html`<ol class="stages">
    ${stages.map((each, index) => stage(each, isRunning && index === stages.length - 1))}${later.map(
      (size) => html`<li class="stage later"><b>${sizeOf(size)}</b></li>`
    )}
  </ol>`
}

/** Renders a number; `–` if the broker does not report it. */
export const number = (value: number | undefined, isAlarming = false): Html => {
  if (value === undefined) return html`<span class="zero" title="the broker does not report it">–</span>`
  return html`<span class="${value === 0 ? "zero" : isAlarming ? "alarm" : "strong"}">${Format.count(value)}</span>`
}

/** Renders the number of letters that a reader holds, which a count of the queue excludes. */
export const held = ({ held, isHeld }: Pick<QueueStatus.Dead, "held" | "isHeld">): Part => {
  const title = "Another reader, such as a browse or a consumer, holds letters. The count is without them."
  const number = held === undefined ? "" : `${Format.count(held)} `
  return isHeld && html` <span class="soft" title="${title}">+ ${number}held by a reader</span>`
}

/** Renders a mark instead of the count of a queue that the broker does not have. */
export const missing = (): Html => html`<span class="soft" title="The broker has no such queue.">missing</span>`

/**
 * Describes the wait for the outcome of letters, in a sentence that begins with `when`. If the broker does not report
 * outcomes, the sentence has the reason and the remedy.
 */
export const waitOf = ({ untold, wait }: Pace, when: string): string =>
  untold === undefined
    ? `${when}, the job waits until the outcome of its letters is known, ${Delay.format(wait)} at most.`
    : `${when}, the job waits ${Delay.format(wait)}, or until all its letters have come back: ${untold}.`

/** Renders the numbers of letters that stayed in the queue, by reason. */
const stayed = (
  { filtered, overRedriveLimit, held, unknownOrigin, refused, repeated, unremoved }: Report,
  { kind, selection: { filter, letter } }: Pick<Job, "kind" | "selection">
): ReadonlyArray<readonly [string, Part]> =>
  (
    [
      // Only a dry run sees all other letters: a job that moves letters, or needs one, ends with the last of its own.
      [
        filter === undefined ? "of other causes" : "not selected",
        kind === "plan" && letter === undefined ? filtered : 0,
        false
      ],
      [`redriven ${Redrive.maxRedrives} times before`, overRedriveLimit, true],
      ["of unknown origin", unknownOrigin, true],
      ["came back from this redrive", repeated, true],
      ["refused by the broker", refused, true],
      ["published, not removed", unremoved, true],
      ["held by another reader", held, true]
    ] as const
  ).flatMap(([name, count, isAlarming]) => (count === 0 ? [] : [[name, number(count, isAlarming)]]))

/** Renders the numbers of a purge that has ended. */
export const purgedOf = ({ held, left, removed }: Purged): Html =>
  facts([
    ["removed", number(removed)],
    ["left here", number(left)],
    ...(held === 0 ? [] : [["held by another reader, which may return them", number(held, true)] as const])
  ])

const outcomes: { readonly [Outcome in DeadLetters.EditOutcome]: string } = {
  succeeded: "has succeeded",
  "came-back": "came back, and is a dead letter as well",
  waiting: "is still queued or in work",
  unknown: "is published; the broker does not report its outcome",
  missing: "was not published: the letter is not in this queue any more"
}

/** Renders the outcome of an edited copy, and of its letter. */
export const editedOf = ({ to }: Job, { isRemoved, outcome }: DeadLetters.EditReport): Html =>
  facts([
    ["to", to ?? "–"],
    ["the copy", outcomes[outcome]],
    ["the letter", outcome === "missing" ? "is gone, or another reader holds it" : isRemoved ? "is removed" : "is kept"]
  ])

/** Renders the numbers of an export. */
export const exportedOf = ({ browsed, redacted, total, written }: Exported): Html =>
  facts([
    ["exported", number(written)],
    ["with hidden parts, which an import refuses", number(redacted)],
    ["browsed", html`${number(browsed)}${total !== undefined && total > browsed && ` of ${Format.count(total)}`}`]
  ])

/** The largest number of letters that a page names. */
const named = 10

/** Renders the letters that the broker refused or did not remove, each with its error. */
export const failedOf = (visit: Visit, { failed, kind, place, report }: Job): Part => {
  if (report === undefined || failed.length === 0) return undefined
  const { refused, unremoved } = report
  const more = refused + unremoved - Math.min(named, failed.length)
  const moved = kind === "park" ? "parked" : "published"
  return html`${alarm(
      "Some letters failed.",
      "A refused letter is still in this queue. A letter in both queues was published and not removed. Fix the cause that the error names, then go on."
    )}
    <table class="panel failed">
      <thead>
        <tr>
          <th scope="col">id</th>
          <th scope="col">outcome</th>
          <th scope="col">error</th>
        </tr>
      </thead>
      <tbody>
        ${failed.slice(0, named).map(
          ({ id, isPublished, why }) =>
            html`<tr>
              <th scope="row" class="mono wrap">${visit.shownId(id, place)}</th>
              <td data-label="outcome">${isPublished ? `${moved}, in both queues` : "refused"}</td>
              <td class="wrap" data-label="error">${why ?? "the broker gave no answer"}</td>
            </tr>`
        )}
      </tbody>
    </table>
    ${more > 0 && html`<p class="soft">${Format.counted(more, "more letter")}. The audit names up to 200 of them.</p>`}`
}

/** Renders the report so far of a redrive, a dry run or a park. */
export const reportOf = (job: Job, report: Report): Html => {
  const { kind, left, to } = job
  if (kind === "plan")
    return facts([
      ["would be redriven", number(report.redriven)],
      ["to", to ?? "the queues they came from"],
      ...stayed(report, job)
    ])
  const { cameBack, published, queued, stages, succeeded, waiting } = report
  const watched: ReadonlyArray<readonly [string, Part]> =
    stages.length === 0
      ? []
      : [
          ["succeeded", number(succeeded)],
          ["came back", number(cameBack, true)],
          ["still queued", number(waiting)]
        ]
  const goal = to === undefined ? [] : ([["to", to]] as const)
  return html`${stages.length > 0 && stagesOf(stages, job)}${facts([
    [kind === "park" ? "parked" : "published", number(published)],
    ...goal,
    ...watched,
    // Other readers may have removed letters since the job counted them.
    left === undefined ? ["left of those at its beginning", number(queued)] : ["left here", number(left)],
    ...stayed(report, job)
  ])}`
}
