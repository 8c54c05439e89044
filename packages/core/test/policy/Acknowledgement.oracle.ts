/**
 * The rule of precedence once more, as one reads it: for every message, scan the calls for the first that reaches it.
 * Nothing is reduced; nothing is shared with the implementation but the types.
 */
import type { Call, Outcome, Verdict } from "../../src/policy/Acknowledgement.ts"

type Said = Call | undefined

/** What one call says to one message, if anything. */
const reaches = (call: Call, index: number): boolean =>
  call._tag.endsWith("All") || (call as { index: number }).index === index

/** What asks for one message to be delivered again. */
const isRetry = (call: Call): call is Extract<Call, { _tag: "Retry" | "Fail" }> =>
  call._tag === "Retry" || call._tag === "Fail"

export const verdictOf = (calls: ReadonlyArray<Call>, index: number, outcome: Outcome): Verdict => {
  const mine = calls.filter((call) => reaches(call, index))
  const deciding: Said = mine[0]
  // "What is still without a verdict when the handler ends takes its outcome."
  if (deciding === undefined) {
    return outcome === "success"
      ? { _tag: "Ack", by: "outcome" }
      : { _tag: "Retry", by: "outcome", delay: undefined, backoff: true }
  }
  const by = deciding._tag.endsWith("All") ? "batch" : "message"
  if (deciding._tag === "Ack" || deciding._tag === "AckAll") return { _tag: "Ack", by }
  // "The first delay given on the message itself, else the first given to `retryAll`, else the policy's."
  const own = mine.flatMap((call) => (isRetry(call) && call.delay !== undefined ? [call.delay] : []))
  const ofBatch = calls.flatMap((call) => (call._tag === "RetryAll" && call.delay !== undefined ? [call.delay] : []))
  const retry: Verdict = { _tag: "Retry", by, delay: own[0] ?? ofBatch[0], backoff: deciding.backoff ?? true }
  // "A `fail` is a retry with an error of the message's own."
  return deciding._tag === "Fail" ? { ...retry, failed: { error: deciding.error } } : retry
}
