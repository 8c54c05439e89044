/** What clean must not remove, and a clean that ends in the middle. */
import { Backoff, Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { clean } from "../../src/clean.ts"
import { get } from "../real/adoptedBooks.ts"
import { balanced, cleaned, exists, listed, names, none, place, underLoad } from "./cleaning.ts"
import { apart, server } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { drainIds, now, on, until } from "../world.ts"

const one = await server()
const { broker, url } = one
const management = broker.managementUrl ?? "http://127.0.0.1:15672"
const placed = () => place({ url, management })
const retry = RetryPolicy.make({ backoff: Backoff.constant(300) })

const bindingsOf = async (queue: string) =>
  ((await get(management, "bindings/%2F")) as ReadonlyArray<{ source: string; destination: string }>) // As RabbitMQ documents it.
    .filter(({ destination, source }) => destination === queue && source !== "").length

const wait = (what: string, is: () => Promise<boolean>) => Effect.runPromise(until(what, is))

describe.runIf(broker.managementUrl !== undefined).concurrent("clean", () => {
  test(
    "that loses its connection in the middle loses nothing, and the next one goes on",
    { timeout: 180_000 },
    async () => {
      const { options, prefix, queue } = placed()
      const rung = `${prefix}.v1.q.delay.300`
      const meanwhile = `${prefix}.v1.q.cleaning`
      const load = await underLoad(options, queue, retry, () =>
        Effect.runPromise(
          Effect.scoped(
            Effect.gen(function* () {
              const { proxied, proxy } = yield* apart(one)
              const first = cleaned(queue, { ...options, url: proxied }).then(
                () => "ended",
                (error: unknown) => String(error)
              )
              yield* Effect.promise(() =>
                wait(
                  "a rung without a binding",
                  async () => (await bindingsOf(meanwhile)) > 0 && (await bindingsOf(rung)) === 0
                )
              )
              proxy.refuse(true)
              proxy.cut()
              assert.match(yield* Effect.promise(() => first), /Connection(Lost|Failed)/)
              const left = yield* Effect.promise(() => listed(queue, options))
              assert.include(names(left.objects), meanwhile)
              yield* until(
                "messages that come meanwhile",
                async () => (await raw(url, (channel) => channel.checkQueue(meanwhile))).messageCount > 50
              )
              yield* Effect.promise(() => cleaned(queue, options))
            })
          )
        )
      )
      balanced(load, 300)
      assert.isFalse(await exists(url, meanwhile))
    }
  )

  test("that is stopped puts everything back", { timeout: 60_000 }, async () => {
    const { options, prefix, queue } = placed()
    const rung = `${prefix}.v1.q.delay.300`
    await on(options, () => Consumer.start(queue, { retry }, () => {}))
    const stop = new AbortController()
    const cleaning = Effect.runPromise(clean([{ queue, retry: none }], options, { isWhole: true }, stop.signal))
    await wait("a rung without a binding", async () => (await bindingsOf(rung)) === 0)
    stop.abort()
    const { objects } = await cleaning
    assert.deepStrictEqual(
      objects.map(({ name, outcome, why }) => [name, outcome, why]),
      [
        [rung, "kept", "interrupted"],
        [rung, "kept", "interrupted"]
      ]
    )
    assert.strictEqual(await bindingsOf(rung), 1)
    assert.isFalse(await exists(url, `${prefix}.v1.q.cleaning`))
  })

  test("leaves what a consumer reads, and is refused while another one runs", { timeout: 60_000 }, async () => {
    const { options, queue } = placed()
    await on({ ...options, topology: "waitLoop" }, () =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, { retry }, () => {})
        // A server with much to list answers for some seconds with what it has listed before.
        yield* until("its listing", async () =>
          names((await listed(queue, options)).objects).includes(`${queue}.waiting.v1`)
        )
        const reports = yield* Effect.promise(() =>
          Promise.allSettled([cleaned(queue, options), cleaned(queue, options)])
        )
        const errors = reports.flatMap((each) => (each.status === "rejected" ? [String(each.reason)] : []))
        const kept = reports.flatMap((each) => (each.status === "fulfilled" ? each.value.objects : []))
        assert.match(errors.join(), /another clean is running on this server/)
        assert.include(
          kept.map(({ why }) => why),
          `a consumer reads ${queue}.waiting.v1`
        )
      })
    )
  })

  // A consumer declares its objects again from time to time. Another group keeps clean waiting meanwhile.
  test("gives back at once what somebody uses again: nothing goes both ways", { timeout: 120_000 }, async () => {
    const { options, prefix, queue } = placed()
    const rung = `${prefix}.v1.q.delay.300`
    const [used, other] = [retry, RetryPolicy.make({ backoff: Backoff.constant(500) })]
    await on(options, () => Consumer.start(queue, { retry: other }, () => {}))
    await on(options, () => Consumer.start(queue, { retry: used }, () => {}))
    const begun = now()
    const cleaning = cleaned(queue, options)
    await wait("a rung without a binding", async () => (await bindingsOf(rung)) === 0)
    await raw(url, (channel) => channel.bindQueue(rung, rung, ""))
    const send = (messageId: string) =>
      raw(url, async (channel) => void channel.publish(rung, queue, Buffer.from('"x"'), { messageId }))
    await wait("it is given back", async () => {
      await send("first")
      return (await bindingsOf(`${prefix}.v1.q.cleaning`)) === 1
    })
    // At its end it would be given back after the 15 s for which the other one must be empty.
    assert.isBelow(now() - begun, 15_000)
    const messages = ["a", "b", "c"]
    for (const id of messages) await send(id)
    const { objects } = await cleaning
    assert.include(
      objects.flatMap(({ name, outcome }) => (outcome === "kept" ? [name] : [])),
      rung
    )
    const found: Array<string> = []
    await wait("all of them", async () => {
      found.push(...(await drainIds(url, queue)))
      return messages.every((id) => found.includes(id))
    })
    assert.deepStrictEqual(found.filter((id) => id !== "first").toSorted(), messages)
  })

  test("leaves a delay whose messages have nowhere to go at the moment", { timeout: 60_000 }, async () => {
    const { options, queue } = placed()
    const delayed = `${queue}_dlq_1`
    const args = { "x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" }
    await raw(url, async (channel) => {
      // The queue behind it does not exist: the server keeps the message, and counts it nowhere but in its statistics.
      const to = { "x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue }
      await channel.assertQueue(delayed, { arguments: { ...args, ...to } })
      channel.sendToQueue(delayed, Buffer.from("x"), { persistent: true, messageId: "held" })
    })
    const isDue = async () => (await raw(url, (channel) => channel.checkQueue(delayed))).messageCount === 0
    await wait("a message that is due", isDue)
    const { objects } = await cleaned(queue, options)
    assert.deepStrictEqual(
      objects.map(({ name, outcome, why }) => [name, outcome, why]),
      [[delayed, "kept", "1 messages wait until the next queue accepts them"]]
    )
  })
})
