/** The two gates of a consumer, which it passes only where both let it: for handlers that fail, and for the broker. */
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import type { Backoff } from "../../observe/Health.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"
import * as Gate from "./gate.ts"

export interface Gates {
  /** As the user asks. */
  readonly handler: Gate.Gate
  /** Always on. */
  readonly broker: Gate.Gate
  /** Messages that may be in progress. */
  readonly allowance: () => number
  /** True while a batch may start. */
  readonly mayStart: () => boolean
  /** Tells both. */
  readonly signal: (event: ConsumerBackoff.Event) => void
  /** Those that are not at rest. */
  readonly backoff: () => ReadonlyArray<Backoff>
  readonly close: () => void
}

export const make = (
  policy: ConsumerBackoff.ConsumerBackoff,
  env: {
    readonly timers: Timers
    readonly random: () => number
    /** Milliseconds since the epoch. */
    readonly wallClock: () => number
    readonly onChange: () => void
    readonly onTransition: (
      because: Backoff["because"],
      before: ConsumerBackoff.State,
      after: ConsumerBackoff.State
    ) => void
  }
): Gates => {
  const gate = (because: Backoff["because"], own: ConsumerBackoff.ConsumerBackoff): Gate.Gate =>
    Gate.make(own, { ...env, because, onTransition: (before, after) => env.onTransition(because, before, after) })
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
