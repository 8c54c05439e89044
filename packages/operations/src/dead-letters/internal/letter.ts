/** A dead letter in the hands of a sweep, until the broker has removed it or has it back. */
import type { BrokerError } from "@requeue/core"
import type * as Engine from "@requeue/core/engine"
import type * as Fiber from "effect/Fiber"
import type { AuditFailed } from "./audit.ts"

export interface Letter {
  readonly item: Engine.Item
  readonly id: string
  /**
   * - `waiting`: its copy waits for the rate, or for the broker.
   * - `publishing`: its copy is on its way, and may be there already.
   * - `removing`: it is to be removed, and the broker has not said that it is.
   * - `held`: it goes back at the end.
   */
  stage: "waiting" | "publishing" | "removing" | "held"
  /** Whether it only goes behind the others in its queue. */
  isPassed: boolean
  /** Why the broker did not remove it. */
  error: BrokerError.BrokerError | undefined
  /** That publishes its copy. */
  fiber: Fiber.Fiber<void, BrokerError.BrokerError | AuditFailed> | undefined
  /** Ends its delivery: `undefined` when it has been called. */
  done: ((outcome: Engine.Outcome) => void) | undefined
}

export const make = (item: Engine.Item, done: (outcome: Engine.Outcome) => void): Letter => ({
  item,
  id: item.delivery.metadata.id,
  stage: "held",
  isPassed: false,
  error: undefined,
  fiber: undefined,
  done
})

/** Ends its delivery: `Succeeded` removes it, and `Interrupted` gives it back. Only the first call counts. */
export const end = (letter: Letter, _tag: "Succeeded" | "Interrupted"): void => {
  const { done } = letter
  letter.done = undefined
  done?.({ _tag })
}
