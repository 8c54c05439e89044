/**
 * The audit lines of single letters: a JSON object each, between the lines of the beginning and the end of their operation.
 *
 * | field | |
 * | --- | --- |
 * | `time` | when it was written, before the letter left |
 * | `event` | `letter` |
 * | `operation`, `command`, `operator`, `broker` | as in the first line |
 * | `queue` | the queue that the letter leaves |
 * | `letter` | its id |
 * | `to` | the queue that it goes to; absent if it is removed |
 */
import type { DeadLetter } from "./internal/deadLetter.ts"

/** The operation that moves or removes letters. */
export interface Operation {
  /** The id of the operation. */
  readonly operation: string
  /** The command, such as `dead-letters purge`. */
  readonly command: string
  readonly operator: string
  readonly broker: string
  readonly queue: string
  /** Whether letters are removed for good. Default: each goes to `to`, or to the queue that it came from. */
  readonly isRemoval?: boolean | undefined
  /** The queue that all go to. */
  readonly to?: string | undefined
}

/** Returns a new id of an operation. */
export const newId = (): string => crypto.randomUUID().replaceAll("-", "").slice(0, 12)

/**
 * Returns the lines of letters that are about to leave, each with its line end. `now` is in milliseconds since 1970. Use it in the
 * option `audit` of `DeadLetters.redrive` and others.
 *
 * @example
 * ```ts
 * import { AuditLine } from "@requeue/operations"
 *
 * const operation = { operation: "fix-17", command: "redrive", operator: "ann", broker: "rabbit", queue: "orders.dlq" }
 * AuditLine.ofLetters(operation, [], 0) // => ""
 * ```
 */
export const ofLetters = (
  { isRemoval = false, to, ...operation }: Operation,
  letters: ReadonlyArray<Pick<DeadLetter, "id" | "origin">>,
  now: number
): string => {
  const time = new Date(now).toISOString()
  return letters
    .map(({ id, origin }) => {
      const target = isRemoval ? undefined : (to ?? origin?.queue)
      return `${JSON.stringify({ time, event: "letter", ...operation, letter: id, to: target })}\n`
    })
    .join("")
}
