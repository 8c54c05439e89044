/** Clean moves messages to a queue that refuses some of them. */
import { assert, describe, test } from "vitest"
import * as Effect from "effect/Effect"
import { cleaned, place } from "./cleaning.ts"
import { apart, server } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { drainIds, until } from "../world.ts"

const one = await server()
const { broker, url } = one
const management = broker.managementUrl ?? "http://127.0.0.1:15672"

/** A stale queue, and the queue of its messages, which takes no more than `room`. */
const full = async (room: number) => {
  const { options, prefix, queue } = place({ url, management })
  const delayed = `${queue}_dlq_1`
  await raw(url, async (channel) => {
    // A classic queue refuses as soon as it is full.
    await channel.assertQueue(queue, { arguments: { "x-max-length": room, "x-overflow": "reject-publish" } })
    const onward = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue }
    await channel.assertQueue(delayed, { arguments: { "x-queue-type": "quorum", ...onward } })
  })
  return { delayed, prefix, queue, options: { ...options, queues: { [queue]: { assert: "passive" } } } as const }
}

const put = (queue: string, ids: ReadonlyArray<string>) =>
  raw(url, async (channel) => {
    for (const messageId of ids) channel.sendToQueue(queue, Buffer.from('"x"'), { messageId, persistent: true })
  })

describe.runIf(broker.managementUrl !== undefined).concurrent("what is refused", () => {
  test("last stays, and what was moved before it is gone from its queue", { timeout: 60_000 }, async () => {
    const { delayed, options, queue } = await full(2)
    await put(delayed, ["a", "b", "c"])
    const { objects } = await cleaned(queue, options)
    assert.deepStrictEqual(
      objects.map(({ name, outcome }) => [name, outcome]),
      [[delayed, "kept"]]
    )
    assert.deepStrictEqual([await drainIds(url, queue), await drainIds(url, delayed)], [["a", "b"], ["c"]])
  })

  test("of what enters a queue while it is deleted is undelivered, and not lost", { timeout: 60_000 }, async () => {
    const { delayed, options, prefix, queue } = await full(0)
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { proxied, proxy } = yield* apart(one)
          // From then on it is sure that the queue is empty, and it is deleted next.
          const consumed = proxy.delayNext(({ about, name }) => name === "consume" && about === delayed)
          const cleaning = cleaned(queue, { ...options, url: proxied })
          yield* until("the last moment of the queue", consumed.happened, 40_000)
          yield* Effect.promise(() => put(delayed, ["late"]))
          consumed.end()
          const { objects } = yield* Effect.promise(() => cleaning)
          assert.deepStrictEqual(
            objects.map(({ name, outcome }) => [name, outcome]),
            [[delayed, "removed"]]
          )
        })
      )
    )
    assert.deepStrictEqual(await drainIds(url, `${prefix}.v1.q.undelivered`), ["late"])
  })
})
