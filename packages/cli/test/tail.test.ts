/** What `requeue tail` prints of the messages that wait. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError, Producer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import { look } from "../src/commands/tail.ts"
import { Output, type Service } from "../src/Output.ts"

const again = new BrokerError.BrokerError({
  broker: "memory",
  operation: "browse",
  reason: "Unsupported",
  detail: "the queue is browsed once more"
})

it("one browser shows all messages, where the pages of the broker are small", async () => {
  const printed: Array<string> = []
  const line: Service["line"] = (_, text) => Effect.sync(() => void printed.push(text()))
  await Effect.gen(function* () {
    const broker = yield* Broker.Broker
    const { send } = yield* Producer.make("q")
    for (const body of [1, 2, 3]) yield* send(body)
    let opened = 0
    const browse: Broker.Admin["browse"] = (options) =>
      Effect.map(opened++ === 0 ? broker.admin.browse(options) : Effect.fail(again), (browser) => ({
        ...browser,
        next: (count) => browser.next(Math.min(1, count))
      }))
    const small = { ...broker, admin: { ...broker.admin, browse } }
    const source = { queue: "q", retry: RetryPolicy.make(), deadLetterQueues: [] }
    yield* look([source], 3, 0).pipe(
      Effect.provideService(Broker.Broker, small),
      Effect.provideService(Output, { line } as Service) // The other members are not used.
    )
  }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()), Effect.runPromise)
  assert.deepStrictEqual(
    printed.map((text) => text.split("  ").at(-1)),
    ["1", "2", "3"]
  )
})

it("JSON has the key and the fairBy of a message", async () => {
  const printed: Array<unknown> = []
  const line: Service["line"] = (value) => Effect.sync(() => void printed.push(value))
  await Effect.gen(function* () {
    const { send } = yield* Producer.make("q")
    yield* send(1, { key: "customer-7", fairBy: "acme" })
    yield* look([{ queue: "q", retry: RetryPolicy.make(), deadLetterQueues: [] }], 1, 0).pipe(
      Effect.provideService(Output, { line } as Service) // The other members are not used.
    )
  }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()), Effect.runPromise)
  const [{ fairBy, key }] = printed as [{ readonly fairBy: string; readonly key: string }]
  assert.deepStrictEqual([key, fairBy], ["customer-7", "acme"])
})
