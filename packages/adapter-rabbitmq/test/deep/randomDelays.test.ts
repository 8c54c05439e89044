/** Random delays through as few queues as `maxDelayQueues` allows: no message is lost, and no retry is early. */
import { Backoff, Consumer, type Event, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import type { RabbitMqOptions } from "../../src/index.ts"
import { shared } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { drainIds, ids, now, on, publishAll, queueName, until } from "../world.ts"

const { url } = await shared()

/** 30 messages that fail 4 times; answers the runs of each with the delay that was announced before it. */
const lives = async (queue: string, options: RabbitMqOptions.Options): Promise<void> => {
  const runs = new Map<string, Array<number>>()
  const delays = new Map<string, Array<number>>()
  const note = (to: Map<string, Array<number>>, id: string, value: number) => to.set(id, [...(to.get(id) ?? []), value])
  let letters = 0
  const onEvent = (event: Event.Event) => {
    if (event._tag === "RetryScheduled") note(delays, event.id, event.delay)
    if (event._tag === "DeadLettered") letters += 1
  }
  const backoff = Backoff.exponential(200, { jitter: "equal" })
  const retry = RetryPolicy.make({ maxRetries: 4, backoff })
  const sent = ids(30)
  await on({ url, ...options }, (broker) =>
    Effect.gen(function* () {
      yield* Consumer.start<string>(queue, { retry, onEvent, concurrency: 30 }, ({ id }) => {
        note(runs, id, now())
        return Effect.fail(new Error("no"))
      })
      yield* publishAll(broker, queue, sent)
      yield* until("30 dead letters", () => letters === sent.length)
    })
  )
  for (const id of sent) {
    const [at, announced] = [runs.get(id)!, delays.get(id)!]
    assert.lengthOf(at, 5, id)
    for (const [index, delay] of announced.entries())
      assert.isAtLeast(at[index + 1]! - at[index]!, delay, `${id}, delay ${index + 1}`)
  }
  assert.sameMembers([...(await drainIds(url, `${queue}.dlq`))], [...sent])
}

const own = (): { readonly prefix: string } => ({ prefix: queueName("r").slice(0, 20) })

describe.concurrent("random delays, never early, through", () => {
  test.each<[string, RabbitMqOptions.Options]>([
    ["levels in steps of 50 ms", {}],
    ["three rungs or levels", { maxDelayQueues: 3 }],
    ["three levels", { maxDelayQueues: 3, topology: "levels" }],
    ["three rungs", { maxDelayQueues: 3, topology: "ladder" }],
    ["rungs and levels of classic queues", { maxDelayQueues: 4, queueType: "classic" }],
    ["two queues of whole seconds", { maxDelayQueues: 2, topology: "perDelayQueue" }]
  ])("%s", (_, options) => lives(queueName("random"), { ...own(), ...options }))

  test.each<[string, RabbitMqOptions.Options]>([
    ["the default", {}],
    ["three rungs or levels", { maxDelayQueues: 3 }],
    ["three levels", { maxDelayQueues: 3, topology: "levels" }]
  ])("%s, back to a queue that is not ours", async (_, options) => {
    const queue = queueName("theirs")
    await raw(url, (channel) => channel.assertQueue(queue, { arguments: { "x-queue-type": "quorum" } }))
    await lives(queue, { ...own(), ...options, queues: { [queue]: { assert: "passive" } } })
  })
})
