/** Queues of every kind that somebody else has made, consumed as they are under three policies: the table in docs/rabbitmq.md. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { describe, test } from "vitest"
import { type Arguments, balance, make } from "../real/adoptedBooks.ts"
import { server as ownServer } from "../real/server.ts"
import { queueName } from "../world.ts"

// Its own, which all of these queues fill.
const { broker: server, url } = await ownServer()
const management = server.managementUrl

const policies = {
  "25 retries at once": [RetryPolicy.make({ maxRetries: 25 }), 26],
  "2 delayed retries": [RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(300) }), 3],
  "no retry": [RetryPolicy.make({ maxRetries: 0 }), 1]
} as const

const kinds: Readonly<Record<string, Arguments>> = {
  classic: {},
  quorum: { "x-queue-type": "quorum" },
  "quorum with limit 5": { "x-queue-type": "quorum", "x-delivery-limit": 5 },
  "classic with TTL": { "x-message-ttl": 60_000 },
  "quorum with TTL": { "x-queue-type": "quorum", "x-message-ttl": 60_000 },
  "DLX of its own": { "x-queue-type": "quorum", "x-dead-letter-exchange": "amq.fanout" },
  "drop-head": { "x-queue-type": "quorum", "x-max-length": 4, "x-overflow": "drop-head" },
  "reject-publish": { "x-queue-type": "quorum", "x-max-length": 4, "x-overflow": "reject-publish" },
  "reject-publish-dlx": {
    "x-max-length": 4,
    "x-overflow": "reject-publish-dlx",
    "x-dead-letter-exchange": "amq.fanout"
  },
  "single active consumer": { "x-queue-type": "quorum", "x-single-active-consumer": true },
  lazy: { "x-queue-mode": "lazy" },
  priority: { "x-max-priority": 5 }
}

const cells = Object.entries(kinds).flatMap(([kind, args]) =>
  Object.entries(policies).map(([policy, cell]) => [kind, policy, args, cell] as const)
)

describe.concurrent.each([
  ["nobody but the server's refusals to tell", undefined],
  ["the management interface to tell", management]
] as const)("with %s", (_, address) => {
  test.each(cells)("%s, %s", async (...[, , args, cell]) => {
    const queue = queueName("kind")
    await make(url, queue, args)
    const told = address === undefined ? {} : { management: address }
    // It is refused where nobody accepts its losses.
    const accepted = args["x-overflow"] === "drop-head" ? { arguments: { "x-overflow": "drop-head" } } : {}
    await balance(url, queue, { ...told, queues: { [queue]: { assert: "passive", ...accepted } } }, cell)
  })
})
