/**
 * Decides on the settlement of a verdict: by the policy, the broker's longest delay, and the budget of dead letters.
 */
import type { Verdict } from "../../policy/Acknowledgement.ts"
import * as Classifier from "../../policy/Classifier.ts"
import type * as DeadLetterBudget from "../../policy/DeadLetterBudget.ts"
import type { Delay } from "../../message/Delay.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type * as Failure from "../../policy/Failure.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as Settlement from "../../message/Settlement.ts"
import type { Runtime } from "./runtime.ts"

export interface Decider {
  /** The failure of a message: its own, if the handler said that it failed, else that of its handler. */
  readonly failure: (verdict: Verdict, thrown: Failure.Failure | undefined) => Failure.Failure | undefined
  /** The settlement that the policy asks for. `failure` is how the handler ended; `undefined`: well, or not yet. */
  readonly settlement: (
    delivery: Delivery,
    verdict: Verdict,
    failure: Failure.Failure | undefined
  ) => Settlement.Settlement
  /**
   * The signal for the consumer backoff. `Failed`: something that all messages need may be down. `Uncounted`: the
   * verdict says nothing about that.
   */
  readonly signal: (verdict: Verdict, failure: Failure.Failure | undefined) => "Succeeded" | "Failed" | "Uncounted"
  /** Takes a dead letter from the budget; `Exhausted` when none is left. */
  readonly spend: (settlement: Settlement.Settlement) => "Allowed" | "Exhausted"
  /** Adds to the budget for an ack that the broker has taken. */
  readonly earn: (settlement: Settlement.Settlement) => void
  /** Returns to the budget what was spent on a settlement that the broker did not take. */
  readonly refund: (settlement: Settlement.Settlement) => void
}

export interface Options extends Pick<Runtime, "random" | "readFailure" | "wallClock"> {
  readonly queue: string
  readonly retry: RetryPolicy.RetryPolicy
  /** Milliseconds until a retry for which neither the handler nor the policy has a delay; `undefined`: 0. */
  readonly retryDelay: Delay | undefined
  /** The longest delay that the broker can honour, in milliseconds. */
  readonly longest: Delay
  /** `undefined`: dead letters are not limited. */
  readonly budget: DeadLetterBudget.DeadLetterBudget | undefined
}

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
   * Shortens a delay that could not be refused before, such as an error's `retryAfter`, to what the broker can honour.
   */
  const bounded = (settlement: Settlement.Settlement): Settlement.Settlement =>
    settlement._tag === "Retry" && settlement.delay > longest ? { ...settlement, delay: longest } : settlement

  return {
    failure: (verdict, thrown) => {
      const own = verdict._tag === "Retry" ? verdict.failed : undefined
      return own === undefined ? thrown : readFailure(own.error)
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
      // A message that is wrong in itself says nothing about the others.
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

/** Floating-point error: ten times 0.1 must pay for a dead letter. */
const tolerance = 1e-9

/** True of a dead letter, and of a message that would be one if the policy did not discard it; not of a `DropError`. */
const isGivenUp = (settlement: Settlement.Settlement): boolean =>
  settlement._tag === "DeadLetter" || (settlement._tag === "Drop" && settlement.reason !== "dropped")
