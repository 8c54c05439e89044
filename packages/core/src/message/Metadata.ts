/**
 * Metadata: Requeue's own data in a message. Every copy of the message keeps it: a retry, a part of a long delay, a
 * dead letter, a redrive.
 *
 * On the wire it is one compact JSON object of at most {@link budget} bytes, in a header, a message attribute or an
 * envelope. A message without metadata comes from a foreign producer and is consumed unchanged.
 *
 * | key | field | meaning |
 * | --- | --- | --- |
 * | `v` | | version of this format, 1 |
 * | `id` | `id` | stable message id |
 * | `a` | `attempts` | attempts used up before this copy was published |
 * | `nb` | `notBefore` | epoch milliseconds before which no handler may run; absent when 0 |
 * | `t0` | `firstPublished` | epoch milliseconds of the first publish |
 * | `rd` | `redrives` | times the message was redriven from a dead-letter queue; absent when 0 |
 * | `op` | `operation` | the redrive that published this copy, or the copy from which it was made; absent when there was none |
 * | `h` | `history` | last failed attempts, `[attempt, epoch ms, error, delay ms]`, newest last; absent when empty |
 * | `dl` | `deadLetter` | `{ q, a, r, t, n, m, s }`: origin queue, attempts, reason, epoch ms, error name, error message with those of its causes, stack trace; `s` absent when there is none, or no room for it |
 * | `c` | `cut` | what was left out because the broker refused a larger copy, 1 to 4; absent when nothing was |
 */
import { type Delay, max as longestDelay } from "./Delay.ts"
import * as StackText from "./StackText.ts"

/**
 * Why a message was dead-lettered:
 *
 * - `retries-exhausted`: the last allowed attempt failed, or its handler called `retry`.
 * - `permanent`: the error rules out retries.
 * - `undecodable`: the codec cannot read the body.
 * - `too-old`: the next retry would be due after the policy's `maxAge`.
 * - `too-many-deliveries`: it had more than `maxDeliveries` deliveries without an end, perhaps because it kills its
 *   process.
 */
export type Reason = "retries-exhausted" | "permanent" | "undecodable" | "too-old" | "too-many-deliveries"

/** Every {@link Reason}. */
export const reasons: ReadonlyArray<Reason> = [
  "retries-exhausted",
  "permanent",
  "undecodable",
  "too-old",
  "too-many-deliveries"
]

/**
 * The part that was left out of metadata because the broker refused a larger copy. Each value includes the values
 * before it:
 *
 * - `history`: the failed attempts, and the stack trace of a dead letter's error.
 * - `error-text`: the message of a dead letter's error.
 * - `error`: the name of a dead letter's error.
 * - `all`: everything that only describes the origin of a dead letter.
 */
export type Truncation = "history" | "error-text" | "error" | "all"

/** Every {@link Truncation}, the smallest loss first. */
export const truncations: ReadonlyArray<Truncation> = ["history", "error-text", "error", "all"]

/** The part of an error that is stored in the message. */
export interface ErrorSummary {
  /** The error's name or `_tag`. */
  readonly name: string
  readonly message: string
  /**
   * The stack trace, bounded: the frames of the error, without the name and message above them, then each error of its
   * cause chain, or of an `AggregateError`, with its frames. Left out if the error has no stack. It may be a getter,
   * since engines format a stack when it is first read.
   */
  readonly stack?: string | undefined
}

/** One failed attempt in a message's history. */
export interface Attempt {
  /** The number of the attempt, from 1. */
  readonly attempt: number
  /** When the attempt failed, in epoch milliseconds. */
  readonly at: number
  /** The error's name and message, cut to {@link errorLimit} characters. */
  readonly error: string
  /** The delay until the next delivery, in milliseconds. */
  readonly delay: Delay
}

/** How a message became a dead letter. */
export interface DeadLetter {
  /** The origin queue: the queue from which the message was consumed. */
  readonly queue: string
  /** How often the origin queue delivered the message. */
  readonly attempts: number
  readonly reason: Reason
  /** When the message was dead-lettered, in epoch milliseconds. */
  readonly at: number
  /** The error of the last attempt. Its stack trace is as long as the budget allows. */
  readonly error: ErrorSummary
}

/** The metadata of one message; the table of this module describes the fields. Times are in epoch milliseconds. */
export interface Metadata {
  readonly id: string
  /** Attempts used up before this copy was published. */
  readonly attempts: number
  /** The time before which no handler may run; 0 if there is none. */
  readonly notBefore: number
  readonly firstPublished: number
  /**
   * `true` if the publish time is unknown: `firstPublished` is then the time of this delivery. Copies do not store this
   * flag.
   */
  readonly isUndated?: true | undefined
  /** How often the message was redriven from a dead-letter queue. */
  readonly redrives: number
  /**
   * The redrive that published this copy, or, for a retry or a dead letter, the copy from which it was made:
   * `<operation>:<run>:<stage>`, at most 64 letters, digits, ".", "_" and "-". `undefined` if there was none.
   */
  readonly operation?: string | undefined
  /** The last failed attempts, newest last, at most {@link historyLimit}. */
  readonly history: ReadonlyArray<Attempt>
  /** How the message became a dead letter; `undefined` if it is not one. */
  readonly deadLetter: DeadLetter | undefined
  /** The part of this metadata that was left out because the broker refused a larger copy. */
  readonly truncation?: Truncation | undefined
}

/** The header or message attribute that carries the metadata. */
export const header = "requeue"

/** The longest encoded metadata, in bytes of UTF-8. */
export const budget = 2048

/** The longest message id, in characters. */
export const idLimit = 200

/** Control characters take six bytes each in the metadata, and some brokers refuse them. */
const control = /\p{Cc}/u

/** Returns why a value cannot be the id or the key of a message; `undefined` if it can. */
export const problemOfId = (value: unknown): string | undefined => {
  if (typeof value !== "string") return `must be text, got ${typeof value}`
  if (value.length < 1 || value.length > idLimit) return `must have 1 to ${idLimit} characters, got ${value.length}`
  if (control.test(value) || !value.isWellFormed()) return "must have no control characters and no broken surrogates"
  return undefined
}

/** The most characters of an error's text. */
export const errorLimit = 256

/** The most failed attempts in a history. */
export const historyLimit = 10

/** The highest count of attempts or redrives. A higher count is stored as this number. */
export const countLimit = 0x7fffffff

/** The most characters of an error's name. */
const nameLimit = 64

/** The name of a redrive as it travels: short, of one-byte characters. */
const operationPattern = /^[\w.:-]{1,64}$/

/** The last time that a `Date` can hold, in epoch milliseconds. */
const timeLimit = 8.64e15

/** How far synchronised clocks may differ, in milliseconds. */
const clockTolerance = 60_000

const noHistory: ReadonlyArray<Attempt> = []

/** Rounds fractions up, and returns the nearest number from 0 to the limit; 0 for NaN. */
const within = (n: number, limit: number): number => Math.min(Math.max(0, Math.ceil(n) || 0), limit)

const countOf = (n: number): number => within(n, countLimit)
const timeOf = (n: number): number => within(n, timeLimit)
const delayOf = (n: number): Delay => within(n, longestDelay)

/** A class: see `ShortList`. */
class Made implements Metadata {
  readonly id: string
  readonly attempts: number
  readonly notBefore: number
  readonly firstPublished: number
  readonly redrives: number
  declare readonly operation?: string
  readonly history: ReadonlyArray<Attempt>
  readonly deadLetter: DeadLetter | undefined
  declare readonly truncation?: Truncation

  constructor(self: Metadata) {
    this.id = self.id
    this.attempts = self.attempts
    this.notBefore = self.notBefore
    this.firstPublished = self.firstPublished
    this.redrives = self.redrives
    if (self.operation !== undefined) this.operation = self.operation
    this.history = self.history
    this.deadLetter = self.deadLetter
    if (self.truncation !== undefined) this.truncation = self.truncation
  }
}

/**
 * Makes the metadata of a first publish; times are in epoch ms. Invalid times of foreign senders become the nearest
 * valid times.
 */
export const make = (id: string, now: number, notBefore = 0): Metadata =>
  new Made({
    id,
    attempts: 0,
    notBefore: timeOf(notBefore),
    firstPublished: timeOf(now),
    redrives: 0,
    history: noHistory,
    deadLetter: undefined
  })

/** Makes the metadata of a foreign message whose publish time is unknown: `now` is used instead. */
export const undated = (id: string, now: number): Metadata => ({ ...make(id, now), isUndated: true })

/**
 * Makes the id of a foreign message that has none, from a digest of its content. Messages with the same content have the same id, so it
 * does not name one message.
 */
export const idOfContent = (digest: string): string => `content-${digest}`

/** Whether an id has the form of {@link idOfContent}. */
export const isOfContent = ({ id }: Pick<Metadata, "id">): boolean => /^content-[\da-f]{16}$/.test(id)

/** Returns when the message was first published, in epoch milliseconds; `undefined` if unknown. */
export const publishedAt = ({ firstPublished, isUndated }: Metadata): number | undefined =>
  isUndated === true ? undefined : firstPublished

/** Returns the name of a redrive, as reports and events show it, from {@link Metadata.operation}. */
export const operationId = (operation: string): string => operation.split(":", 1)[0]!

/** Returns the metadata without the parts that `cut` names. Parts that were left out before stay out. */
export const reduce = (self: Metadata, cut: Truncation | undefined): Metadata => {
  if (cut === undefined) return self
  const { deadLetter } = self
  const step = truncations.indexOf(cut)
  const error = {
    name: step < 2 ? (deadLetter?.error.name ?? "") : "",
    message: step < 1 ? (deadLetter?.error.message ?? "") : ""
  }
  return {
    ...self,
    history: noHistory,
    deadLetter: deadLetter === undefined || cut === "all" ? undefined : { ...deadLetter, error },
    truncation: truncations[Math.max(step, self.truncation === undefined ? 0 : truncations.indexOf(self.truncation))]
  }
}

/** Copies the beginning of a text: the result of `slice` would keep the whole text in memory. */
const truncate = (limit: number, text: string): string =>
  text.length <= limit ? text : String(JSON.parse(JSON.stringify(text.slice(0, limit))))

/**
 * Cuts an error to the size that a dead letter keeps: the name to 64 characters, the message to {@link errorLimit}, the
 * stack trace to {@link budget}.
 */
export const truncateError = ({ message, name, stack: whole = "" }: ErrorSummary): ErrorSummary => {
  const stack = StackText.shorten(whole, (text) => text.length <= budget)
  return {
    name: truncate(nameLimit, name),
    message: truncate(errorLimit, message),
    ...(stack === undefined ? {} : { stack })
  }
}

/** Adds a failed attempt to a history. Beyond {@link historyLimit}, the oldest attempt is removed. */
export const remember = (history: ReadonlyArray<Attempt>, attempt: Attempt): ReadonlyArray<Attempt> => [
  ...history.slice(1 - historyLimit),
  { ...attempt, error: truncate(errorLimit, attempt.error) }
]

/**
 * Returns how many milliseconds a message must still wait before a handler may run; `now` is in epoch milliseconds.
 *
 * `notBefore` may come from another machine's clock or a foreign sender, so it is trusted within limits. A time more
 * than 48 hours ahead (the longest delay, and as much clock difference) is ignored. A retry waits at most until
 * `maxAge` milliseconds after the first publish, and a first delivery at most until 24 hours after it.
 */
export const wait = (self: Metadata, now: number, maxAge: number): Delay => {
  const due = Math.min(self.notBefore, self.firstPublished + Math.max(maxAge, longestDelay))
  return self.notBefore > now + 2 * longestDelay ? 0 : Math.min(Math.max(0, Math.ceil(due - now)), longestDelay)
}

/**
 * Encodes metadata as JSON of at most {@link budget} bytes. If the JSON would be longer, `encode` first shortens the
 * dead letter's stack trace, then leaves out the oldest attempts, then the end of the dead letter's error message, then
 * `deadLetter`. The id and the queue's name are never cut: with up to {@link idLimit} printable characters each, they
 * fit.
 *
 * @example
 * ```ts
 * import { Metadata } from "@requeue/core/port"
 *
 * Metadata.encode(Metadata.make("m1", 1_700_000_000_000)) // => '{"v":1,"id":"m1","a":0,"t0":1700000000000}'
 * ```
 */
export const encode = (self: Metadata): string => {
  if (isNew(self)) return `{"v":1,"id":${JSON.stringify(self.id)},"a":0,"t0":${timeOf(self.firstPublished)}}`
  const history = self.history.slice(-historyLimit)
  for (let from = 0; from <= history.length; from++) {
    const text = render(self, history.slice(from), errorLimit)
    if (fits(text)) return from === 0 ? withStack(self, history, text) : text
  }
  for (let limit = errorLimit / 2; limit >= 1; limit /= 2) {
    const text = render(self, [], limit)
    if (fits(text)) return text
  }
  const text = render(self, [], 0)
  return fits(text) ? text : render({ ...self, deadLetter: undefined }, [], 0)
}

/** Whether there is only an id and a time, as in nearly all sent messages, and both are within their limits. */
const isNew = ({ attempts, truncation, deadLetter, history, id, notBefore, operation, redrives }: Metadata): boolean =>
  attempts === 0 &&
  notBefore === 0 &&
  redrives === 0 &&
  history.length === 0 &&
  deadLetter === undefined &&
  operation === undefined &&
  truncation === undefined &&
  id.length <= idLimit

const render = (self: Metadata, history: ReadonlyArray<Attempt>, messageLimit: number, stack?: string): string =>
  JSON.stringify(plain(self, history, messageLimit, stack))

/** Returns the encoded metadata: `text`, which has everything else, with as much of the stack trace as fits. */
const withStack = (self: Metadata, history: ReadonlyArray<Attempt>, text: string): string => {
  const { stack = "" } = self.deadLetter?.error ?? {}
  if (stack === "") return text
  const room = budget - bytesOf(text) - bytesOf(`,"s":`)
  const shortened = StackText.shorten(stack, (some) => bytesOf(JSON.stringify(some)) <= room)
  return shortened === undefined ? text : render(self, history, errorLimit, shortened)
}

/**
 * Returns the metadata as a plain object of any size, for {@link fromJson}.
 *
 * When to use: to store a message outside of a broker. Messages carry {@link encode}.
 */
export const toJson = (self: Metadata): Readonly<Record<string, unknown>> =>
  plain(self, self.history.slice(-historyLimit), errorLimit, self.deadLetter?.error.stack)

const plain = (self: Metadata, history: ReadonlyArray<Attempt>, messageLimit: number, stack?: string) => {
  const dead = self.deadLetter
  return {
    v: 1,
    id: self.id,
    a: countOf(self.attempts),
    nb: timeOf(self.notBefore) || undefined,
    t0: timeOf(self.firstPublished),
    rd: countOf(self.redrives) || undefined,
    op: decodeOperation(self.operation),
    h:
      history.length === 0
        ? undefined
        : history.map((h) => [countOf(h.attempt), timeOf(h.at), h.error.slice(0, errorLimit), delayOf(h.delay)]),
    dl: dead && {
      q: dead.queue,
      a: countOf(dead.attempts),
      r: dead.reason,
      t: timeOf(dead.at),
      n: dead.error.name.slice(0, nameLimit),
      m: dead.error.message.slice(0, messageLimit),
      s: stack
    },
    c: self.truncation === undefined ? undefined : truncations.indexOf(self.truncation) + 1
  }
}

/** A character has three bytes at most, so short texts need no count of bytes. */
const fits = (text: string): boolean => text.length * 3 <= budget || bytesOf(text) <= budget

const bytesOf = (text: string): number => new TextEncoder().encode(text).length

/**
 * Decodes text that {@link encode} made; returns `undefined` for other text. A message with a foreign header of the
 * name `requeue` is therefore a foreign message, not an error. Counts and times are always whole numbers within their
 * limits.
 *
 * @param published when the broker accepted this copy, in epoch milliseconds by its clock, if known; see {@link
 * setBack}
 */
export const decode = (text: string, published?: number): Metadata | undefined => {
  // Ours is never longer, and foreign text may have any size.
  if (text.length > budget) return undefined
  try {
    return fromJson(JSON.parse(text), published)
  } catch {
    return undefined
  }
}

/** Decodes metadata from parsed JSON, such as a part of an envelope, by the rules of {@link decode}. */
export const fromJson = (json: unknown, published?: number): Metadata | undefined => {
  if (!isRecord(json) || json["v"] !== 1) return undefined
  const [id, attempts, firstPublished] = [json["id"], count(json["a"]), time(json["t0"])]
  if (typeof id !== "string" || id === "" || id.length > idLimit) return undefined
  if (attempts === undefined || firstPublished === undefined) return undefined
  const decoded = new Made({
    id,
    attempts,
    notBefore: time(json["nb"]) ?? 0,
    firstPublished,
    redrives: count(json["rd"]) ?? 0,
    operation: decodeOperation(json["op"]),
    history: Array.isArray(json["h"]) ? json["h"].slice(-historyLimit).flatMap(decodeAttempt) : noHistory,
    deadLetter: decodeDeadLetter(json["dl"]),
    truncation: truncations[(count(json["c"]) ?? 0) - 1]
  })
  return published === undefined ? decoded : setBack(decoded, published)
}

/**
 * Corrects the times of a publisher whose clock is more than a minute ahead of the broker's, by the difference. `published`
 * is when the broker accepted this copy, in epoch milliseconds by its clock.
 */
export const setBack = (self: Metadata, published: number): Metadata => {
  const ahead = self.firstPublished - published
  // NaN where the broker reports no time.
  if (!(ahead > clockTolerance)) return self
  return { ...self, notBefore: Math.max(0, self.notBefore - ahead), firstPublished: published }
}

const decodeAttempt = (entry: unknown): ReadonlyArray<Attempt> => {
  if (!Array.isArray(entry)) return []
  const [first, second, error, last]: ReadonlyArray<unknown> = entry
  const [attempt, at, delay] = [count(first), time(second), whole(last, longestDelay)]
  if (attempt === undefined || at === undefined || typeof error !== "string" || delay === undefined) return []
  return [{ attempt, at, error: truncate(errorLimit, error), delay }]
}

const decodeOperation = (op: unknown): string | undefined =>
  typeof op === "string" && operationPattern.test(op) ? op : undefined

const decodeDeadLetter = (dl: unknown): DeadLetter | undefined => {
  // A name that fills the whole budget cannot travel on.
  if (!isRecord(dl) || typeof dl["q"] !== "string" || dl["q"].length > budget) return undefined
  const reason = reasons.find((known) => known === dl["r"])
  if (reason === undefined) return undefined
  return {
    queue: dl["q"],
    attempts: count(dl["a"]) ?? 0,
    reason,
    at: time(dl["t"]) ?? 0,
    error: truncateError({ name: text(dl["n"]), message: text(dl["m"]), stack: text(dl["s"]) })
  }
}

const text = (u: unknown): string => (typeof u === "string" ? u : "")

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null

/** Returns a whole number >= 0, cut to the limit; `undefined` for anything else. Adding 0 turns -0 into 0. */
const whole = (u: unknown, limit: number): number | undefined =>
  typeof u === "number" && Number.isInteger(u) && u >= 0 ? Math.min(u, limit) + 0 : undefined

const count = (u: unknown): number | undefined => whole(u, countLimit)
const time = (u: unknown): number | undefined => whole(u, timeLimit)
