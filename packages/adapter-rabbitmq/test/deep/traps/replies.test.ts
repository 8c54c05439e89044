/** Answers to requesters without a queue. https://www.rabbitmq.com/docs/direct-reply-to */
import * as Effect from "effect/Effect"
import { Producer } from "@requeue/core"
import { assert, test } from "vitest"
import { RabbitMqNative } from "../../../src/index.ts"
import { shared } from "../../real/server.ts"
import { on, queueName, until } from "../../world.ts"
import { consume, raw } from "./trap.ts"

const { url } = await shared()

test("an answer by direct reply-to arrives once, and its send succeeds", { timeout: 120_000 }, async () => {
  const queue = queueName("requests")
  const answers: Array<string> = []
  const sent: Array<unknown> = []
  await on({ url }, () =>
    Effect.gen(function* () {
      const producer = yield* Producer.make<string>("answers")
      yield* consume(queue, [], {}, (request) => {
        const { correlationId, replyTo } = RabbitMqNative.of(request)!
        const native = RabbitMqNative.make({ exchange: "", routingKey: replyTo!, correlationId: correlationId! })
        return Effect.matchEffect(producer.send("answer", { native }), {
          onSuccess: () => Effect.sync(() => void sent.push("sent")),
          onFailure: (error) => Effect.sync(() => void sent.push(error))
        })
      })
      yield* Effect.promise(() =>
        raw(url, async (channel) => {
          await channel.consume(
            "amq.rabbitmq.reply-to",
            (message) => void answers.push(String(message?.properties.correlationId)),
            { noAck: true }
          )
          const ids = ["a", "b", "c"]
          for (const correlationId of ids)
            channel.sendToQueue(queue, Buffer.from('"x"'), { correlationId, replyTo: "amq.rabbitmq.reply-to" })
          await Effect.runPromise(
            until("all answers, and what became of them", () => sent.length >= 3 && answers.length >= 3)
          )
          assert.deepStrictEqual(sent, ["sent", "sent", "sent"])
          // What is sent twice is there before an answer that is sent later.
          channel.sendToQueue(queue, Buffer.from('"x"'), { correlationId: "last", replyTo: "amq.rabbitmq.reply-to" })
          await Effect.runPromise(until("the last answer", () => answers.includes("last")))
          assert.deepStrictEqual(answers.toSorted(), [...ids, "last"])
        })
      )
    })
  )
})
