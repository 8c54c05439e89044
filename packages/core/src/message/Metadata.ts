/**
 * What Requeue itself knows about a message and must not lose when the message is copied: for a retry, a hop of a long
 * delay, a dead letter, a redrive.
 *
 * On the wire it is one compact JSON object of at most {@link budget} bytes, carried where the broker has room for it
 * (a header, a message attribute, an envelope). A message without it is a foreign producer's, and is consumed as it is.
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

/** Why a message was given up. */
export type Reason = "retries-exhausted" | "permanent" | "undecodable" | "too-old"

/** The error of a failed attempt, as much of it as travels with the message. */
export interface ErrorSummary {
  readonly name: string
  readonly message: string
}

/** One failed attempt in a message's history. */
export interface Attempt {
  readonly attempt: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly error: string
  /** The delay that was given to the next delivery, in milliseconds. */
  readonly delay: Delay
}

/** How a message became a dead letter. */
export interface DeadLetter {
  /** The queue it was consumed from. */
  readonly queue: string
  readonly attempts: number
  readonly reason: Reason
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly error: ErrorSummary
}

export interface Metadata {
  readonly id: string
  readonly attempts: number
  readonly notBefore: number
  readonly firstPublished: number
  readonly redrives: number
  readonly history: ReadonlyArray<Attempt>
  readonly deadLetter: DeadLetter | undefined
}

/** The header (or attribute) that carries the metadata on brokers that have headers. */
export const header = "requeue"

/** The longest encoded form, in UTF-8 bytes. */
export const budget = 2048

/** The longest message id, in characters. */
export const idLimit = 200

/** The longest error text that is kept, in characters. */
export const errorLimit = 256

/** How many failed attempts the history keeps at most. */
export const historyLimit = 10

const noHistory: ReadonlyArray<Attempt> = []

/** The metadata of a message that is published for the first time. */
export const make = (id: string, now: number, notBefore = 0): Metadata => ({
  id,
  attempts: 0,
  notBefore,
  firstPublished: now,
  redrives: 0,
  history: noHistory,
  deadLetter: undefined
})

/** The history with one more failed attempt; the oldest go first. */
export const remember = (history: ReadonlyArray<Attempt>, attempt: Attempt): ReadonlyArray<Attempt> => [
  ...history.slice(1 - historyLimit),
  { ...attempt, error: attempt.error.slice(0, errorLimit) }
]

/**
 * Encodes the metadata as JSON within {@link budget}: the oldest history is dropped first, then the end of the dead
 * letter's error message. The id and the queue's name are kept whole; {@link idLimit} printable characters of each fit.
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

/** A character has three bytes at most; hardly ever must they be counted. */
const fits = (text: string): boolean => text.length * 3 <= budget || new TextEncoder().encode(text).length <= budget

/**
 * Decodes what {@link encode} wrote; `undefined` for anything else, so that a foreign header of the same name is
 * treated as a foreign message and not as an error.
 */
export const decode = (text: string): Metadata | undefined => {
  try {
    return fromJson(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** The same for what is parsed already, as part of an envelope. */
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
  const [attempt, at, error, delay] = [count(entry[0]), count(entry[1]), entry[2] as unknown, count(entry[3])]
  if (attempt === undefined || at === undefined || typeof error !== "string" || delay === undefined) return []
  return [{ attempt, at, error, delay }]
}

const reasons: ReadonlyArray<unknown> = [
  "retries-exhausted",
  "permanent",
  "undecodable",
  "too-old"
] satisfies Array<Reason>

const decodeDeadLetter = (dl: unknown): DeadLetter | undefined => {
  if (!isRecord(dl) || typeof dl["q"] !== "string" || !reasons.includes(dl["r"])) return undefined
  return {
    queue: dl["q"],
    attempts: count(dl["a"]) ?? 0,
    reason: dl["r"] as Reason,
    at: count(dl["t"]) ?? 0,
    error: { name: text(dl["n"]), message: text(dl["m"]) }
  }
}

const text = (u: unknown): string => (typeof u === "string" ? u : "")

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null

const count = (u: unknown): number | undefined =>
  typeof u === "number" && Number.isFinite(u) && u >= 0 ? u : undefined
