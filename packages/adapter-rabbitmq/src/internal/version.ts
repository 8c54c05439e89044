/** The abilities of a server, by its version. */
import { ConfigurationError } from "@requeue/core/port"

/** Major and minor as one comparable number; what cannot be read counts as old. */
const rank = (version: string): number => {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version) ?? []
  return Number(major ?? 0) * 1000 + Number(minor ?? 0)
}

/** Whether a version is the wanted one or later; minor versions decide, patches do not. */
export const isAtLeast = (version: string, wanted: string): boolean => rank(version) >= rank(wanted)

/**
 * Whether the server counts failed deliveries apart from returned ones: from 4.3 on, `basic.nack` with requeue leaves
 * the count alone, and queues can delay by themselves.
 */
export const hasFailureCount = (version: string): boolean => isAtLeast(version, "4.3")

/** The server's largest message unless it is configured otherwise, in bytes. */
export const maxBodySize = (version: string): number => (isAtLeast(version, "4.0") ? 16 : 128) * 1024 * 1024

/** Whether the server counts a message that is given back as delivered once more. */
export const countsReleases = (queueType: "quorum" | "classic", version: string): boolean =>
  queueType === "classic" || !hasFailureCount(version)

/** The error of a server that is too old; `undefined` for one that the adapter works with. */
export const refusal = (version: string): ConfigurationError.ConfigurationError | undefined =>
  isAtLeast(version, "3.10")
    ? undefined
    : new ConfigurationError.ConfigurationError({
        field: "url",
        broker: "rabbitmq",
        detail: `the server is RabbitMQ ${version}; its quorum queues have no TTL and lose dead letters`,
        remedy: "Upgrade to RabbitMQ 3.10 or later"
      })
