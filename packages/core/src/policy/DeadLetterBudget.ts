/**
 * Dead-letter budgets: in an outage the consumer stops instead of dead-lettering its whole queue.
 *
 * Every dead letter costs 1, even if the policy discards it, and every success adds a fraction. When the budget is
 * below 1, the consumer returns the message and stops with {@link DeadLetterBudgetExhausted}.
 */
import * as Data from "effect/Data"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** How many dead letters a consumer may make. See {@link Options}. */
export interface DeadLetterBudget {
  readonly max: number
  readonly perSuccess: number
}

/** The options of a dead-letter budget. */
export interface Options {
  /** Initial and highest budget. Each dead letter uses up 1. Below 1, the consumer stops. Range: 1 or more. */
  readonly max: number
  /** How much each success adds to the budget. Range: 0 or more. Default: 0.1. */
  readonly perSuccess?: number | undefined
}

const perSuccessKind: OptionKind.OptionKind = {
  expected: "a finite number >= 0",
  holds: (value) => OptionKind.number(0).holds(value) && Number.isFinite(value)
}

const maxKind = OptionKind.whole(1)

const kinds: OptionNames.Of<Options> = { max: maxKind, perSuccess: perSuccessKind }

/**
 * Builds a dead-letter budget: the consumer stops when `max` dead letters have used it up. Each success adds
 * `perSuccess` to the budget, up to `max`. With the default 0.1, ten successes allow one more dead letter.
 *
 * @throws RangeError when `max` is not a whole number >= 1, `perSuccess` is negative or not finite, or an option is
 * unknown
 */
export const make = (options: Options): DeadLetterBudget => {
  OptionNames.check("DeadLetterBudget.make", options, kinds)
  // `check` accepts a missing option.
  OptionNames.orThrow(OptionNames.argument("DeadLetterBudget.make", "max", options.max, maxKind))
  return { max: options.max, perSuccess: options.perSuccess ?? 0.1 }
}

/**
 * The error of a consumer that stopped because its dead-letter budget was used up. The consumer's messages stay in the
 * queue.
 */
export class DeadLetterBudgetExhausted extends Data.TaggedError("DeadLetterBudgetExhausted")<{
  readonly queue: string
  readonly max: number
}> {
  override get message() {
    return (
      `deadLetterBudget: the consumer of ${this.queue} stopped: ${this.max} messages were dead-lettered faster than ` +
      `successes earned them back. The remaining messages stay in the queue. Fix the service that the messages need, then start the consumer again`
    )
  }
}
