/** A remedy is true when it is followed: a name that is advised is one that the broker has. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import * as Existing from "../src/Existing.ts"

/** What is said of a queue that is missing, where the configuration has `known`, by a broker that has `orders`. */
const said = (
  queue: string,
  known: ReadonlyArray<string>,
  names?: "untold" | "refused",
  more: Omit<Existing.Advice, "known"> = {}
) =>
  Effect.gen(function* () {
    const broker = yield* Broker.Broker
    const { names: _, ...others } = broker.admin
    const refused = Effect.fail(
      new BrokerError.BrokerError({ broker: "memory", operation: "list", reason: "AccessRefused", detail: "no" })
    )
    const admin = names === undefined ? broker.admin : names === "untold" ? others : { ...others, names: refused }
    yield* broker.admin.counts("orders")
    const check = Existing.check([queue], { known, ...more }).pipe(
      Effect.provideService(Broker.Broker, { ...broker, admin }),
      Effect.flip
    )
    return (yield* check).remedy
  }).pipe(Effect.provide(MemoryBroker.layer()), Effect.runPromise)

it.each([
  ["ordres", ["ordres.dlq", "mails"], undefined, "Check the name of the queue on the broker"],
  ["ordres", ["orders", "mails"], "untold", "Did you mean orders?"],
  ["bills", ["orders", "mails"], "untold", "Configured queues: orders, mails"],
  ["bills", ["orders", "mails"], "refused", "Configured queues: orders, mails"],
  ["bills", [], "untold", "Check the name of the queue on the broker"],
  ["bills", ["bills", "bill"], undefined, "The queue is configured, but not created yet: run requeue create"]
] as const)("of %s, with %j configured and the broker's names %s: %s", async (queue, known, names, remedy) => {
  assert.strictEqual(await said(queue, known, names), remedy)
})

it.each([
  ["ordres", "Did you mean orders? Give --create to create it"],
  ["bills", "Configured queues: orders, mails. Give --create to create it"]
] as const)("of %s, with a sentence besides: %s", async (queue, remedy) => {
  assert.strictEqual(
    await said(queue, ["orders", "mails"], "untold", { besides: "Give --create to create it" }),
    remedy
  )
})

it.each([
  ["orders.dlq", [], undefined, "Check the name of the queue on the broker"],
  ["orders.dlp", ["orders.dlq", "graves"], "untold", "Did you mean orders.dlq?"],
  ["bills.dlq", ["graves"], "untold", "Configured queues: graves"]
] as const)(
  "of the dead-letter queue %s, with %j known and names %s, no live queue: %s",
  async (queue, known, names, remedy) => {
    assert.strictEqual(await said(queue, known, names, { isDead: true }), remedy)
  }
)
