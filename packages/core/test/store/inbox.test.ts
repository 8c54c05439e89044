/** What a subscription with an inbox settles on its broker, and how it reports the answers. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Fate, Subscription } from "../../src/port/Broker.ts"
import { BrokerError } from "../../src/port/BrokerError.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import * as Inbox from "../../src/store/internal/inbox.ts"
import { delivery } from "../items.ts"

const error = new BrokerError({ broker: "b", operation: "settle", reason: "Timeout", detail: "no answer" })

/** Settles `committed` and `open` as retries and `plain` as an ack; returns what reaches the broker, and the fates. */
const settled = ({ isDown = false, fates = {} }: { isDown?: boolean; fates?: Record<string, Fate> }) =>
  Effect.gen(function* () {
    const settlements: Array<string> = []
    const subscription: Pick<Subscription, "settle"> = {
      settle: (requests) =>
        Effect.sync(() => {
          for (const request of requests) {
            settlements.push(`${request.delivery.metadata.id}: ${request.settlement._tag}`)
          }
          return requests.flatMap(({ delivery: of }) => {
            const fate = fates[of.metadata.id]
            return fate === undefined ? [] : [{ delivery: of, error, fate }]
          })
        })
    }
    const { ackWithin, settle } = Inbox.over(subscription as Subscription, {
      broker: "b",
      queue: "q",
      onUse: () => {},
      inbox: {
        record: () => Effect.succeed([]),
        recorded: (_, ids) => (isDown ? Effect.fail(error) : Effect.succeed(ids.filter((id) => id === "committed"))),
        prune: () => Effect.succeed(0)
      }
    })
    yield* ackWithin!({}, [delivery("committed")])
    const failures = yield* settle([
      { delivery: delivery("committed"), settlement: Settlement.Retry(0) },
      { delivery: delivery("open"), settlement: Settlement.Retry(0) },
      { delivery: delivery("plain"), settlement: Settlement.Ack }
    ])
    return [settlements, failures.map(({ delivery: of, fate }) => `${of.metadata.id}: ${fate}`)]
  })

describe("a subscription with an inbox", () => {
  it.effect.each([
    [
      "acks what is committed, and settles the rest as asked",
      {},
      ["committed: Ack", "open: Retry", "plain: Ack"],
      ["committed: committed"]
    ],
    [
      "takes a lost ack of a committed message for its end",
      { fates: { committed: "lost", open: "lost" } },
      ["committed: Ack", "open: Retry", "plain: Ack"],
      ["open: lost", "committed: committed"]
    ],
    [
      "leaves a committed message unsettled while its ack fails",
      { fates: { committed: "transient" } },
      ["committed: Ack", "open: Retry", "plain: Ack"],
      ["committed: transient"]
    ],
    [
      "passes acks on while its database cannot be reached",
      { isDown: true, fates: { plain: "lost" } },
      ["plain: Ack"],
      ["plain: lost", "committed: transient", "open: transient"]
    ]
  ] as const)("%s", ([, options, settlements, fates]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual<unknown>(yield* settled(options), [settlements, fates])
    })
  )
})
