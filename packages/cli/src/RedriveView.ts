/** The report of a redrive, as text and as JSON. */
import type { DeadLetters } from "@requeue/core"

/** A redrive of one dead-letter queue. */
export interface Redriven {
  readonly queue: string
  readonly report: DeadLetters.RedriveReport
}

/** How the redrive was asked for. */
export interface Asked {
  readonly dryRun: boolean
  readonly maxRedrives: number
}

/** The most letters that are named in text. */
const named = 10

/** Answers how many letters the redrive is done with. */
const seen = ({ filtered, guarded, homeless, redriven, refused, unremoved }: DeadLetters.RedriveReport): number =>
  redriven + unremoved + refused + filtered + guarded + homeless

/** Answers how many letters there were; where the broker cannot count, those that were seen. */
const all = (report: DeadLetters.RedriveReport, dryRun: boolean): number =>
  report.queued === undefined ? seen(report) : report.queued + (dryRun ? 0 : report.redriven)

/** Tells how far the redrive is. */
export const progress = ({ queue, report }: Redriven, { dryRun }: Asked): string =>
  `${queue}: ${seen(report)} of ${all(report, dryRun)}`

const why = ({ error, id, isPublished }: DeadLetters.FailedLetter): string =>
  `  ${id}: ${isPublished ? "in both queues" : "refused"}: ${error?.message ?? "the broker gave no answer"}`

/** Tells where every letter is, in a line, and each that failed in one more. */
export const text = ({ queue, report }: Redriven, { dryRun, maxRedrives }: Asked): string => {
  const { failures, filtered, guarded, held, homeless, queued, redriven, refused, unconfirmed, unremoved } = report
  const others = [
    [filtered, "passed over by the filters"],
    [guarded, `stopped by --max-redrives ${maxRedrives}`],
    [homeless, "of unknown origin, give --to"],
    [refused, "refused by the broker"],
    [unremoved, "published and not removed, so that they are in both queues"],
    [all(report, dryRun) - seen(report), "not reached"],
    [held ?? 0, "more with another reader, run it again when that has ended"]
  ] as const
  const parts = others.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  const twice = unconfirmed === 0 ? [] : [`of ${unconfirmed}, one copy more may exist`]
  const hidden = held === undefined && queued !== undefined ? ["another reader may have more"] : []
  const done = `${dryRun ? "would redrive" : "redriven"} ${redriven} of ${all(report, dryRun)}`
  const more = failures.length > named ? [`  and ${failures.length - named} more, see --json`] : []
  return [
    `${queue}: ${[done, ...parts, ...hidden, ...twice].join("; ")}`,
    ...failures.slice(0, named).map(why),
    ...more
  ].join("\n")
}

/** Answers the report as a value for JSON. */
export const toJson = ({ queue, report: { failures, held, queued, ...counts } }: Redriven) => ({
  queue,
  ...counts,
  queued: queued ?? null,
  held: held ?? null,
  failures: failures.map(({ error, id, isPublished }) => ({
    id,
    isPublished,
    reason: error?.reason ?? null,
    message: error?.message ?? null
  }))
})

/** Whether the broker did not do all that it was asked. */
export const isBad = ({ report: { refused, unremoved } }: Redriven): boolean => refused + unremoved > 0
