/** What failures mean for their messages: may it be tried again, and does it say anything about the other messages. */
import type { Failure } from "./Failure.ts"

/**
 * What a failure means for its message:
 *
 * - `retry`: as the policy says, and it counts towards consumer backoff.
 * - `retry-uncounted`: the same, but consumer backoff does not count it.
 * - `dead-letter`: give up at once, reason `permanent`.
 * - `drop`: remove the message; no dead letter is kept.
 */
export type Classification = "retry" | "retry-uncounted" | "dead-letter" | "drop"

/**
 * Which failures are not simply retried, by the error's name or `_tag` anywhere in its cause chain; `with` is asked
 * first and may answer `undefined`, or throw, to leave it to the tags.
 */
export interface Classifier {
  readonly permanent: ReadonlyArray<string>
  readonly drop: ReadonlyArray<string>
  readonly uncounted: ReadonlyArray<string>
  readonly with: ((failure: Failure) => Classification | undefined) | undefined
}

/** Simply retries everything that does not say otherwise itself. */
export const make = (options: Partial<Classifier> = {}): Classifier => ({
  permanent: [],
  drop: [],
  uncounted: [],
  with: undefined,
  ...options
})

/** What a failure means. Total: whatever the classifier's own function does, there is an answer. */
export const classify = (self: Classifier, failure: Failure): Classification => {
  const answer = answerOf(() => self.with?.(failure))
  if (answer !== undefined) return answer
  const has = (tags: ReadonlyArray<string>) => failure.tags.some((tag) => tags.includes(tag))
  if (has(self.drop) || failure.tags.includes("DropError")) return "drop"
  if (has(self.permanent) || failure.permanent) return "dead-letter"
  return has(self.uncounted) ? "retry-uncounted" : "retry"
}

const classifications: ReadonlyArray<unknown> = ["retry", "retry-uncounted", "dead-letter", "drop"]

/** A policy's own function must not take the consumer down: one that throws, or says anything else, gives no answer. */
const answerOf = (ask: () => Classification | undefined): Classification | undefined => {
  try {
    const answer = ask()
    return classifications.includes(answer) ? answer : undefined
  } catch {
    return undefined
  }
}
