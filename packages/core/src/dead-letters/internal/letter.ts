/** A dead letter in the hands of a sweep, until the broker has removed it or has it back. */
import type * as Fiber from "effect/Fiber"
import type { Outcome } from "../../consume/internal/dispatch.ts"
import type { Item } from "../../consume/internal/item.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { AuditFailed } from "./audit.ts"

export interface Letter {
  readonly item: Item
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
  /** Whether its delivery was lost, so that it comes again. */
  isLost: boolean
  /** Its key in the books while it is to be removed: the broker's name, or its item. */
  key: unknown
  /** Why the broker did not remove it. */
  error: BrokerError | undefined
  /** That publishes its copy. */
  fiber: Fiber.Fiber<void, BrokerError | AuditFailed> | undefined
  /** Ends its delivery: `undefined` when it has been called. */
  done: ((outcome: Outcome) => void) | undefined
}

export const make = (item: Item, done: (outcome: Outcome) => void): Letter => ({
  item,
  id: item.delivery.metadata.id,
  stage: "held",
  isPassed: false,
  isLost: false,
  key: undefined,
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
