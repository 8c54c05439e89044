/**
 * Turns the verdict of a message into its settlement, by the policy, the broker's longest delay and the dead-letter
 * budget.
 */
import type { Verdict } from "./Acknowledgement.ts"
import * as Classifier from "./Classifier.ts"
import type * as DeadLetterBudget from "./DeadLetterBudget.ts"
import type { Delay } from "../message/Delay.ts"
import type { Delivery } from "../message/Delivery.ts"
import type * as Failure from "./Failure.ts"
import * as RetryPolicy from "./RetryPolicy.ts"
import * as Settlement from "../message/Settlement.ts"

/** Decides the settlements of one consumer, and keeps its dead-letter budget. */
export interface Decider {
  /** Returns the failure of a message: the error passed to `message.fail`, else the failure of the handler. */
  readonly failure: (verdict: Verdict, thrown: Failure.Failure | undefined) => Failure.Failure | undefined
  /**
   * Returns the settlement by the policy. `failure` is the handler's failure; `undefined` if the handler succeeded or
   * still runs.
   */
  readonly settlement: (
    delivery: Delivery,
    verdict: Verdict,
    failure: Failure.Failure | undefined
  ) => Settlement.Settlement
  /**
   * Returns the signal for the consumer backoff. `Failed`: something that all messages need may be down. `Uncounted`:
   * the verdict is no evidence for or against that.
   */
  readonly signal: (verdict: Verdict, failure: Failure.Failure | undefined) => "Succeeded" | "Failed" | "Uncounted"
  /** Subtracts a dead letter from the budget; `Exhausted` if the budget is used up. */
  readonly spend: (settlement: Settlement.Settlement) => "Allowed" | "Exhausted"
  /** Adds to the budget for a completed ack. */
  readonly earn: (settlement: Settlement.Settlement) => void
  /** Gives the cost of a failed settlement back to the budget. */
  readonly refund: (settlement: Settlement.Settlement) => void
}

/** The policy and the surroundings of a decider. */
export interface Options {
  /** Returns a number from 0 to below 1. */
  readonly random: () => number
  /** Makes a failure of a thrown value. */
  readonly readFailure: (error: unknown) => Failure.Failure
  /** Returns the time in milliseconds since the epoch. */
  readonly wallClock: () => number
  /** The name of the queue. */
  readonly queue: string
  /** The policy of the queue. */
  readonly retry: RetryPolicy.RetryPolicy
  /** The delay of a retry when the handler and the policy give none, in milliseconds; `undefined`: 0. */
  readonly retryDelay: Delay | undefined
  /** The longest delay that the broker can keep, in milliseconds. */
  readonly longest: Delay
  /** The dead-letter budget; `undefined` if dead letters are not limited. */
  readonly budget: DeadLetterBudget.DeadLetterBudget | undefined
}

/** Makes a decider whose dead-letter budget is full. */
export const make = ({
  budget,
  longest,
  queue,
  random,
  readFailure,
  retry,
  retryDelay,
  wallClock
}: Options): Decider => {
  let left = budget?.max ?? 0

  /**
   * Shortens a delay that was not checked before, such as an error's `retryAfter`, to the longest that the broker can keep.
   */
  const bounded = (settlement: Settlement.Settlement): Settlement.Settlement =>
    settlement._tag === "Retry" && settlement.delay > longest ? { ...settlement, delay: longest } : settlement

  return {
    failure: (verdict, thrown) => {
      const failed = verdict._tag === "Retry" ? verdict.failed : undefined
      return failed === undefined ? thrown : readFailure(failed.error)
    },
    settlement: (delivery, verdict, failure) => {
      if (verdict._tag === "Ack") return Settlement.Ack
      const input = {
        queue,
        attempts: delivery.attempts,
        age: wallClock() - delivery.metadata.firstPublished,
        delay: verdict.delay,
        asked: verdict.by !== "outcome" && verdict.failed === undefined,
        failure,
        defaultDelay: retryDelay,
        random: random()
      }
      return bounded(RetryPolicy.decide(retry, input))
    },
    signal: (verdict, failure) => {
      if (verdict._tag === "Ack") return "Succeeded"
      // An error of one invalid message is no evidence that others fail too.
      const isClassified = failure !== undefined && (verdict.by === "outcome" || verdict.failed !== undefined)
      const counts = !isClassified || Classifier.classify(retry.classify, failure) === "retry"
      return counts && verdict.backoff ? "Failed" : "Uncounted"
    },
    spend: (settlement) => {
      if (budget === undefined || !isGivenUp(settlement)) return "Allowed"
      if (left < 1 - tolerance) return "Exhausted"
      left = Math.max(0, left - 1)
      return "Allowed"
    },
    earn: (settlement) => {
      if (budget !== undefined && settlement._tag === "Ack") left = Math.min(budget.max, left + budget.perSuccess)
    },
    refund: (settlement) => {
      if (budget !== undefined && isGivenUp(settlement)) left = Math.min(budget.max, left + 1)
    }
  }
}

/** Floating-point error: ten successes at 0.1 each must pay for one dead letter. */
const tolerance = 1e-9

/** Whether a settlement counts against the budget: a dead letter, or a drop by the policy, but not by a `DropError`. */
const isGivenUp = (settlement: Settlement.Settlement): boolean =>
  settlement._tag === "DeadLetter" || (settlement._tag === "Drop" && settlement.reason !== "dropped")
