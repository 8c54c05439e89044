/** The report of a redrive: its stages, and what became of the letters. */
import { Delay } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Format from "../format.ts"
import { html, type Html, type Part } from "../html.ts"
import type { Exported, Job, Pace, Purged } from "../work/job.ts"
import * as Redrive from "../work/redrive.ts"
import { facts } from "./parts.ts"

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

/** The stages; while it runs, those that are to come as well, so that nothing moves when they do. */
const stagesOf = (stages: Report["stages"], isRunning: boolean): Html => {
  const later = isRunning ? [...Redrive.stages, undefined].slice(stages.length) : []
  return html`<ol class="stages">
    ${stages.map((each, index) => stage(each, isRunning && index === stages.length - 1))}${later.map(
      (size) => html`<li class="stage later"><b>${sizeOf(size)}</b></li>`
    )}
  </ol>`
}

/** A number; `–` where the broker does not tell. */
export const number = (value: number | undefined, isAlarming = false): Html => {
  if (value === undefined) return html`<span class="zero" title="the broker does not tell">–</span>`
  return html`<span class="${value === 0 ? "zero" : isAlarming ? "alarm" : "strong"}">${Format.count(value)}</span>`
}

/**
 * The wait for what becomes of letters, in a sentence: `when` is the beginning. Where the broker does not tell, it says why it
 * takes so long, and what helps.
 */
export const waitOf = ({ untold, wait }: Pace, when: string): string =>
  untold === undefined
    ? `${when} it waits until it is known what became of the letters, ${Delay.format(wait)} at most.`
    : `${when} it waits ${Delay.format(wait)}, or until all have come back: ${untold}.`

/** Letters that stayed, each kind where there are some. */
const stayed = (
  { filtered, overRedriveLimit, held, unknownOrigin, refused, repeated, unremoved }: Report,
  { kind, selection: { filter, letter } }: Pick<Job, "kind" | "selection">
): ReadonlyArray<readonly [string, Part]> =>
  (
    [
      // Only a dry run sees all others: what moves letters, or seeks one, ends with the last of its own.
      [
        filter === undefined ? "of other causes" : "not meant",
        kind === "plan" && letter === undefined ? filtered : 0,
        false
      ],
      [`redriven ${Redrive.maxRedrives} times before`, overRedriveLimit, true],
      ["of unknown origin", unknownOrigin, true],
      ["came back from this job", repeated, true],
      ["refused by the broker", refused, true],
      ["published, not removed", unremoved, true],
      ["with another reader", held, true]
    ] as const
  ).flatMap(([name, count, isAlarming]) => (count === 0 ? [] : [[name, number(count, isAlarming)]]))

/** The numbers of a purge that has ended. */
export const purgedOf = ({ held, left, removed }: Purged): Html =>
  facts([
    ["removed", number(removed)],
    ["left here", number(left)],
    ...(held === 0 ? [] : [["with another reader, who may give them back", number(held, true)] as const])
  ])

const outcomes: { readonly [Outcome in DeadLetters.EditOutcome]: string } = {
  succeeded: "it has succeeded",
  "came-back": "it came back, and is a dead letter as well",
  waiting: "it still waits, or is in work",
  unknown: "it is published, and the broker does not tell what becomes of it",
  missing: "nothing was published: the letter is not here any more"
}

/** The fate of an edited copy, and of its letter. */
export const editedOf = ({ to }: Job, { isRemoved, outcome }: DeadLetters.EditReport): Html =>
  facts([
    ["to", to ?? "–"],
    ["the copy", outcomes[outcome]],
    ["the letter", outcome === "missing" ? "is gone, or somebody has it" : isRemoved ? "is removed" : "is kept"]
  ])

/** The numbers of an export. */
export const exportedOf = ({ browsed, redacted, total, written }: Exported): Html =>
  facts([
    ["exported", number(written)],
    ["with parts hidden, which no import takes", number(redacted)],
    ["looked at", html`${number(browsed)}${total !== undefined && total > browsed && ` of ${Format.count(total)}`}`]
  ])

/** The report of a redrive or of its dry run, as far as it is. */
export const reportOf = (job: Job, report: Report): Html => {
  const { ended, kind, left, to } = job
  if (kind === "plan")
    return facts([
      ["would be redriven", number(report.redriven)],
      ["to", to ?? "the queues that they came from"],
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
  return html`${stages.length > 0 && stagesOf(stages, ended === undefined)}${facts([
    [kind === "park" ? "parked" : "published", number(published)],
    ...goal,
    ...watched,
    // Others may have taken some of those that were counted at the beginning.
    left === undefined ? ["left of those at its beginning", number(queued)] : ["left here", number(left)],
    ...stayed(report, job)
  ])}`
}
