/** Messages that a former `waitLoop` has left: a consumer that runs warns of them. */
import { assert, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"
import type { Channel } from "../src/internal/client.ts"
import type { Declarer } from "../src/internal/declare/declare.ts"
import * as LeftBehind from "../src/internal/inspect/leftBehind.ts"
import * as RabbitMqOptions from "../src/RabbitMqOptions.ts"

/** Warns as often as there are counts; `undefined` is a queue that is missing. Answers the lines, and how often it asked. */
const warned = Effect.fnUntraced(function* (counts: ReadonlyArray<number | undefined>, waiting?: string) {
  const lines: Array<string> = []
  let asked = 0
  let count: number | undefined
  const onChannel = ((operation: string, queue: string, run: (channel: Channel) => Promise<unknown>) => {
    asked++
    if (count === undefined)
      return Effect.fail(
        new BrokerError.BrokerError({ broker: "rabbitmq", operation, queue, reason: "QueueMissing", detail: "none" })
      )
    const told = { consumerCount: 0, messageCount: count }
    return Effect.promise(() => run({ checkQueue: async () => told } as unknown as Channel))
  }) as Declarer["onChannel"]
  const settings = Result.getOrThrow(RabbitMqOptions.decode())
  const warn = LeftBehind.warn({ onChannel }, { queue: "orders", waiting }, settings)
  const logger = Logger.make(({ message }) => void lines.push(String(message)))
  for (count of counts) yield* Effect.provide(warn, Logger.layer([logger]))
  return { asked, lines }
})

it.effect("a consumer warns once of messages that the former topology has left, also where they come later", () =>
  Effect.gen(function* () {
    const late = yield* warned([0, 0, 7, 8])
    assert.strictEqual(late.asked, 3)
    assert.strictEqual(late.lines.length, 1)
    assert.match(late.lines[0]!, /^7 messages wait in orders\.waiting\.v1 .*run requeue clean/)
    assert.deepStrictEqual(yield* warned([undefined, 7]), { asked: 1, lines: [] })
    assert.deepStrictEqual(yield* warned([7], "orders.waiting.v1"), { asked: 0, lines: [] })
  })
)
