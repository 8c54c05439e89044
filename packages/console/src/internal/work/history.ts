/** The samples of a queue: a few numbers for each step of time, of which only the last steps are kept. */
import { QueueStatus } from "@requeue/operations"

/** The numbers of a step; `undefined` where nobody could tell. */
export interface Sample {
  /** Steps since the epoch. */
  readonly step: number
  readonly ready: number | undefined
  readonly dead: number | undefined
}

/** Milliseconds of a step, and the steps that are kept: 15 minutes. */
export const step = 15_000
export const steps = 60

/** The samples with one more. Of a step, the last one counts. */
export const add = (
  samples: ReadonlyArray<Sample>,
  status: QueueStatus.QueueStatus,
  at: number
): ReadonlyArray<Sample> => {
  const now = Math.floor(at / step)
  const others = samples.filter((each) => each.step < now && each.step > now - steps)
  return [...others, { step: now, ready: status.ready, dead: QueueStatus.deadOf(status) }]
}
