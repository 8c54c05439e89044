/**
 * Dead-letter budgets: in an outage the consumer stops instead of dead-lettering its whole queue.
 *
 * Every dead letter costs 1, even when the policy discards it, and every success earns a fraction back. When less than 1 is
 * left, the consumer returns the message and stops with {@link DeadLetterBudgetExhausted}.
 */
import * as Data from "effect/Data"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** How many dead letters a consumer may make. See {@link Options}. */
export interface DeadLetterBudget {
  readonly max: number
  readonly perSuccess: number
}

/** A budget as plain options. */
export interface Options {
  /** The initial and highest budget: a whole number >= 1. */
  readonly max: number
  /** The part of a dead letter that each success earns back, a number >= 0. Default: 0.1. */
  readonly perSuccess?: number | undefined
}

const perSuccessKind: OptionKind.OptionKind = {
  expected: "a finite number >= 0",
  holds: (value) => OptionKind.number(0).holds(value) && Number.isFinite(value)
}

const maxKind = OptionKind.whole(1)

const kinds: OptionNames.Of<Options> = { max: maxKind, perSuccess: perSuccessKind }

/**
 * Builds a budget of `max` dead letters. Each success earns `perSuccess` back; the default 0.1 is one dead letter for ten
 * successes.
 *
 * @throws RangeError when `max` is not a whole number >= 1, `perSuccess` is negative or not finite, or an option is unknown
 */
export const make = (max: number, options: Omit<Options, "max"> = {}): DeadLetterBudget => {
  OptionNames.orThrow(OptionNames.argument("DeadLetterBudget.make", "max", max, maxKind))
  OptionNames.check("DeadLetterBudget.make", options, { perSuccess: perSuccessKind })
  const { perSuccess = 0.1 } = options
  return { max, perSuccess }
}

/**
 * Builds a budget from plain options, or returns an equal one for a built budget.
 *
 * @throws RangeError when an option is unknown or out of range, or the input is not an object
 */
export const from = (input: Options): DeadLetterBudget => {
  OptionNames.check("DeadLetterBudget.from", input, kinds)
  return make(input.max, { perSuccess: input.perSuccess })
}

/** Returns the budget that is left after a success. */
export const credited = (self: DeadLetterBudget, left: number): number => Math.min(self.max, left + self.perSuccess)

/** Floating-point error: ten times 0.1 must pay for a dead letter. */
const tolerance = 1e-9

/** Returns the budget that is left after a dead letter; `undefined` if there was not enough. */
export const debited = (left: number): number | undefined => (left >= 1 - tolerance ? Math.max(0, left - 1) : undefined)

/** The consumer stopped because its budget was used up. Its messages stay in the queue. */
export class DeadLetterBudgetExhausted extends Data.TaggedError("DeadLetterBudgetExhausted")<{
  readonly queue: string
  readonly max: number
}> {
  override get message() {
    return (
      `deadLetterBudget: the consumer of ${this.queue} stopped: ${this.max} messages were dead-lettered faster than ` +
      `successes earned them back. Its messages stay in the queue; mend what they all need, then start it again`
    )
  }
}
