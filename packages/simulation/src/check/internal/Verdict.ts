/**
 * The table of calls: which call of a handler decides about a message, and which delay counts. The first call that reaches a
 * message sets its verdict; the delay is chosen separately.
 */
import type { Call, Key } from "../../History.ts"

/** The verdict of the calls so far on one message. */
export interface Verdict {
  readonly tag: "ack" | "retry" | undefined
  /** The first delay given on the message itself. */
  readonly own: number | undefined
  /** The first delay given to `retryAll`. */
  readonly all: number | undefined
  /** The kind of the error with which `fail` set it: then what the handler throws does not count. */
  readonly failed: string | undefined
}

/** No call yet. */
export const none: Verdict = { tag: undefined, own: undefined, all: undefined, failed: undefined }

/** The verdict on a message after one more call. */
export const after = (verdict: Verdict, { delay, error = "error", key, name }: Call, message: Key): Verdict => {
  if (key !== undefined && key !== message) return verdict
  const tag = verdict.tag ?? (name === "ack" || name === "ackAll" ? "ack" : "retry")
  if (name === "retryAll") return { ...verdict, tag, all: verdict.all ?? delay }
  const failed = verdict.failed ?? (verdict.tag === undefined && name === "fail" ? error : undefined)
  const isDelayed = tag === "retry" && (name === "retry" || name === "fail")
  return { ...verdict, tag, failed, own: isDelayed ? (verdict.own ?? delay) : verdict.own }
}
