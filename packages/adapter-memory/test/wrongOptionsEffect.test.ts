/** Options of the functions for programs with Effect: they die of wrong ones, and the stack leads to the call. */
import { assert, it } from "@effect/vitest"
import { Broker, Consumer, Producer, Puller, QueueDefinition } from "@requeue/core"
import { DeadLetters, DelayedMessages } from "@requeue/operations"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { MemoryBroker } from "../src/index.ts"

type Loose = any // What these tests are about is what a compiler would refuse.

const handler = (): void => {}
const letters = (call: (self: Loose) => Loose): Loose => Effect.flatMap(DeadLetters.make("d"), call)
const producer = (call: (self: Loose) => Loose): Loose => Effect.flatMap(Producer.make("q"), call)

const rows: ReadonlyArray<readonly [() => Loose, string]> = [
  [
    () => Consumer.start("q", { concurency: 3 } as Loose, handler),
    "Consumer.start (queue q): unknown option concurency. Did you mean concurrency?"
  ],
  [
    () => Consumer.start("q", { retry: { maxRetries: 3 } } as Loose, handler),
    "Consumer.start (queue q): retry must be a policy, made by RetryPolicy.make, got an object. Write RetryPolicy.make({ … })"
  ],
  [
    () => Consumer.start(QueueDefinition.make("q"), { concurrency: 0 }, handler),
    "Consumer.start (queue q): concurrency must be a whole number from 1 to 1000, got 0"
  ],
  [
    () => Consumer.startBatch("q", handler as Loose, undefined as Loose),
    "Consumer.startBatch (queue q): handler must be a function, after the options, got undefined. Write Consumer.startBatch(queue, {}, handler)"
  ],
  [
    () => Puller.make("q", { leas: 3 } as Loose),
    'Puller.make (queue q): unknown option leas. Did you mean lease? Write lease: "10 seconds"'
  ],
  [
    () => Effect.flatMap(Puller.make("q"), ({ pull }) => pull({ timeout: 5 } as Loose)),
    "Puller.pull (queue q): unknown option timeout. Allowed: wait"
  ],
  [
    () => Producer.make("q", { maxPendin: 3 } as Loose),
    "Producer.make (queue q): unknown option maxPendin. Did you mean maxPending?"
  ],
  [
    () => Producer.make("q", { publishTimeout: 0 }),
    "Producer.make (queue q): publishTimeout must be a duration from 1ms to 1d, got 0"
  ],
  [
    () => producer(({ send }) => send(1, { dealy: 5 })),
    'Producer.send (queue q): unknown option dealy. Did you mean delay? Write delay: "10 seconds"'
  ],
  [
    () => producer(({ sendBatch }) => sendBatch([1])),
    "Producer.sendBatch (queue q): entries[0] must be an object with a body, got 1. Write { body: message } for each message"
  ],
  [
    () => letters(({ list }) => list({ limt: 5 })),
    "DeadLetters.list (queue d): unknown option limt. Did you mean limit?"
  ],
  [
    () => letters(({ group }) => group(5)),
    "DeadLetters.group (queue d): options must be an object, got 5. Write { limit: 5 }"
  ],
  [
    () => letters(({ redrive }) => redrive({ dryrun: true })),
    "DeadLetters.redrive (queue d): unknown option dryrun. Did you mean dryRun?"
  ],
  [
    () => letters(({ redrive }) => redrive({ to: "d" })),
    'DeadLetters.redrive (queue d): to must be another queue, got "d"'
  ],
  [
    () => letters(({ purge }) => purge()),
    "DeadLetters.purge (queue d): nothing says which dead letters to remove. Pass { filter } for some of them, or { all: true } for all"
  ]
]

it.each(rows)("%s", async (call, message) => {
  const program = Effect.scoped(call()) as Effect.Effect<unknown, unknown, Broker.Broker> // Rows need no other service.
  const exit = await Effect.runPromiseExit(Effect.provide(program, MemoryBroker.layer()))
  const error: Loose = Exit.isFailure(exit) ? Cause.squash(exit.cause) : assert.fail("it was accepted")
  assert.instanceOf(error, RangeError)
  assert.strictEqual(error.message, message)
  assert.match(error.stack!.replace(message, ""), /wrongOptionsEffect\.test\.ts/)
})

it.effect("options are those of the call: what is changed before the effect runs changes nothing", () =>
  Effect.gen(function* () {
    const producer = yield* Producer.make("q.dlq")
    yield* producer.sendBatch([{ body: 1 }, { body: 2, delay: "1 hour" }])
    const [letters, delayed] = [yield* DeadLetters.make("q.dlq"), yield* DelayedMessages.make("q.dlq")]
    const options = { filter: () => true, dryRun: true }
    const [purge, purgeDelayed] = [letters.purge(options), delayed.purge(options)]
    options.dryRun = false
    yield* purge
    yield* purgeDelayed
    const { admin } = yield* Broker.Broker
    assert.deepStrictEqual(yield* admin.counts("q.dlq"), { ready: 1, inFlight: 0, delayed: 1 })
  }).pipe(Effect.scoped, Effect.provide(MemoryBroker.layer()))
)
