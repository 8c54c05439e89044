/** Headers that are not the producer's: the adapter's own, and those that the server writes. */

/** Names this very copy of a message: when its ack got lost, its redelivery is recognised. */
export const copyHeader = "requeue-copy"

/** For people and foreign consumers; nothing is read back from them. */
export const readable = {
  attempts: "requeue-attempts",
  reason: "requeue-reason",
  origin: "requeue-origin",
  error: "requeue-error"
} as const

/** The server's own record of a foreign dead-lettering, kept as JSON where the server does not read it. */
export const deathHeader = "requeue-death"

const own: ReadonlySet<string> = new Set(["requeue", copyHeader, deathHeader, ...Object.values(readable)])

/**
 * What a copy must not carry: servers up to 3.13 drop a message whose `x-death` says that it has been there before,
 * and all of them show a consumer the `x-delivery-count` that a producer sent.
 */
const servers = /^(x-death|x-first-death-|x-last-death-|x-delivery-count$|x-acquired-count$|x-opt-|CC$|BCC$)/

export const isOwn = (name: string): boolean => own.has(name) || name.startsWith("requeue-level-")

export const isServers = (name: string): boolean => servers.test(name)
