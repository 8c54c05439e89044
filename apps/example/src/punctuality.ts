/** The lateness of retries, as the receiver saw it. */
import { turn } from "./ledger.ts"
import type { Visit } from "./receiver.ts"

export interface Punctuality {
  /** The number of retries that arrived and whose due time is known. */
  readonly measured: number
  /** The number of retries that arrived before they were due. It must be 0. */
  readonly early: number
  /** Milliseconds of lateness, by the broker, the wait for a free handler, and the way to the receiver. */
  readonly lateness: { readonly min: number; readonly median: number; readonly p99: number; readonly max: number }
}

/**
 * Measures the lateness of retries. A retry is due at the later of two times: the dispatcher's request to the broker, and the
 * Retry-After in the receiver's previous reply.
 */
export const measure = (visits: ReadonlyArray<Visit>, due: ReadonlyMap<string, number>): Punctuality => {
  const askedByReceiver = new Map<string, number>()
  const late: Array<number> = []
  for (const { at, attempt, id, notBefore } of visits) {
    const times = [due.get(turn(id, attempt)), askedByReceiver.get(turn(id, attempt))].filter((t) => t !== undefined)
    if (times.length > 0) late.push(at - Math.max(...times))
    if (notBefore !== undefined) askedByReceiver.set(turn(id, attempt + 1), notBefore)
  }
  late.sort((a, b) => a - b)
  const quantile = (q: number): number => round(late[Math.max(0, Math.ceil(q * late.length) - 1)] ?? 0)
  return {
    measured: late.length,
    early: late.filter((millis) => millis < 0).length,
    lateness: { min: quantile(0), median: quantile(0.5), p99: quantile(0.99), max: quantile(1) }
  }
}

const round = (millis: number): number => Math.round(millis * 10) / 10
