/** The samples of a queue: a few numbers for each of the last steps of time. */
import { QueueStatus } from "@requeue/operations"

/** The numbers of a step; `undefined` where the broker did not report them. */
export interface Sample {
  /** Steps since the epoch. */
  readonly step: number
  readonly ready: number | undefined
  readonly dead: number | undefined
}

/** Milliseconds of a step, and the number of steps: 15 minutes. */
export const step = 15_000
export const steps = 60

/** Adds a sample. Each step keeps its last one. */
export const add = (
  samples: ReadonlyArray<Sample>,
  status: QueueStatus.QueueStatus,
  at: number
): ReadonlyArray<Sample> => {
  const now = Math.floor(at / step)
  const others = samples.filter((each) => each.step < now && each.step > now - steps)
  return [...others, { step: now, ready: status.ready, dead: QueueStatus.deadOf(status) }]
}
