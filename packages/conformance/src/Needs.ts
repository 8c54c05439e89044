/**
 * Requirements of cases: what a broker or a harness must support. A requirement that is not met returns a name, which the
 * suite's report shows.
 */
import { Capabilities } from "@requeue/core/port"
import type { Requirement } from "./Case.ts"
import type { Failure, Operation } from "./Harness.ts"

type Flag = {
  [K in keyof Capabilities.Capabilities]-?: Capabilities.Capabilities[K] extends boolean | undefined ? K : never
}[keyof Capabilities.Capabilities]

/** Requires a capability of the broker. */
export const has =
  (flag: Flag): Requirement =>
  ({ capabilities }) =>
    capabilities[flag] ? undefined : flag

/** Requires that the broker lacks a capability. Use it for the case that proves what holds without the capability. */
export const lacks =
  (flag: Flag): Requirement =>
  ({ capabilities }) =>
    capabilities[flag] ? `absence of ${flag}` : undefined

/** Requires a harness that can cut connections. */
export const cutConnections: Requirement = ({ harness }) =>
  harness.cutConnections ? undefined : "harness.cutConnections"

/** Requires that connections can be cut, and that their deliveries end with them. */
export const boundConnections: Requirement = (abilities) =>
  cutConnections(abilities) ?? has("connectionBound")(abilities)

/** Requires that connections can be cut, and that deliveries outlive them. */
export const unboundConnections: Requirement = (abilities) =>
  cutConnections(abilities) ?? lacks("connectionBound")(abilities)

/** Requires a harness that can restart the broker. */
export const restart: Requirement = ({ harness }) => (harness.restart ? undefined : "harness.restart")

/** Requires a broker whose messages survive its crash, and a harness that can crash it. */
export const crash: Requirement = ({ harness }) => (harness.crash ? undefined : "harness.crash")

/** Requires durable messages, and a harness that can cut the power. */
export const powerCut: Requirement = (abilities) =>
  has("durableMessages")(abilities) ?? (abilities.harness.powerCut ? undefined : "harness.powerCut")

/** Requires a harness that can open the broker in another process. */
export const another: Requirement = ({ harness }) => (harness.another ? undefined : "harness.another")

/** Requires a broker that lives in one process. Use it for the case that proves what holds for such a broker. */
export const oneProcess: Requirement = ({ harness }) => (harness.another ? "absence of harness.another" : undefined)

/** Requires a harness that can delete queues. */
export const deleteQueue: Requirement = ({ harness }) => (harness.deleteQueue ? undefined : "harness.deleteQueue")

/** Requires a harness that can create a queue of another kind. */
export const foreignQueue: Requirement = ({ harness }) => (harness.foreignQueue ? undefined : "harness.foreignQueue")

/** Requires transactions, and a harness that can begin them. */
export const transactions: Requirement = (abilities) =>
  has("transactions")(abilities) ?? (abilities.harness.transactions ? undefined : "harness.transactions")

/** Requires a harness that can make this call fail in this way. */
export const failNext =
  (operation: Operation, failure: Failure): Requirement =>
  ({ harness }) =>
    harness.failNext(operation, failure) ? undefined : `harness.failNext(${operation}, ${failure})`

/** Requires a broker that leases deliveries. */
export const lease: Requirement = ({ capabilities }) => (capabilities.lease === undefined ? "lease" : undefined)

/** Requires a broker that does not lease deliveries. */
export const noLease: Requirement = ({ capabilities }) =>
  capabilities.lease === undefined ? undefined : "absence of lease"

/** Requires a broker that reports these numbers of a queue. */
export const counts =
  (...numbers: ReadonlyArray<keyof Capabilities.Capabilities["counts"]>): Requirement =>
  ({ capabilities }) => {
    const missing = numbers.find((number) => !capabilities.counts[number])
    return missing === undefined ? undefined : `counts.${missing}`
  }

/** Requires a broker that can show delayed messages. */
export const delayedMessages: Requirement = ({ capabilities }) =>
  capabilities.delayedMessages === true ? undefined : "delayedMessages"

/**
 * Requires a broker that cannot show delayed messages. Use it for the case that proves what holds for such a broker.
 */
export const noDelayedMessages: Requirement = ({ capabilities }) =>
  capabilities.delayedMessages === true ? "absence of delayedMessages" : undefined

/** Requires a limit for bodies that a test can exceed. */
export const bodyLimit: Requirement = ({ capabilities }) =>
  capabilities.maxBodySize <= 64 * 1024 * 1024 ? undefined : "maxBodySize of 64 MiB or less"

/** Requires a broker that delays short times natively, and so delivers nothing early. */
export const nativeDelays: Requirement = ({ capabilities }) =>
  capabilities.sendDelay.native >= 60_000 ? undefined : "sendDelay.native of a minute"

/** Requires a broker that can delay retries by 24 hours. */
export const longRetries: Requirement = ({ capabilities }) =>
  Capabilities.longestRetry(capabilities) >= 24 * 60 * 60 * 1000 ? undefined : "retryDelay of 24 hours"

/** Requires a broker that cannot delay retries by 24 hours. */
export const limitedRetries: Requirement = (abilities) =>
  longRetries(abilities) === undefined ? "absence of retryDelay of 24 hours" : undefined

/** Requires all of these requirements. If several are not met, the report shows only the first. */
export const all =
  (...requirements: ReadonlyArray<Requirement>): Requirement =>
  (abilities) => {
    for (const requirement of requirements) {
      const missing = requirement(abilities)
      if (missing !== undefined) return missing
    }
    return undefined
  }
