/** Letters that the server itself has made tell where they were, and why; and they can be redriven. */
import { Consumer } from "@requeue/core"
import { type Metadata } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import type { ConfirmChannel } from "amqplib"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { shared } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { drainIds, on, outgoing, queueName, until } from "../world.ts"

const { url } = await shared()

/** Gets the message of a queue until there is none. */
const each = async (channel: ConfirmChannel, queue: string, requeue: boolean) => {
  for (let message = await channel.get(queue); message !== false; message = await channel.get(queue))
    channel.reject(message, requeue)
}

type Arguments = Readonly<Record<string, unknown>>
type End = (channel: ConfirmChannel, queue: string) => unknown

const cases: ReadonlyArray<readonly [name: string, reason: Metadata.Reason, args: Arguments, end: End]> = [
  ["delivery_limit", "too-many-deliveries", {}, (channel, queue) => each(channel, queue, true)],
  ["rejected", "permanent", {}, (channel, queue) => each(channel, queue, false)],
  ["expired", "too-old", { "x-message-ttl": 500 }, () => {}],
  [
    "maxlen",
    "retries-exhausted",
    { "x-max-length": 1, "x-overflow": "drop-head", "x-dead-letter-strategy": "at-most-once" },
    (channel, queue) => channel.sendToQueue(queue, Buffer.from("x"), { messageId: "second", persistent: true })
  ]
]

test.each(cases)("%s", async (name, reason, args, end) => {
  const queue = queueName("given")
  await on({ url, deliveryLimit: 10, queues: { [queue]: { arguments: args } } }, (broker) =>
    Effect.gen(function* () {
      const consumer = yield* Consumer.start(queue, {}, () => {})
      yield* consumer.drain()
      yield* broker.publish([outgoing(queue, "a")])
      yield* Effect.promise(() => raw(url, async (channel) => void (await end(channel, queue))))
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      yield* until("the letter", async () => (await Effect.runPromise(letters.count)) === 1)
      for (let times = 0; times < 8; times++) {
        const [letter] = yield* letters.list()
        assert.deepInclude(letter?.origin, { queue, reason })
        assert.strictEqual(letter?.origin?.error.name, name)
      }
      const [group] = yield* letters.group()
      assert.deepInclude(group, { queue, reason, error: name, count: 1 })
      assert.deepInclude(yield* letters.redrive(), { redriven: 1, unknownOrigin: 0, queued: 0 })
    })
  )
  if (name !== "expired") assert.include(await drainIds(url, queue), "a")
})
