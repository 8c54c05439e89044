/**
 * `requeue tail`: prints the messages of a queue as they come.
 *
 * No broker shows the messages of a queue to a program that does not consume it. So this command browses the ready messages
 * repeatedly. With `--take`, the command is a consumer and removes the messages.
 */
import { Broker, type Delivery, RetryPolicy } from "@requeue/core"
import { BoundedMap, Settlement } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Body from "../Body.ts"
import * as DeadLetterTarget from "../DeadLetterTarget.ts"
import * as DurationFlag from "../DurationFlag.ts"
import * as NumberFlag from "../NumberFlag.ts"
import { Output } from "../Output.ts"
import * as Printable from "../Printable.ts"
import * as Target from "../Target.ts"
import { UsageError } from "../UsageError.ts"

const flags = {
  ...Target.flags,
  dead: Flag.Boolean("dead").pipe(
    Flag.withDescription("The queue's dead letters, which no consumer takes meanwhile"),
    Flag.withDefault(false)
  ),
  take: Flag.Boolean("take").pipe(
    Flag.withDescription("Consume: print each message, and remove it for good"),
    Flag.withDefault(false)
  ),
  limit: NumberFlag.whole("limit", 1, 1_000_000_000).pipe(
    Flag.withDescription("End after this number of messages. Default: go on until interrupted"),
    Flag.optional
  ),
  interval: DurationFlag.make("interval", 24 * 60 * 60 * 1000).pipe(
    Flag.withDescription("Time between two times of browsing. Default: 1s"),
    Flag.withDefault(1000)
  )
}

/** The most messages to browse at a time. */
const depth = 1000

/** The largest number of unsettled messages with --take. */
const maxUnsettled = 100

/** The number of printed messages that are remembered. */
const maxPrinted = 100_000

interface Source {
  readonly queue: string
  readonly retry: RetryPolicy.RetryPolicy
  readonly deadLetterQueues: ReadonlyArray<string>
}

const sourcesOf = (queue: Target.Queue, dead: boolean): ReadonlyArray<Source> => {
  const deadLetterQueues = DeadLetterTarget.of(queue)
  if (dead) return deadLetterQueues.map((name) => ({ queue: name, retry: RetryPolicy.make(), deadLetterQueues: [] }))
  return [{ queue: queue.name, retry: queue.options.retry ?? RetryPolicy.make(), deadLetterQueues }]
}

const print = (queue: string, delivery: Delivery.Delivery) =>
  Effect.gen(function* () {
    const { line } = yield* Output
    const at = new Date(yield* Clock.currentTimeMillis).toISOString()
    const { attempts, fairBy, headers, metadata, place } = delivery
    const { deadLetter, id } = metadata
    const body = Body.plain(delivery)
    // JSON leaves out a key and a fairBy that are undefined.
    const order = { key: place?.key, fairBy }
    const json = { at, queue, id, ...order, attempts, headers, body: Body.toJson(body), deadLetter: deadLetter ?? null }
    yield* line(json, () =>
      [
        at,
        queue,
        Printable.line(id),
        deadLetter === undefined ? `attempt ${attempts}` : deadLetter.reason,
        Body.line(body)
      ].join("  ")
    )
  })

/** Identifies a message. Two messages are the same only if all of these properties are equal. */
const nameOf = (queue: string, { attempts, metadata }: Delivery.Delivery): string => {
  const { deadLetter, firstPublished, id, redrives } = metadata
  return JSON.stringify([queue, id, firstPublished, redrives, attempts, deadLetter?.at])
}

/** Browses a queue once, page by page. */
const browse = Effect.fnUntraced(function* (queue: string) {
  const { admin } = yield* Broker.Broker
  const browser = yield* admin.browse({ queue, from: "ready", limit: depth })
  const shown: Array<Broker.BrowsedMessage> = []
  while (shown.length < depth) {
    const page = yield* browser.next(depth - shown.length)
    if (page.length === 0) break
    shown.push(...page)
  }
  return shown
}, Effect.scoped)

/** Prints ready messages that have not been printed; ends after `limit` messages. */
export const look = Effect.fnUntraced(function* (sources: ReadonlyArray<Source>, limit: number, interval: number) {
  const printed = BoundedMap.make<true>(maxPrinted)
  for (let left = limit; ; yield* Effect.sleep(interval)) {
    for (const { queue } of sources) {
      for (const { delivery } of yield* browse(queue)) {
        const name = nameOf(queue, delivery)
        if (printed.has(name)) continue
        printed.set(name, true)
        yield* print(queue, delivery)
        if (--left === 0) return
      }
    }
  }
})

/** Takes messages; prints each and then acks it; ends after `limit` messages. */
const take = (sources: ReadonlyArray<Source>, limit: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const arrived = yield* Queue.unbounded<{ readonly source: Source; readonly delivery: Delivery.Delivery }>()
      const subscriptions = new Map(
        yield* Effect.forEach(sources, (source) =>
          Effect.map(
            broker.subscribe({
              ...source,
              onDelivery: (delivery) => Queue.offerUnsafe(arrived, { source, delivery }),
              onReconnect: () => {}
            }),
            (subscription) => [source, subscription] as const
          )
        )
      )
      for (let left = limit; left > 0; left--) {
        for (const subscription of subscriptions.values()) subscription.credit(Math.min(maxUnsettled, left))
        const { delivery, source } = yield* Queue.take(arrived)
        yield* print(source.queue, delivery)
        yield* subscriptions.get(source)!.settle([{ delivery, settlement: Settlement.Ack }])
      }
    })
  )

export const tail = Command.make("tail", flags, (given) =>
  Effect.gen(function* () {
    const { dead, interval, limit, ...rest } = given
    const target = yield* Target.resolve(rest)
    const sources = target.queues.flatMap((queue) => sourcesOf(queue, dead))
    const most = Option.getOrElse(limit, () => Number.POSITIVE_INFINITY)
    const work = Effect.gen(function* () {
      if (given.take) return yield* take(sources, most)
      const { capabilities } = yield* Broker.Broker
      if (capabilities.uncountedBrowse) return yield* look(sources, most, interval)
      return yield* new UsageError({
        detail: `${capabilities.broker} cannot show messages without taking them`,
        remedy: "Give --take to take them out of the queue for good, or see their number with requeue status --watch"
      })
    })
    yield* Effect.provide(work, Target.layer(target))
  })
).pipe(
  Command.withDescription(
    "Prints the ready messages of a queue, and then new ones, until interrupted. It browses the oldest 1,000 " +
      "repeatedly: it does not see messages that a consumer takes in between, and it needs --take on brokers " +
      "that cannot be browsed without counting deliveries. With --take it is a consumer itself: it prints each message that it gets, and " +
      "removes it for good."
  ),
  Command.withShortDescription("Print the messages of a queue as they arrive"),
  Command.withExamples([
    { command: "requeue tail --queue orders --dead", description: "Dead letters as they arrive" },
    { command: "requeue tail -q audit --take --json > audit.jsonl", description: "Empty a queue into a file" }
  ])
)
