/** Headers that are not the producer's: the adapter's own, and those that the server writes. */

import * as Predicate from "effect/Predicate"
import type { Properties } from "./client.ts"
import * as FieldTable from "./fieldTable.ts"

/** The header that names one copy of a message, so that its redelivery after a lost ack is recognised. */
export const copyHeader = "requeue-copy"

/** The header that keeps the returns of the copies that this one replaces, because the server cannot count them further. */
export const returnsHeader = "requeue-returns"

/** Headers for people and foreign consumers; nothing is read back from them. */
export const readable = {
  attempts: "requeue-attempts",
  reason: "requeue-reason",
  origin: "requeue-origin",
  error: "requeue-error"
} as const

/** The header that keeps the server's record of a foreign dead-lettering, as JSON that the server does not read. */
export const deathHeader = "requeue-death"

const own: ReadonlySet<string> = new Set([
  "requeue",
  copyHeader,
  returnsHeader,
  deathHeader,
  ...Object.values(readable)
])

/**
 * Headers that a copy must not carry: servers up to 3.13 drop a message whose `x-death` names the queue that it is to
 * enter, and every server shows a consumer the `x-delivery-count` that a producer sent.
 */
const servers = /^(x-death|x-first-death-|x-last-death-|x-delivery-count$|x-acquired-count$|x-opt-|CC$|BCC$)/

/** Whether the adapter writes this header. */
export const isOwn = (name: string): boolean => own.has(name) || name.startsWith("requeue-level-")

/** Whether the server writes this header. */
export const isServers = (name: string): boolean => servers.test(name)

/** The headers of the message's producer, as they came. */
export const foreignEntries = (properties: Properties | undefined): ReadonlyArray<FieldTable.Entry> =>
  properties?.table === undefined
    ? []
    : FieldTable.entries(properties.table).filter(({ name }) => !isOwn(name) && !isServers(name))

/** The records of deaths in these headers. A foreign producer may have written anything there. */
export const deathsOf = (headers: Readonly<Record<string, unknown>>): ReadonlyArray<Record<string, unknown>> => {
  const deaths = headers["x-death"]
  return Array.isArray(deaths) ? deaths.filter(Predicate.isObject) : []
}
