/** Copies are their originals byte by byte. */
import { Check } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { body, compare, full } from "../bits.ts"
import * as Frames from "../../frames.ts"
import { consume, raw, takeAndLeave } from "../traps/trap.ts"
import { browse, queueName, until } from "../../world.ts"
import { test } from "../../real/cases/Adapter.ts"

const client = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(() => Frames.open(url)),
    (other) => Effect.promise(async () => other.end())
  )

/** The first message of a queue, as soon as there is one. */
const taken = (other: Awaited<ReturnType<typeof Frames.open>>, queue: string) =>
  Effect.gen(function* () {
    let found: Frames.Content | undefined
    yield* until("a message", async () => (found = await other.get(queue)) !== undefined)
    return found!
  })

export const cases = [
  test("the dead letter of a message that cannot be decoded is that message byte by byte", (adapter, on) =>
    Effect.gen(function* () {
      const { url } = adapter.server
      const [queue, original] = [queueName("letter"), full(url)]
      const other = yield* client(url)
      const letter = yield* on({}, () =>
        Effect.gen(function* () {
          yield* consume(queue, [], {})
          yield* Effect.promise(() => other.publish(queue, { properties: Frames.properties(original), body }))
          return yield* taken(other, `${queue}.dlq`)
        })
      )
      compare(letter, original, true)
    })),

  test("a message that a browser has replaced is the same byte by byte", (adapter, on) =>
    Effect.gen(function* () {
      const { url } = adapter.server
      // The server itself answers for the user that it names.
      const [queue, { userId: _, ...original }] = [queueName("replaced"), full(url)]
      const other = yield* client(url)
      yield* Effect.promise(() =>
        raw(url, (channel) => channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } }))
      )
      yield* Effect.promise(() => other.publish(queue, { properties: Frames.properties(original), body }))
      yield* until(
        "it is there",
        async () => (await raw(url, (channel) => channel.checkQueue(queue))).messageCount === 1
      )
      yield* Effect.promise(() => takeAndLeave(url, queue, 1))
      yield* on({ queues: { [queue]: { assert: "passive" } } }, (broker) =>
        Effect.gen(function* () {
          Check.equal("seen", (yield* browse(broker, queue, 10)).length, 1)
        })
      )
      compare(yield* taken(other, queue), original, false)
    }))
]
