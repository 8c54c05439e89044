/**
 * A budget of dead letters: an outage must stop the consumer rather than empty its queue into the dead letters.
 *
 * Every dead letter costs 1, also one that the policy discards; every success earns a fraction of it back, and a consumer
 * whose budget is used up gives the message back and stops with {@link DeadLetterBudgetExhausted}.
 */
import * as Data from "effect/Data"

export interface DeadLetterBudget {
  readonly max: number
  readonly perSuccess: number
}

/**
 * Builds a budget: at most `max` dead letters more than successes have earned; each success earns `perSuccess`
 * (default 0.1, that is one dead letter for ten successes).
 *
 * @throws RangeError when `max` is not a whole number >= 1, or `perSuccess` is negative or not finite
 */
export const make = (max: number, { perSuccess = 0.1 }: { readonly perSuccess?: number } = {}): DeadLetterBudget => {
  if (!(Number.isSafeInteger(max) && max >= 1)) {
    throw new RangeError(`DeadLetterBudget.make: max must be a whole number >= 1, got ${max}`)
  }
  if (!(perSuccess >= 0 && Number.isFinite(perSuccess))) {
    throw new RangeError(`DeadLetterBudget.make: perSuccess must be a finite number >= 0, got ${perSuccess}`)
  }
  return { max, perSuccess }
}

/** What is left after a success. */
export const credited = (self: DeadLetterBudget, left: number): number => Math.min(self.max, left + self.perSuccess)

/** What sums of fractions may be off by: ten times 0.1 is enough for a dead letter. */
const dust = 1e-9

/** What is left after a dead letter; `undefined` when there was not enough for it. */
export const debited = (left: number): number | undefined => (left >= 1 - dust ? Math.max(0, left - 1) : undefined)

/** The consumer stopped itself; its messages stay in the queue. */
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
