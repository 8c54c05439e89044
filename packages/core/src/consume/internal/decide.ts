/** From a verdict to a settlement: the policy's decision, the broker's limit, the budget of dead letters. */
import type { Verdict } from "../../policy/Acknowledgement.ts"
import * as Classifier from "../../policy/Classifier.ts"
import * as DeadLetterBudget from "../../policy/DeadLetterBudget.ts"
import type { Delay } from "../../message/Delay.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Failure } from "../../policy/Failure.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"

export interface Judge {
  readonly settlement: (delivery: Delivery, verdict: Verdict, failure: Failure | undefined) => Settlement.Settlement
  /** What the verdict says about what all messages need. */
  readonly signal: (verdict: Verdict, failure: Failure | undefined) => "Succeeded" | "Failed" | "Uncounted"
  /** Takes the settlement from the budget; `Exhausted` when it is a dead letter too many. */
  readonly spend: (settlement: Settlement.Settlement) => "Allowed" | "Exhausted"
  /** Puts back what was spent on a settlement that the broker did not take. */
  readonly refund: (settlement: Settlement.Settlement) => void
}

export const make = (options: {
  readonly queue: string
  readonly retry: RetryPolicy.RetryPolicy
  readonly retryDelay: Delay | undefined
  /** The longest delay that the broker can honour. */
  readonly longest: Delay
  readonly budget: DeadLetterBudget.DeadLetterBudget | undefined
  readonly random: () => number
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number
}): Judge => {
  const { budget, longest, queue, random, retry, retryDelay, wallClock } = options
  let left = budget?.max ?? 0

  /** A delay that nobody could refuse in time, such as an error's `retryAfter`, ends at what the broker can honour. */
  const bounded = (settlement: Settlement.Settlement): Settlement.Settlement =>
    settlement._tag === "Retry" && settlement.delay > longest ? { ...settlement, delay: longest } : settlement

  return {
    settlement: (delivery, verdict, failure) => {
      if (verdict._tag === "Ack") return Settlement.Ack
      const facts = {
        queue,
        attempts: delivery.attempts,
        age: wallClock() - delivery.metadata.firstPublished,
        delay: verdict.delay,
        asked: verdict.by !== "outcome",
        failure,
        defaultDelay: retryDelay,
        random: random()
      }
      return bounded(RetryPolicy.decide(retry, facts))
    },
    signal: (verdict, failure) => {
      if (verdict._tag === "Ack") return "Succeeded"
      // A message that is wrong in itself says nothing about the others.
      const counts =
        verdict.by === "outcome" && failure !== undefined
          ? Classifier.classify(retry.classify, failure) === "retry"
          : verdict.backoff
      return counts ? "Failed" : "Uncounted"
    },
    spend: (settlement) => {
      if (budget === undefined) return "Allowed"
      if (settlement._tag === "Ack") left = DeadLetterBudget.credited(budget, left)
      if (!isGivenUp(settlement)) return "Allowed"
      const after = DeadLetterBudget.debited(left)
      left = after ?? left
      return after === undefined ? "Exhausted" : "Allowed"
    },
    refund: (settlement) => {
      if (budget !== undefined && isGivenUp(settlement)) left = Math.min(budget.max, left + 1)
    }
  }
}

/** A dead letter, or what would be one if the policy did not discard it; a `DropError` is neither. */
const isGivenUp = (settlement: Settlement.Settlement): boolean =>
  settlement._tag === "DeadLetter" || (settlement._tag === "Drop" && settlement.reason !== "dropped")
