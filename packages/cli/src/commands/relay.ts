/** `requeue relay`: publishes the outbox of a store, until it is interrupted or the outbox is empty. */
import { BatchPolicy, Broker, BrokerError, type Event, Relay } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Interruption from "../Interruption.ts"
import * as NumberFlag from "../NumberFlag.ts"
import { Output } from "../Output.ts"
import { Problem } from "../Problem.ts"
import * as RelayTarget from "../RelayTarget.ts"

const flags = {
  ...RelayTarget.flags,
  batch: NumberFlag.whole("batch", 1, 100).pipe(
    Flag.withDescription("The most messages to publish at once. Default: 100"),
    Flag.withDefault(100)
  ),
  concurrency: NumberFlag.whole("concurrency", 1, 1000).pipe(
    Flag.withDescription("The number of batches that are published concurrently. Default: 4"),
    Flag.withDefault(Relay.defaults.concurrency)
  ),
  untilEmpty: Flag.Boolean("until-empty").pipe(
    Flag.withDescription("End when no message is due; exit code 1 if messages were dead-lettered"),
    Flag.withDefault(false)
  )
}

/** Milliseconds between two lines. */
const betweenLines = 10_000

/** Milliseconds between two counts of the outbox. */
const betweenCounts = 500

/** Messages that left the outbox. */
interface Moved {
  readonly published: number
  readonly deadLettered: number
}

const show = ({ deadLettered, published }: Moved): string => `published ${published}, dead-lettered ${deadLettered}`

/** Ends when no message of the outbox is due. An outage of the store delays it. */
const untilEmpty = Effect.gen(function* () {
  const { outbox = Relay.queue, store } = yield* Broker.Broker
  const { note } = yield* Output
  for (; ; yield* Effect.sleep(betweenCounts)) {
    const counts = yield* Effect.catchIf(
      store!.admin.counts(outbox), // Without a store, the relay has not started.
      (error: BrokerError.BrokerError) => error.isRetryable,
      () => Effect.undefined
    )
    if (counts?.ready !== 0 || counts.inFlight !== 0) continue
    return counts.delayed ? yield* note(`${counts.delayed} delayed messages stay in the outbox`) : undefined
  }
})

/** The settings of a relay. */
export interface Settings {
  readonly batch: number
  readonly concurrency: number
  readonly untilEmpty: boolean
  /** The names of the broker and of the store. */
  readonly names: { readonly broker: string; readonly store: string }
}

/** Relays until it is interrupted, or the outbox is empty, and then prints the sum. */
export const run = ({ batch, concurrency, names, untilEmpty: ends }: Settings) =>
  Effect.gen(function* () {
    const { line } = yield* Output
    const sum = { published: 0, deadLettered: 0 }
    const onEvent = ({ _tag }: Event.Event) => {
      if (_tag === "Succeeded") sum.published++
      if (_tag === "DeadLettered") sum.deadLettered++
    }
    const print = (value: object, text: string) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const at = new Date(now).toISOString()
        return line({ at, ...value }, () => `${at}  ${text}`)
      })
    const report = Effect.gen(function* () {
      for (let before: Moved = { ...sum }; ; before = { ...sum }) {
        yield* Effect.sleep(betweenLines)
        const published = sum.published - before.published
        const deadLettered = sum.deadLettered - before.deadLettered
        const moved = { published, deadLettered }
        if (published + deadLettered > 0) yield* print(moved, show(moved))
      }
    })
    const policy = BatchPolicy.make({ maxBatchSize: batch, maxBatchTimeout: 0 })
    const consumer = yield* Relay.start({ batch: policy, concurrency, onEvent })
    const finish = Effect.andThen(
      consumer.drain(),
      Effect.suspend(() => print({ sum }, `in all: ${show(sum)}`))
    )
    const { queue } = consumer
    yield* print({ ...names, queue }, `relaying from ${queue} of ${names.store} to ${names.broker}`)
    yield* Effect.raceAllFirst([report, consumer.done, ...(ends ? [untilEmpty] : [])]).pipe(
      Effect.onInterrupt(() => Effect.andThen(ends ? Effect.void : Interruption.regular, Effect.ignore(finish)))
    )
    yield* finish
    if (sum.deadLettered > 0) return yield* new Problem()
  }).pipe(Effect.scoped)

export const relay = Command.make("relay", flags, ({ batch, concurrency, untilEmpty: ends, ...rest }) =>
  Effect.gen(function* () {
    const target = yield* RelayTarget.resolve(rest)
    const names = { broker: target.broker.name, store: target.store.name }
    yield* Effect.provide(run({ batch, concurrency, names, untilEmpty: ends }), RelayTarget.layer(target))
  })
).pipe(
  Command.withDescription(
    "Publishes the messages in the outbox of a store on its broker, until interrupted; then it finishes the messages in progress and " +
      "ends with exit code 0. It prints every 10 seconds how many messages left the outbox, if any did. While the broker cannot be " +
      "reached, messages wait. Messages that the broker refuses are retried, and are then dead letters in requeue.outbox.dlq of the store. " +
      "With --until-empty, it ends when no message is due; delayed messages, and those that are retried later, stay in the outbox."
  ),
  Command.withShortDescription("Publish the outbox of a store"),
  Command.withExamples([
    { command: "requeue relay --broker live", description: "For a broker of the config file that has a store" },
    {
      command: "requeue relay --url amqp://localhost --store postgres://localhost/shop",
      description: "Without a config file"
    },
    { command: "requeue relay --until-empty", description: "In a cron job" }
  ])
)
