/** Failures of settlements, as a broker returns them. */
import { Broker, BrokerError } from "@requeue/core"
import { type Settlement } from "@requeue/core/port"
import type { Lab } from "../Lab.ts"

/** How a settlement fails. */
export type Fault = Omit<Broker.SettleFailure, "delivery">

/** A failure for this reason. Default: with the usual fate of its reason, and a smaller copy may pass. */
export const broken = (reason: BrokerError.Reason, fate?: Broker.Fate): Fault => {
  const detail = "made to fail by the case"
  const error = new BrokerError.BrokerError({ broker: "test", operation: "settle", reason, detail })
  return { error, fate: fate ?? Broker.fateOf(error) }
}

/** The delivery is lost. */
export const gone = broken("ConnectionLost", "lost")

/** The broker never accepts the settlement, or its copy. */
export const refused = broken("BodyTooLarge")

/** Makes the first settlements of one kind fail, this many of them, without reaching the broker. Default: one. */
export const fails = (lab: Lab, tag: Settlement.Settlement["_tag"], fault: Fault, times = 1): void => {
  let left = times
  lab.faults.settle = ({ settlement }) => (settlement._tag === tag && left-- > 0 ? fault : undefined)
}
