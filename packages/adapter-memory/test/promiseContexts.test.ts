/** The async contexts of a program's functions, through the promise face. */
import { delayedMessages } from "@requeue/operations/promise"
import { assert, it } from "@effect/vitest"
import { queue } from "@requeue/core/promise"
import { Codec } from "@requeue/core"
import { AsyncLocalStorage } from "node:async_hooks"
import { open, turns } from "./virtualBroker.ts"

const storage = new AsyncLocalStorage<string>()

/** Notes the context in which each function runs, and leaves another one behind. */
const witness = () => {
  const seen = new Set<string>()
  return {
    seen,
    see: (what: string): void => {
      seen.add(`${what}: ${storage.getStore()}`)
      storage.enterWith(`after ${what}`)
    }
  }
}

const codecOf = (see: (what: string) => void): Codec.Codec<string> => ({
  ...Codec.json,
  encode: (body) => {
    see("encode")
    return Codec.json.encode(body)
  },
  decode: (bytes) => {
    see("decode")
    return Codec.json.decode(bytes, {})
  }
})

it("consume: its functions run in its context, and encode in that of connect", async () => {
  const { see, seen } = witness()
  const orders = queue("q", { codec: codecOf(see) })
  await using broker = await storage.run("client", () => open())
  const { requeue } = broker
  await storage.run("consumer", () =>
    requeue.consume(orders, { onEvent: () => see("hook"), retry: { maxRetries: 2 } }, async ({ attempts, body }) => {
      see(body)
      await turns(1)
      if (attempts === 1) throw new Error("again")
    })
  )
  for (const body of ["a", "b"]) await storage.run(`request of ${body}`, () => requeue.send(orders, body))
  await broker.advance("1 second")
  const expected = ["encode: client", "decode: consumer", "hook: consumer", "a: consumer", "b: consumer"]
  assert.deepStrictEqual([...seen].toSorted(), expected.toSorted())
})

it("puller: decode and hooks run in the context of puller()", async () => {
  const { see, seen } = witness()
  const orders = queue("q", { codec: codecOf(see) })
  await using broker = await storage.run("client", () => open())
  const { requeue } = broker
  const puller = await storage.run("puller", () => requeue.puller(orders, { onEvent: () => see("hook") }))
  await storage.run("request", () => requeue.send(orders, "a"))
  const pulled = await storage.run("pull", () => broker.finish(puller.pull()))
  pulled?.messages[0]?.ack()
  await storage.run("pull", async () => pulled?.settle())
  await broker.advance("1 second")
  assert.deepStrictEqual([...seen].toSorted(), ["decode: puller", "encode: client", "hook: puller"])
})

it("filters of delayed messages run in the context of their call", async () => {
  const { see, seen } = witness()
  await using broker = await storage.run("client", () => open())
  const { requeue } = broker
  for (const body of [1, 2]) await storage.run("request", () => requeue.send("q", body, { delay: "1 hour" }))
  const delayed = storage.run("client", () => delayedMessages(requeue, "q"))
  const filterOf = (call: string) => () => {
    see(call)
    return true
  }
  await storage.run("operator", () => delayed.list({ filter: filterOf("list") }))
  await storage.run("operator", () => delayed.count({ filter: filterOf("count") }))
  await storage.run("operator", () => delayed.purge({ filter: filterOf("purge") }))
  assert.deepStrictEqual([...seen].toSorted(), ["count: operator", "list: operator", "purge: operator"])
})
