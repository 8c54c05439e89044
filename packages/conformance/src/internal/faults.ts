/** Failures of settlements, as a broker answers them. */
import { Broker, BrokerError } from "@requeue/core"
import { type Settlement } from "@requeue/core/port"
import type { Lab } from "../Lab.ts"

/** How a settlement fails. */
export type Fault = Omit<Broker.SettleFailure, "delivery">

/** A failure for this reason. Default: with the usual fate of its reason, and so that a smaller copy may be taken. */
export const broken = (reason: BrokerError.Reason, fate?: Broker.Fate): Fault => {
  const detail = "made to fail by the case"
  const error = new BrokerError.BrokerError({ broker: "test", operation: "settle", reason, detail })
  return { error, fate: fate ?? Broker.fateOf(error) }
}

/** The delivery is lost. */
export const gone = broken("ConnectionLost", "lost")

/** The settlement, or its copy, is never taken. */
export const refused = broken("BodyTooLarge")

/** Lets the first settlements of one kind fail, so many of them, without reaching the broker. Default: one. */
export const fails = (lab: Lab, tag: Settlement.Settlement["_tag"], fault: Fault, times = 1): void => {
  let left = times
  lab.faults.settle = ({ settlement }) => (settlement._tag === tag && left-- > 0 ? fault : undefined)
}
