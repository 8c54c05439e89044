/** Many count queues at the same time, of which some are missing: the server closes the channel of each that is. */
import { BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { assert, test } from "vitest"
import type { Channel } from "../src/internal/client.ts"
import * as Passive from "../src/internal/inspect/passive.ts"

/** One who asks: when, about which queue, how long the server takes, and whether they leave before that. */
interface Asker {
  readonly at: number
  readonly queue: number
  readonly takes: number
  readonly leaves: boolean
}

const askers = fc.array(
  fc.record({ at: fc.nat(10), queue: fc.nat(11), takes: fc.integer({ min: 1, max: 20 }), leaves: fc.boolean() }),
  { minLength: 1, maxLength: 80, size: "max" }
)

const isMissing = (queue: string): boolean => Number(queue) % 3 === 0

/** The driver's error where the server has closed the channel. */
const closed = (queue: string) =>
  new Error(`Operation failed: QueueDeclare; 404 (NOT_FOUND) with message "no queue '${queue}'"`)

/** A server that tells of a queue what it has at the moment of the answer, and closes the channel of one that is missing. */
const server = (
  takes: (queue: string) => number,
  ready: (queue: string) => number,
  run: (millis: number) => Promise<void>
) => {
  let [open, most, asked] = [0, 0, 0]
  const channel = () => {
    let isOpen = true
    most = Math.max(most, ++open)
    const close = () => {
      if (isOpen) open--
      isOpen = false
    }
    const checkQueue = async (queue: string) => {
      if (!isOpen) throw new Error("Channel closed")
      asked++
      await run(takes(queue))
      if (!isMissing(queue)) return { queue, messageCount: ready(queue), consumerCount: 0 }
      close()
      throw closed(queue)
    }
    return { close, channel: { checkQueue } as unknown as Channel } // The driver's types have much more.
  }
  return {
    figures: () => ({ open, most, asked }),
    declarer: {
      keptChannel: () =>
        Effect.map(
          Effect.acquireRelease(Effect.andThen(Effect.sleep(1), Effect.sync(channel)), ({ close }) =>
            Effect.sync(close)
          ),
          (made) => made.channel
        )
    }
  }
}

const scenario = (all: ReadonlyArray<Asker>) =>
  Effect.gen(function* () {
    const context = yield* Effect.context()
    const run = Effect.runPromiseWith(context)
    let now = 0
    const takes = new Map(all.map(({ queue, takes }) => [String(queue), takes]))
    // More and more come: an answer tells when it was given.
    const fake = server(
      (queue) => takes.get(queue) ?? 1,
      (queue) => now * 100 + Number(queue),
      (millis) => run(Effect.sleep(millis))
    )
    const passive = Passive.make({ declarer: fake.declarer, requestTimeout: 10_000 })
    const fibers = yield* Effect.forEach(all, ({ at, leaves, queue }) =>
      Effect.forkChild(
        Effect.gen(function* () {
          yield* Effect.sleep(at)
          const ask = Effect.exit(
            leaves ? Effect.timeoutOption(passive(String(queue)), 3) : Effect.asSome(passive(String(queue)))
          )
          // Who asks again at once comes when workers end.
          yield* ask
          const answer = yield* ask
          return { at, queue, answer }
        })
      )
    )
    for (; now < 2000; now++) yield* TestClock.adjust(1)
    const told = yield* Effect.forEach(fibers, (fiber) => Effect.sync(() => fiber.pollUnsafe()))
    return { told, figures: fake.figures() }
  })

test("each is told of its own queue, what is there when it asks, and nobody waits for ever", { timeout: 60_000 }, () =>
  fc.assert(
    fc.asyncProperty(askers, async (all) => {
      const { figures, told } = await Effect.runPromise(Effect.provide(scenario(all), TestClock.layer()))
      for (const exit of told) {
        assert.isTrue(exit !== undefined && Exit.isSuccess(exit), "somebody still waits")
        if (exit === undefined || !Exit.isSuccess(exit)) return
        const { answer, at, queue } = exit.value
        if (isMissing(String(queue))) {
          if (Exit.isSuccess(answer)) assert.strictEqual(answer.value._tag, "None")
          else {
            const error = Exit.findErrorOption(answer)
            assert.isTrue(error._tag === "Some" && error.value instanceof BrokerError.BrokerError)
            if (error._tag === "Some") assert.deepInclude(error.value, { reason: "QueueMissing", queue: String(queue) })
          }
        } else {
          assert.isTrue(Exit.isSuccess(answer), "a queue that is there failed")
          if (!Exit.isSuccess(answer) || answer.value._tag === "None") continue
          const { messageCount } = answer.value.value
          assert.strictEqual(messageCount % 100, queue)
          assert.isAtLeast(Math.floor(messageCount / 100), at)
        }
      }
      assert.strictEqual(figures.open, 0)
      assert.isAtMost(figures.most, 16)
    }),
    { numRuns: 30 }
  )
)

test.each(["", "amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.abc", "x".repeat(256), "orders\n"])(
  "the server is not asked about %j, which no queue can have as its name",
  async (queue) => {
    const fake = server(
      () => 1,
      () => 1,
      async () => {}
    )
    const passive = Passive.make({ declarer: fake.declarer, requestTimeout: 10_000 })
    const error = await Effect.runPromise(Effect.flip(passive(queue)))
    assert.deepInclude(error, { reason: "QueueMissing", queue })
    assert.strictEqual(fake.figures().asked, 0)
  }
)
