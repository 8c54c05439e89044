/** The limits of shares: how long a consumer must wait for another message of a share. */
import { ShareLimits } from "@requeue/core"
import type { Timers } from "@requeue/core/port"

/** The deliveries to a queue's consumers with a rate limit of shares. */
export class Begun {
  /** Ends when a limit lets another message through. */
  opening: Timers.Timer | undefined = undefined
  /** The last deliveries of each share. The share that was last delivered is the last one. */
  readonly #times = new Map<string, ReadonlyArray<number>>()

  /** Records a delivery at this time, in monotonic milliseconds. */
  record(fairBy: string, { max, per }: NonNullable<ShareLimits.ShareLimits["rateLimit"]>, now: number): void {
    const times = [...(this.#times.get(fairBy) ?? []), now].slice(-max)
    this.#times.delete(fairBy)
    this.#times.set(fairBy, times)
    for (const [other, all] of this.#times) {
      if (all.at(-1)! + per + ShareLimits.margin > now) break
      this.#times.delete(other)
    }
  }

  /** Returns the time of the `max`th last delivery; `undefined` if there were fewer. */
  last(fairBy: string, max: number): number | undefined {
    return this.#times.get(fairBy)?.at(-max)
  }
}

/**
 * Returns how long a consumer must wait for another message of a share, in milliseconds: 0 if it may have one, `Infinity` if it must wait
 * for the end of a delivery. `now` is in monotonic milliseconds.
 */
export const waitOf = (
  { concurrency = Number.POSITIVE_INFINITY, rateLimit }: ShareLimits.ShareLimits,
  { begun, fairBy, inFlight }: { readonly begun: Begun; readonly fairBy: string; readonly inFlight: number },
  now: number
): number => {
  if (inFlight >= concurrency) return Number.POSITIVE_INFINITY
  if (rateLimit === undefined) return 0
  const last = begun.last(fairBy, rateLimit.max)
  return last === undefined ? 0 : Math.max(0, last + rateLimit.per + ShareLimits.margin - now)
}
