/** The report of a redrive, as text and as JSON. */
import type { DeadLetters } from "@requeue/operations"
import * as Interruption from "./Interruption.ts"
import * as Printable from "./Printable.ts"

/** A redrive of one dead-letter queue. */
export interface Redriven {
  readonly queue: string
  readonly report: DeadLetters.RedriveReport
}

/** The options of a redrive that its report depends on. */
export interface Asked {
  readonly dryRun: boolean
  readonly maxRedrives: number
  /** The share of a stage that may come back; `undefined` if the redrive does not watch. */
  readonly stopAt: number | undefined
  /** Whether letters are parked, and not redriven. Default: false. */
  readonly isParking?: boolean
}

/** The largest number of letters that the text names. */
const named = 10

/** Returns how many letters are finished. */
const seen = (report: DeadLetters.RedriveReport): number => {
  const { filtered, overRedriveLimit, unknownOrigin, redriven, refused, repeated, unremoved } = report
  return redriven + unremoved + refused + filtered + overRedriveLimit + unknownOrigin + repeated
}

/** Returns how many letters there were. If the broker cannot count, returns how many were seen. */
const all = (report: DeadLetters.RedriveReport, dryRun: boolean): number =>
  report.queued === undefined ? seen(report) : report.queued + (dryRun ? 0 : report.redriven)

/** Shows the progress of the redrive. */
export const progress = ({ queue, report }: Redriven, { dryRun }: Asked): string => {
  const { stages } = report
  const done = `${queue}: ${seen(report)} of ${all(report, dryRun)}`
  return stages.length === 0 ? done : `${done}, in stage ${stages.length}; so far ${known(report, false).join(", ")}`
}

/**
 * Returns the outcome of the published letters. While the redrive works, and if it was interrupted, some outcomes are not
 * known yet.
 */
const known = (
  { cameBack, published, succeeded, unseen, waiting }: DeadLetters.Outcome,
  isOver: boolean
): ReadonlyArray<string> => [
  `${published} published`,
  ...(succeeded === undefined ? [] : [`${succeeded} succeeded`]),
  `${cameBack ?? 0} came back`,
  ...(waiting === undefined ? [] : [`${waiting} ${isOver ? "still queued" : "not known yet"}`]),
  ...(unseen === 0 ? [] : [`${unseen} not seen`])
]

/** Shows the outcome of the published letters, if the broker reports it. */
const outcome = (all: DeadLetters.Outcome, isOver: boolean): string =>
  [
    ...known(all, isOver),
    ...(all.waiting === undefined
      ? ["it is unknown whether the others still wait: the broker does not count them, or --wait was below 15s"]
      : [])
  ].join(", ")

/** For each reason to stop: why the redrive stopped, and what to do. */
const stops = (stopAt: number): { readonly [By in DeadLetters.StoppedBy]: string } => ({
  "stop-at": `stopped: more than ${Number((stopAt * 100).toFixed(6))}% of a stage came back. Fix the cause, and run the same command again`,
  held: "stopped: another reader, such as a browser or a consumer, holds letters from before the redrive. End it, and run the same command again",
  wait: "stopped: the published letters wait, and no message leaves their queue. Start a consumer, and run the same command again",
  abort: `interrupted. ${Interruption.goOn}`
})

/** Shows each stage, and why no further stage began. */
const stagesOf = ({ operation, stages, stoppedBy, unseen }: DeadLetters.RedriveReport, stopAt: number) => [
  ...stages.map((stage, index) => `  stage ${index + 1}: ${outcome(stage, stoppedBy !== "abort")}`),
  ...(unseen === 0
    ? []
    : [`  ${unseen} more arrived in the dead-letter queues, too many to browse: they count as come back`]),
  ...(stoppedBy === undefined
    ? []
    : [`  ${stops(stopAt)[stoppedBy]}; with --operation ${operation}, it passes over those that came back`])
]

const why = ({ error, id, isPublished }: DeadLetters.FailedLetter): string =>
  `  ${Printable.line(`${id}: ${isPublished ? "in both queues" : "refused"}: ${error?.message ?? "the broker gave no answer"}`)}`

/** Shows where the letters are, in one line, and one more line for each failure. */
export const text = (
  { queue, report }: Redriven,
  { dryRun, isParking = false, maxRedrives, stopAt }: Asked
): string => {
  const { failures, filtered, overRedriveLimit, held, unknownOrigin, queued, redriven, refused } = report
  const { repeated, stoppedBy, unconfirmed, unremoved } = report
  const others = [
    [filtered, "passed over by the filters"],
    [overRedriveLimit, `stopped by --max-redrives ${maxRedrives}`],
    [unknownOrigin, "of unknown origin, give --to"],
    [repeated, "passed over, because this operation has redriven them before"],
    [refused, "refused by the broker"],
    [unremoved, "published and not removed, so they are in both queues"],
    [all(report, dryRun) - seen(report), "not reached"],
    [held ?? 0, "more held by another reader, run it again when that has ended"]
  ] as const
  const parts = others.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  const twice =
    unconfirmed === 0 ? [] : [`of ${unconfirmed}, one more copy may exist for each publish without an answer`]
  const hidden = held === undefined && queued !== undefined ? ["another reader may hold more"] : []
  const [would, did] = isParking ? ["would park", "parked"] : ["would redrive", "redriven"]
  const done = `${dryRun ? would : did} ${redriven} of ${all(report, dryRun)}`
  const more = failures.length > named ? [`  and ${failures.length - named} more, see --json`] : []
  return [
    `${queue}: ${[done, ...parts, ...hidden, ...twice].join("; ")}`,
    ...failures.slice(0, named).map(why),
    ...more,
    ...(stopAt !== undefined ? stagesOf(report, stopAt) : stoppedBy === "abort" ? [`  ${Interruption.goOn}`] : [])
  ].join("\n")
}

const unknowns = ({ cameBack, succeeded, waiting }: Omit<DeadLetters.Outcome, "published" | "unseen">) => ({
  succeeded: succeeded ?? null,
  cameBack: cameBack ?? null,
  waiting: waiting ?? null
})

/** Returns the report as a value for JSON. */
export const toJson = ({ queue, report }: Redriven) => {
  const { cameBack, failures, held, queued, stages, stoppedBy, succeeded, waiting, ...counts } = report
  return {
    queue,
    ...counts,
    ...unknowns({ cameBack, succeeded, waiting }),
    stoppedBy: stoppedBy ?? null,
    stages: stages.map(({ published, size, unseen, ...others }) => ({
      size: size ?? null,
      published,
      ...unknowns(others),
      unseen
    })),
    queued: queued ?? null,
    held: held ?? null,
    failures: failures.map(({ error, id, isPublished }) => ({
      id,
      isPublished,
      reason: error?.reason ?? null,
      message: error?.message ?? null
    }))
  }
}

/** Whether a part of the redrive was not done: the broker refused something, or the redrive stopped early. */
export const isBad = ({ report: { refused, stoppedBy, unremoved } }: Redriven): boolean =>
  refused + unremoved > 0 || (stoppedBy !== undefined && stoppedBy !== "abort")
