/** A fix that mends nothing: 10,000 dead letters are redriven in stages, and few of them fail again. On each server. */
import { Adapters, Broker, Consumer, type Event, RetryPolicy } from "@requeue/core"
import { Metadata, Outgoing } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { assert, describe, it } from "vitest"
import { type Address, open } from "../real/brokers.ts"
import { until } from "../until.ts"

const count = 10_000
const body = new TextEncoder().encode("{}")
const error = { name: "Error", message: "503" }

/** Dead letters, as consumers of the queue would have made them. */
const bury = (broker: Broker.Service, queue: string, dlq: string) => {
  const now = Date.now()
  const letters = Array.from({ length: count }, (_, index): Outgoing.Outgoing => {
    const deadLetter = { queue, attempts: 1, reason: "retries-exhausted", at: now, error } as const
    return {
      queue: dlq,
      body,
      headers: { "content-type": "application/json" },
      delay: 0,
      metadata: { ...Metadata.make(`m${index}`, now), deadLetter }
    }
  })
  return Effect.forEach(
    Array.from({ length: count / 500 }, (_, page) => letters.slice(500 * page, 500 * (page + 1))),
    (page) => broker.publish(page),
    { concurrency: 4, discard: true }
  )
}

/** Answers the report, and what the consumer saw. `fails` is asked of each run, which are counted from 1. */
const redrive = (url: string, fails: (run: number) => boolean, options: DeadLetters.RedriveOptions) =>
  Effect.gen(function* () {
    const broker = yield* Broker.Broker
    const queue = "fixed"
    const dlq = "fixed.dlq"
    const events: Array<Event.Event> = []
    let runs = 0
    const retry = RetryPolicy.make({ maxRetries: 0 })
    // It also makes the queues.
    yield* Consumer.start(queue, { retry, onEvent: (event) => void events.push(event) }, () =>
      fails(++runs) ? Effect.fail(new Error("503")) : Effect.void
    )
    yield* bury(broker, queue, dlq)
    const letters = yield* DeadLetters.make(dlq)
    yield* Effect.promise(() =>
      until("the dead letters", async () => (await Effect.runPromise(letters.count)) === count)
    )
    const report = yield* letters.redrive(options)
    const ended = (tag: Event.Event["_tag"]) => events.filter(({ _tag }) => _tag === tag).length
    yield* Effect.promise(() =>
      until(
        "the end of all that was redriven",
        async () => ended("Succeeded") + ended("DeadLettered") === report.published
      )
    )
    yield* Effect.promise(() =>
      until(
        "all letters that did not succeed",
        async () => (await Effect.runPromise(letters.count)) === count - ended("Succeeded")
      )
    )
    const operations = new Set(events.flatMap((event) => ("operation" in event ? [event.operation] : [])))
    return { report, succeeded: ended("Succeeded"), failed: ended("DeadLettered"), operations: [...operations] }
  }).pipe(Effect.scoped, Effect.provide(Adapters.layer(url)), Effect.provide(Logger.layer([])), Effect.runPromise)

/** The server tells what is in flight, and which delays there are, by its management interface. */
const managed = ({ dispose, managementUrl, url }: Address): Address => {
  const both = new URL(url)
  if (managementUrl !== undefined) both.searchParams.set("management", managementUrl)
  return { url: both.href, managementUrl, dispose }
}

const brokers: ReadonlyArray<readonly [string, () => Promise<Address>]> = [
  ["rabbitmq", async () => managed(await open("rabbitmq"))],
  ["nsq", () => open("nsq")],
  ["sqs", () => open("sqs")]
]

describe.each(brokers)("on %s, of 10,000 dead letters", (_, start) => {
  it("at most 11 fail again, and the report's figures are those of the consumer", async () => {
    const { dispose, url } = await start()
    try {
      // The first one happens to succeed. The wait is longer than counts may be late.
      const options = { stages: [1, 10, 100], stopAt: 0.1, wait: "20 seconds" } as const
      const { failed, operations, report, succeeded } = await redrive(url, (run) => run > 1, options)
      assert.isAtMost(failed, 11)
      assert.deepStrictEqual([report.stoppedBy, succeeded], ["stop-at", 1])
      // An nsqd shows no more than its --max-rdy-count at a time, and what SQS has shown, it hides from the next look.
      assert.deepStrictEqual([report.published, report.cameBack! + report.unseen], [succeeded + failed, failed])
      assert.deepStrictEqual([report.succeeded, report.waiting], [succeeded, 0])
      assert.deepStrictEqual(
        report.stages.map(({ published, size }) => [size, published]),
        [
          [1, 1],
          [10, 10]
        ]
      )
      assert.strictEqual(report.queued, count - report.published)
      assert.deepStrictEqual(operations, [report.operation])
    } finally {
      await dispose()
    }
  })
})
