/** The features of a server, by version. */
import { ConfigurationError } from "@requeue/core/port"

/** Major and minor version as one comparable number; an unreadable version counts as old. */
const rank = (version: string): number => {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(version) ?? []
  return Number(major ?? 0) * 1000 + Number(minor ?? 0)
}

/** Whether a version is `wanted` or later; patch versions are ignored. */
export const isAtLeast = (version: string, wanted: string): boolean => rank(version) >= rank(wanted)

/**
 * Whether the server counts failed deliveries separately from returns. From 4.3 on, `basic.nack` with requeue does not
 * change the count of failures, and queues can delay messages.
 */
export const hasFailureCount = (version: string): boolean => isAtLeast(version, "4.3")

/** The server's default limit for a message, in bytes. */
export const maxBodySize = (version: string): number => (isAtLeast(version, "4.0") ? 16 : 128) * 1024 * 1024

/** Whether the server counts a returned message as one more delivery. */
export const countsReleases = (queueType: "quorum" | "classic", version: string): boolean =>
  queueType === "classic" || !hasFailureCount(version)

/** The error for a server that is too old; `undefined` for a supported version. */
export const refusal = (version: string): ConfigurationError.ConfigurationError | undefined =>
  isAtLeast(version, "3.10")
    ? undefined
    : new ConfigurationError.ConfigurationError({
        field: "url",
        broker: "rabbitmq",
        detail: `the server is RabbitMQ ${version}; its quorum queues have no TTL and lose dead letters`,
        remedy: "Upgrade to RabbitMQ 3.10 or later"
      })
