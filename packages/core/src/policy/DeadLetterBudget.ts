/**
 * Dead-letter budgets: an outage must stop the consumer instead of moving its whole queue to the dead letters.
 *
 * Every dead letter costs 1, even when the policy discards it, and every success earns a fraction back. When less than 1
 * is left, the consumer gives the message back and stops with {@link DeadLetterBudgetExhausted}.
 */
import * as Data from "effect/Data"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** How many dead letters a consumer may make. */
export interface DeadLetterBudget {
  /** The budget at the start, and the most that it can be. */
  readonly max: number
  /** The part of a dead letter that each success earns. */
  readonly perSuccess: number
}

/** A budget as plain options. */
export interface Options {
  /** The budget at the start, and the most that it can be: a whole number >= 1. */
  readonly max: number
  /** The part of a dead letter that each success earns, a number >= 0. Default: 0.1. */
  readonly perSuccess?: number | undefined
}

const perSuccessKind: OptionKind.OptionKind = {
  expected: "a finite number >= 0",
  holds: (value) => OptionKind.number(0).holds(value) && Number.isFinite(value)
}

const maxKind = OptionKind.whole(1)

const kinds: OptionNames.Of<Options> = { max: maxKind, perSuccess: perSuccessKind }

/**
 * Builds a budget of `max` dead letters, of which each success earns `perSuccess` back (default: 0.1, that is one dead
 * letter for ten successes).
 *
 * @throws RangeError when `max` is not a whole number >= 1, `perSuccess` is negative or not finite, or an option is unknown
 *
 * @example
 * ```ts
 * import { DeadLetterBudget } from "@requeue/core"
 *
 * DeadLetterBudget.make(100) // => { max: 100, perSuccess: 0.1 }
 * ```
 */
export const make = (max: number, options: Omit<Options, "max"> = {}): DeadLetterBudget => {
  OptionNames.orThrow(OptionNames.argument("DeadLetterBudget.make", "max", max, maxKind))
  OptionNames.check("DeadLetterBudget.make", options, { perSuccess: perSuccessKind })
  const { perSuccess = 0.1 } = options
  return { max, perSuccess }
}

/**
 * The budget that {@link make} builds from plain options. A built budget stays what it is.
 *
 * @throws RangeError when an option is unknown or out of its range, or the input is no object
 */
export const from = (input: Options): DeadLetterBudget => {
  OptionNames.check("DeadLetterBudget.from", input, kinds)
  return make(input.max, { perSuccess: input.perSuccess })
}

/** The budget that is left after a success. */
export const credited = (self: DeadLetterBudget, left: number): number => Math.min(self.max, left + self.perSuccess)

/** The error that a sum of fractions may have: ten times 0.1 must do for a dead letter. */
const tolerance = 1e-9

/** The budget that is left after a dead letter; `undefined` when there was not enough for it. */
export const debited = (left: number): number | undefined => (left >= 1 - tolerance ? Math.max(0, left - 1) : undefined)

/** A consumer stopped itself because its budget was used up. Its messages stay in the queue. */
export class DeadLetterBudgetExhausted extends Data.TaggedError("DeadLetterBudgetExhausted")<{
  readonly queue: string
  /** The budget that it had at the start. */
  readonly max: number
}> {
  override get message() {
    return (
      `deadLetterBudget: the consumer of ${this.queue} stopped: ${this.max} messages were dead-lettered faster than ` +
      `successes earned them back. Its messages stay in the queue; mend what they all need, then start it again`
    )
  }
}
