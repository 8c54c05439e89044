/**
 * Metadata: the data of Requeue's own that travels with a message, and that every copy of it keeps (a retry, a hop of a
 * long delay, a dead letter, a redrive).
 *
 * On the wire it is one compact JSON object of at most {@link budget} bytes, in a header, a message attribute or an
 * envelope, as the broker allows. A message without it comes from a foreign producer and is consumed as it is.
 *
 * | key | field | meaning |
 * | --- | --- | --- |
 * | `v` | | version of this format, 1 |
 * | `id` | `id` | stable message id |
 * | `a` | `attempts` | attempts used up before this copy was published |
 * | `nb` | `notBefore` | epoch milliseconds before which no handler may run; absent when 0 |
 * | `t0` | `firstPublished` | epoch milliseconds of the first publish |
 * | `rd` | `redrives` | times the message came back from a dead-letter queue; absent when 0 |
 * | `h` | `history` | last failed attempts, `[attempt, epoch ms, error, delay ms]`, newest last; absent when empty |
 * | `dl` | `deadLetter` | `{ q, a, r, t, n, m }`: origin queue, attempts, reason, epoch ms, error name, error message |
 */
import type { Delay } from "./Delay.ts"

/**
 * Why a message was given up:
 *
 * - `retries-exhausted`: the last allowed attempt failed, or asked for a retry.
 * - `permanent`: the error says that no retry can help.
 * - `undecodable`: the codec cannot read the body.
 * - `too-old`: the next retry would be due after the policy's `maxAge`.
 */
export type Reason = "retries-exhausted" | "permanent" | "undecodable" | "too-old"

/** Every {@link Reason}. */
export const reasons: ReadonlyArray<Reason> = ["retries-exhausted", "permanent", "undecodable", "too-old"]

/** The part of an error that travels with the message. */
export interface ErrorSummary {
  /** The error's name or `_tag`. */
  readonly name: string
  readonly message: string
}

/** One failed attempt in a message's history. */
export interface Attempt {
  /** The number of the attempt, 1 for the first delivery. */
  readonly attempt: number
  /** When it failed, in milliseconds since the epoch. */
  readonly at: number
  /** The error's name and message, cut to {@link errorLimit} characters. */
  readonly error: string
  /** The delay until the next delivery, in milliseconds. */
  readonly delay: Delay
}

/** How a message became a dead letter. */
export interface DeadLetter {
  /** The queue that it was consumed from. */
  readonly queue: string
  /** The deliveries that it had there. */
  readonly attempts: number
  readonly reason: Reason
  /** When it was given up, in milliseconds since the epoch. */
  readonly at: number
  /** The error of the last attempt. */
  readonly error: ErrorSummary
}

/** The metadata of one message. Times are in milliseconds since the epoch. */
export interface Metadata {
  /** The message's id. */
  readonly id: string
  /** Attempts that were used up before this copy was published. */
  readonly attempts: number
  /** The time before which no handler may run; 0 for none. */
  readonly notBefore: number
  /** The time of the first publish. */
  readonly firstPublished: number
  /** How often the message was redriven from a dead-letter queue. */
  readonly redrives: number
  /** The last failed attempts, newest last, {@link historyLimit} at most. */
  readonly history: ReadonlyArray<Attempt>
  /** Set on dead letters only. */
  readonly deadLetter: DeadLetter | undefined
}

/** The name of the header, or message attribute, that carries the metadata. */
export const header = "requeue"

/** The most bytes that the encoded metadata may have, in UTF-8. */
export const budget = 2048

/** The longest message id, in characters. */
export const idLimit = 200

/** The length to which an error's text is cut, in characters. */
export const errorLimit = 256

/** The most failed attempts that a history keeps. */
export const historyLimit = 10

const noHistory: ReadonlyArray<Attempt> = []

/** The metadata of a message that is published for the first time. `now` and `notBefore` are epoch milliseconds. */
export const make = (id: string, now: number, notBefore = 0): Metadata => ({
  id,
  attempts: 0,
  notBefore,
  firstPublished: now,
  redrives: 0,
  history: noHistory,
  deadLetter: undefined
})

/** The history with one more failed attempt. Beyond {@link historyLimit}, the oldest is left out. */
export const remember = (history: ReadonlyArray<Attempt>, attempt: Attempt): ReadonlyArray<Attempt> => [
  ...history.slice(1 - historyLimit),
  { ...attempt, error: attempt.error.slice(0, errorLimit) }
]

/**
 * Encodes metadata as JSON of at most {@link budget} bytes. Where it would be longer, it leaves out the oldest attempts
 * first, then the end of the dead letter's error message. The id and the queue's name are never cut: with up to
 * {@link idLimit} printable characters each, they fit.
 *
 * @example
 * ```ts
 * import { Metadata } from "@requeue/core"
 *
 * Metadata.encode(Metadata.make("m1", 1_700_000_000_000)) // => '{"v":1,"id":"m1","a":0,"t0":1700000000000}'
 * ```
 */
export const encode = (self: Metadata): string => {
  const dead = self.deadLetter
  const render = (history: ReadonlyArray<Attempt>, messageLimit: number): string =>
    JSON.stringify({
      v: 1,
      id: self.id,
      a: self.attempts,
      nb: self.notBefore || undefined,
      t0: self.firstPublished,
      rd: self.redrives || undefined,
      h: history.length === 0 ? undefined : history.map((h) => [h.attempt, h.at, h.error, h.delay]),
      dl: dead && {
        q: dead.queue,
        a: dead.attempts,
        r: dead.reason,
        t: dead.at,
        n: dead.error.name.slice(0, errorLimit / 4),
        m: dead.error.message.slice(0, messageLimit)
      }
    })
  for (let from = 0; from <= self.history.length; from++) {
    const text = render(self.history.slice(from), errorLimit)
    if (fits(text)) return text
  }
  for (let limit = errorLimit / 2; limit >= 1; limit /= 2) {
    const text = render([], limit)
    if (fits(text)) return text
  }
  return render([], 0)
}

/** A character has three bytes at most, so that the bytes of a short text need not be counted. */
const fits = (text: string): boolean => text.length * 3 <= budget || new TextEncoder().encode(text).length <= budget

/**
 * Decodes the text that {@link encode} returned; `undefined` for any other text. A foreign header of the same name thus
 * makes a foreign message, not an error.
 */
export const decode = (text: string): Metadata | undefined => {
  try {
    return fromJson(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Decodes metadata that is parsed JSON already, as in an envelope; `undefined` for anything else. */
export const fromJson = (json: unknown): Metadata | undefined => {
  if (!isRecord(json) || json["v"] !== 1 || typeof json["id"] !== "string" || json["id"] === "") return undefined
  const [attempts, firstPublished] = [count(json["a"]), count(json["t0"])]
  if (attempts === undefined || firstPublished === undefined) return undefined
  return {
    id: json["id"],
    attempts,
    notBefore: count(json["nb"]) ?? 0,
    firstPublished,
    redrives: count(json["rd"]) ?? 0,
    history: Array.isArray(json["h"]) ? json["h"].flatMap(decodeAttempt) : [],
    deadLetter: decodeDeadLetter(json["dl"])
  }
}

const decodeAttempt = (entry: unknown): ReadonlyArray<Attempt> => {
  if (!Array.isArray(entry)) return []
  const [first, second, error, last]: ReadonlyArray<unknown> = entry
  const [attempt, at, delay] = [count(first), count(second), count(last)]
  if (attempt === undefined || at === undefined || typeof error !== "string" || delay === undefined) return []
  return [{ attempt, at, error, delay }]
}

const decodeDeadLetter = (dl: unknown): DeadLetter | undefined => {
  if (!isRecord(dl) || typeof dl["q"] !== "string") return undefined
  const reason = reasons.find((known) => known === dl["r"])
  if (reason === undefined) return undefined
  return {
    queue: dl["q"],
    attempts: count(dl["a"]) ?? 0,
    reason,
    at: count(dl["t"]) ?? 0,
    error: { name: text(dl["n"]), message: text(dl["m"]) }
  }
}

const text = (u: unknown): string => (typeof u === "string" ? u : "")

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null

const count = (u: unknown): number | undefined =>
  typeof u === "number" && Number.isFinite(u) && u >= 0 ? u : undefined
