/** The dead-letter queues of `--queue`: one that takes letters of other queues than those of the command is refused. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError, Consumer, Producer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, it } from "vitest"
import * as DeadLetterTarget from "../src/DeadLetterTarget.ts"
import { Output } from "../src/Output.ts"

const notes: Array<string> = []
/** The part of the output that is used. */
const output = { note: (text: string) => Effect.sync(() => void notes.push(text)) } as unknown as typeof Output.Service

const configured = ["one", "two"].map((name) => ({
  name,
  options: { retry: RetryPolicy.make({ maxRetries: 0, deadLetter: "graves" }) }
}))

/** What a purge of all answers for `--queue` with these names, or for `--dlq graves` without any. */
const purged = (...names: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const broker = yield* Broker.Broker
    for (const { name, options } of configured) {
      const send = yield* Producer.make(name)
      yield* send.send(1)
      const { drain } = yield* Consumer.start(name, options, () => Effect.fail(new Error("no")))
      while ((yield* broker.admin.counts(name)).ready !== 0) yield* Effect.yieldNow
      yield* drain()
    }
    const of = configured.filter(({ name }) => names.includes(name))
    // Where the broker is, is not asked.
    const target = { configured, of, queues: ["graves"] } as unknown as DeadLetterTarget.DeadLetterTarget
    const [graves] = yield* DeadLetterTarget.open(target)
    return yield* Effect.match(graves!.purge({ all: true }), {
      onSuccess: (removed) => removed,
      onFailure: (error) => (error instanceof BrokerError.BrokerError ? error.detail : error)
    })
  }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()), Effect.provideService(Output, output), Effect.runPromise)

it.each([
  [["one"], "nothing was done: graves also has dead letters of two"],
  [["one", "two"], 2],
  [[], 2]
] as const)("a purge of all for --queue %j: %s", async (names, answer) => {
  assert.strictEqual(await purged(...names), answer)
})

it("a live queue in place of a dead-letter queue is noted", async () => {
  notes.length = 0
  const target = { configured, of: [], queues: ["one", "graves"] } as unknown as DeadLetterTarget.DeadLetterTarget
  const opened = Effect.gen(function* () {
    for (const queue of target.queues) yield* (yield* Producer.make(queue)).send(1)
    yield* DeadLetterTarget.open(target)
  })
  await Effect.runPromise(Effect.provideService(Effect.provide(opened, MemoryBroker.layer()), Output, output))
  assert.deepStrictEqual(notes, ["one is a live queue, not a dead-letter queue. Give --queue one for its dead letters"])
})
