/** Recovers deliveries whose settlement the broker did not take. */
import type { SettleFailure } from "../../port/Broker.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { Decider } from "./decide.ts"
import type { Gates } from "./gates.ts"
import type { Item } from "./item.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"
import type { UnconfirmedAcks } from "./unconfirmedAcks.ts"

export interface Dependencies extends Pick<Runtime, "timers"> {
  readonly acks: UnconfirmedAcks
  readonly decider: Pick<Decider, "refund">
  readonly gates: Pick<Gates, "handler" | "broker">
  readonly reporter: Pick<Reporter, "settleFailed">
  /** Removes a delivery that is not ours any more. */
  readonly forget: (item: Item) => void
  /** Gives a delivery back to the broker at once. */
  readonly release: (item: Item) => void
}

/** Milliseconds until a release that the broker did not take is tried again: each time twice as long, up to the longest. */
const releaseAgain = { first: 1000, longest: 60_000 }

/** Makes a function that is called with each settlement that failed. */
export const make = ({ acks, decider, forget, gates, release, reporter, timers }: Dependencies) => {
  const pauses = new WeakMap<Item, number>()

  return (item: Item, settlement: Settlement, { error, fate }: SettleFailure): void => {
    acks.remember(item.delivery, settlement)
    reporter.settleFailed(item.delivery, settlement, error)
    if (error.reason === "LeaseLost") gates.handler.signal({ _tag: "Failed", id: item.key })
    // A delivery ends with its lease or its connection: the broker delivers it again by itself.
    const isGone = fate === "gone"
    // One that is gone does not tell whether the broker takes settlements. If it was the probe, it must not be waited
    // for.
    gates.broker.signal({ _tag: isGone ? "Uncounted" : "Failed", id: item.key })
    if (isGone) return forget(item)
    // After a timeout, nobody knows whether the dead letter was stored.
    if (fate !== "unknown") decider.refund(settlement)
    // The broker still counts it as ours, so that only giving it back makes it come again.
    if (settlement._tag !== "Release") return release(item)
    // Whatever the reason: forgotten, it would take up credit for ever.
    const pause = pauses.get(item) ?? releaseAgain.first
    pauses.set(item, Math.min(2 * pause, releaseAgain.longest))
    timers.after(pause, () => release(item))
  }
}
