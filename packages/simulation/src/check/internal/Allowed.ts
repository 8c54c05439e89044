/** Settlements that the design allows: what a policy makes of a verdict, or of how a handler run ended. */
import type { Asked } from "../../History.ts"
import type { Version } from "../../Scenario.ts"

/** An allowed settlement. */
export interface Allowed {
  readonly tag: Asked["tag"]
  /** `undefined`: any. */
  readonly reason?: string
  readonly queue?: string
  /** The delay, and by how much it may be shorter because part of it is over. Default: any. */
  readonly delay?: number
  readonly passed?: number
}

/** Circumstances that count besides the verdict. */
export interface Circumstances {
  readonly version: Version
  /** The possible attempts: more than one if a redelivery arrived while the handler ran. */
  readonly attempts: readonly [least: number, most: number]
  /** Maximum milliseconds since it was decided. */
  readonly passed: number
  /** The age of the message in milliseconds, as clocks and foreign metadata may show it. */
  readonly age: readonly [least: number, most: number]
}

/** Milliseconds of the handlers' `retryAfter`. */
export const retryAfter = 7000

/** The end of a message that has this reason. */
export const giveUp = ({ deadLetter }: Version, reason: string): Allowed =>
  deadLetter === undefined ? { tag: "Drop", reason } : { tag: "DeadLetter", reason, queue: deadLetter }

const backoffOf = ({ backoff }: Version, attempt: number): number => backoff[Math.min(attempt, backoff.length) - 1] ?? 0

/** A retry, or the end after the last attempt or beyond `maxAge`. `given`: the delay, unless the policy's counts. */
export const retry = (circumstances: Circumstances, given: number | undefined): ReadonlyArray<Allowed> => {
  const { age, attempts, passed, version } = circumstances
  const allowed: Array<Allowed> = []
  const limit = version.maxAge ?? Infinity
  // Beyond the last attempt, nothing changes.
  const most = Math.max(attempts[0], Math.min(attempts[1], version.maxAttempts))
  for (let attempt = attempts[0]; attempt <= most; attempt++) {
    const delay = given ?? backoffOf(version, attempt)
    const isLast = attempt >= version.maxAttempts
    if (isLast) allowed.push(giveUp(version, "retries-exhausted"))
    else if (age[0] + delay <= limit) allowed.push({ tag: "Retry", delay, passed })
    if (age[1] + delay > limit) allowed.push(giveUp(version, "too-old"))
  }
  return allowed
}

/**
 * The settlements that follow from an error that a handler threw, or failed a message with. `given`: the delay, unless the
 * error's counts.
 */
export const thrown = (
  circumstances: Circumstances,
  error: string | undefined,
  given?: number
): ReadonlyArray<Allowed> => {
  if (error === "permanent") return [giveUp(circumstances.version, "permanent")]
  if (error === "drop") return [{ tag: "Drop" }]
  return retry(circumstances, given ?? (error === "retryAfter" ? retryAfter : undefined))
}

/** Whether a settlement is this one. */
export const matches = (asked: Asked, { delay, passed = 0, queue, reason, tag }: Allowed): boolean =>
  asked.tag === tag &&
  (reason === undefined || asked.reason === reason) &&
  (queue === undefined || asked.queue === queue) &&
  (delay === undefined || (asked.delay <= delay + 1 && asked.delay >= Math.max(0, delay - passed) - 1))

/** A settlement in the words of a sentence. */
export const describe = ({ delay, queue, reason, tag }: Allowed | Asked): string => {
  const details = [
    reason,
    queue === undefined ? undefined : `to ${queue}`,
    (tag === "Retry" || tag === "Release") && delay !== undefined ? `in ${delay} ms` : undefined
  ].filter((detail) => detail !== undefined)
  return details.length === 0 ? tag : `${tag} (${details.join(", ")})`
}
