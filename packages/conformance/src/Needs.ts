/** What a case may ask of a broker or a harness, and the words for it when it is missing. */
import { Capabilities } from "@requeue/core"
import type { Requirement } from "./Case.ts"

type Flag = {
  [K in keyof Capabilities.Capabilities]: Capabilities.Capabilities[K] extends boolean ? K : never
}[keyof Capabilities.Capabilities]

/** The broker has the capability. */
export const has =
  (flag: Flag): Requirement =>
  ({ capabilities }) =>
    capabilities[flag] ? undefined : flag

/** The broker lacks the capability: for the case that says what holds without it. */
export const lacks =
  (flag: Flag): Requirement =>
  ({ capabilities }) =>
    capabilities[flag] ? `absence of ${flag}` : undefined

export const cutConnections: Requirement = ({ harness }) =>
  harness.cutConnections ? undefined : "harness.cutConnections"

/** Cut connections take their deliveries with them. */
export const boundConnections: Requirement = (facts) => cutConnections(facts) ?? has("connectionBound")(facts)

/** Cut connections leave deliveries alone. */
export const unboundConnections: Requirement = (facts) => cutConnections(facts) ?? lacks("connectionBound")(facts)

export const restart: Requirement = ({ harness }) => (harness.restart ? undefined : "harness.restart")

export const lease: Requirement = ({ capabilities }) => (capabilities.lease === undefined ? "lease" : undefined)

export const noLease: Requirement = ({ capabilities }) =>
  capabilities.lease === undefined ? undefined : "absence of lease"

/** The broker tells these numbers of a queue. */
export const counts =
  (...numbers: ReadonlyArray<keyof Capabilities.Capabilities["counts"]>): Requirement =>
  ({ capabilities }) => {
    const missing = numbers.find((number) => !capabilities.counts[number])
    return missing === undefined ? undefined : `counts.${missing}`
  }

/** A body that is too large can be made in a test. */
export const bodyLimit: Requirement = ({ capabilities }) =>
  capabilities.maxBodySize <= 64 * 1024 * 1024 ? undefined : "maxBodySize of 64 MiB or less"

export const longRetries: Requirement = ({ capabilities }) =>
  Capabilities.longestRetry(capabilities) >= 24 * 60 * 60 * 1000 ? undefined : "retryDelay of 24 hours"

export const limitedRetries: Requirement = (facts) =>
  longRetries(facts) === undefined ? "absence of retryDelay of 24 hours" : undefined

/** All of these; the first that is missing is named. */
export const all =
  (...requirements: ReadonlyArray<Requirement>): Requirement =>
  (facts) => {
    for (const requirement of requirements) {
      const missing = requirement(facts)
      if (missing !== undefined) return missing
    }
    return undefined
  }
