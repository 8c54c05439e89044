/** What a server of a version can do. */
import { ConfigurationError } from "@requeue/core/adapter-kit"

/** Major and minor as one comparable number; what cannot be read counts as old. */
const rank = (version: string): number => {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version) ?? []
  return Number(major ?? 0) * 1000 + Number(minor ?? 0)
}

export const isAtLeast = (version: string, wanted: string): boolean => rank(version) >= rank(wanted)

/** From 4.3 on, `basic.nack(requeue)` gives back unharmed, and queues can delay by themselves. */
export const hasFailureCount = (version: string): boolean => isAtLeast(version, "4.3")

/** The server's largest message unless it is configured otherwise, in bytes. */
export const maxBodySize = (version: string): number => (isAtLeast(version, "4.0") ? 16 : 128) * 1024 * 1024

/** Why we cannot work with a server; `undefined` when we can. */
export const refusal = (version: string): ConfigurationError.ConfigurationError | undefined =>
  isAtLeast(version, "3.10")
    ? undefined
    : new ConfigurationError.ConfigurationError({
        field: "url",
        broker: "rabbitmq",
        detail: `the server is RabbitMQ ${version}; its quorum queues have no TTL and lose dead letters`,
        remedy: "Upgrade to RabbitMQ 3.10 or later"
      })
