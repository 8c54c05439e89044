/** A remedy is true when it is followed: a name that is advised is one that the broker has. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import * as Existing from "../src/Existing.ts"

/** What is said of a queue that is missing, where the configuration has `known`, by a broker that has `orders`. */
const said = (queue: string, known: ReadonlyArray<string>, names?: "untold" | "refused", besides?: string) =>
  Effect.gen(function* () {
    const broker = yield* Broker.Broker
    const { names: _, ...others } = broker.admin
    const refused = Effect.fail(
      new BrokerError.BrokerError({ broker: "memory", operation: "list", reason: "AccessRefused", detail: "no" })
    )
    const admin = names === undefined ? broker.admin : names === "untold" ? others : { ...others, names: refused }
    yield* broker.admin.counts("orders")
    const check = Existing.check([queue], known, besides).pipe(
      Effect.provideService(Broker.Broker, { ...broker, admin }),
      Effect.flip
    )
    return (yield* check).remedy
  }).pipe(Effect.provide(MemoryBroker.layer()), Effect.runPromise)

it.each([
  ["ordres", ["ordres.dlq", "mails"], undefined, "Write its name as the broker has it"],
  ["ordres", ["orders", "mails"], "untold", "Did you mean orders?"],
  ["bills", ["orders", "mails"], "untold", "Configured are orders, mails"],
  ["bills", ["orders", "mails"], "refused", "Configured are orders, mails"],
  ["bills", [], "untold", "Write its name as the broker has it"],
  ["bills", ["bills", "bill"], undefined, "It is configured and does not exist yet: run requeue create"]
] as const)("of %s, with %j configured and the broker's names %s: %s", async (queue, known, names, remedy) => {
  assert.strictEqual(await said(queue, known, names), remedy)
})

it.each([
  ["ordres", "Did you mean orders? To make it, give --create"],
  ["bills", "Configured are orders, mails. To make it, give --create"]
] as const)("of %s, with a sentence besides: %s", async (queue, remedy) => {
  assert.strictEqual(await said(queue, ["orders", "mails"], "untold", "To make it, give --create"), remedy)
})
