/**
 * The audit lines of single letters: one JSON object for each letter that an operation moves or removes. In an audit, they
 * stand between the line for the beginning of the operation and the line for its end.
 *
 * | field | |
 * | --- | --- |
 * | `time` | when the line was written, which is before the letter leaves |
 * | `event` | `letter` |
 * | `operation`, `command`, `operator`, `broker` | as in the line for the beginning |
 * | `queue` | the queue that the letter leaves |
 * | `letter` | its id |
 * | `key`, `fairBy` | its key, and whose it is; absent if it has none |
 * | `to` | the queue that the letter goes to; absent if the letter is removed |
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
  /**
   * Whether the operation removes letters for good. Default: false; then each letter goes to `to`, or to the queue that it
   * came from.
   */
  readonly isRemoval?: boolean | undefined
  /** The queue that all letters go to. Default: each letter goes to the queue that it came from. */
  readonly to?: string | undefined
}

/** Returns a new id for an operation. */
export const newId = (): string => crypto.randomUUID().replaceAll("-", "").slice(0, 12)

/**
 * Returns the audit lines of letters that are about to leave their queue, each with its line end. `now` is in milliseconds
 * since 1970. Use it in the option `audit` of calls such as `DeadLetters.redrive`.
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
  letters: ReadonlyArray<Pick<DeadLetter, "fairBy" | "id" | "key" | "origin">>,
  now: number
): string => {
  const time = new Date(now).toISOString()
  return letters
    .map(({ fairBy, id, key, origin }) => {
      const target = isRemoval ? undefined : (to ?? origin?.queue)
      return `${JSON.stringify({ time, event: "letter", ...operation, letter: id, key, fairBy, to: target })}\n`
    })
    .join("")
}
