/**
 * The two gates of a consumer: one for handlers that fail, one for the broker. A batch starts only when both allow it.
 */
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import type { Backoff } from "../../observe/Health.ts"
import * as Gate from "./gate.ts"

export interface Gates {
  /** Closes when handlers fail, under the policy of the user. */
  readonly handler: Gate.Gate
  /** Closes when the broker does not take settlements. It cannot be turned off. */
  readonly broker: Gate.Gate
  /** Number of messages that may be in progress: the smaller one of both gates. */
  readonly allowance: () => number
  /** True when a batch may start. */
  readonly mayStart: () => boolean
  /** Signals both gates. */
  readonly signal: (event: ConsumerBackoff.Event) => void
  /** The states of the gates that hold something back, or whose level is above 0. */
  readonly backoff: () => ReadonlyArray<Backoff>
  readonly close: () => void
}

export interface Dependencies extends Omit<Gate.Dependencies, "because" | "onTransition"> {
  readonly onTransition: (
    because: Backoff["because"],
    before: ConsumerBackoff.State,
    after: ConsumerBackoff.State
  ) => void
}

export const make = (policy: ConsumerBackoff.ConsumerBackoff, dependencies: Dependencies): Gates => {
  const gate = (because: Backoff["because"], own: ConsumerBackoff.ConsumerBackoff): Gate.Gate =>
    Gate.make(own, {
      ...dependencies,
      because,
      onTransition: (before, after) => dependencies.onTransition(because, before, after)
    })
  const handler = gate("handler", policy)
  const broker = gate("broker", ConsumerBackoff.make())
  const both = [handler, broker]
  return {
    handler,
    broker,
    allowance: () => Math.min(handler.allowance(), broker.allowance()),
    mayStart: () => handler.mayStart() && broker.mayStart(),
    signal: (event) => {
      for (const each of both) each.signal(event)
    },
    backoff: () => both.flatMap((each) => each.backoff() ?? []),
    close: () => {
      for (const each of both) each.close()
    }
  }
}
