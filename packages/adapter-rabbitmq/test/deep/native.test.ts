/** Queues that delay by themselves, on RabbitMQ 4.3 and later: one broker consumes, and others know no policy. */
import { Backoff, BrokerError, type Event, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { adapter, type RabbitMqOptions } from "../../src/index.ts"
import { isAtLeast } from "../../src/internal/version.ts"
import { balance, type Arguments, make, policyOf } from "../real/adoptedBooks.ts"
import { server as ownServer } from "../real/server.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { drainIds, on, outgoing, queueName, until } from "../world.ts"

const { broker: server, url, version } = await ownServer()

const delay = 300
const constant = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(delay) })
const own = (min: number, max = min): Arguments => ({
  "x-delayed-retry-type": "failed",
  "x-delayed-retry-min": min,
  "x-delayed-retry-max": max
})
const native: RabbitMqOptions.Options = { url, topology: "native" }

/** A consumer that fails every message, and what became of them. */
const failing = (queue: string, retry = constant) => {
  const runs: Array<Run> = []
  const events: Array<Event.Event> = []
  const start = consume(queue, runs, { retry, onEvent: (event) => events.push(event) }, no)
  const dead = () => events.filter(({ _tag }) => _tag === "DeadLettered").length
  return { runs, start, dead }
}

/** No run of a message before its delay has passed since the last one. */
const notEarly = (runs: ReadonlyArray<Run>, least: (attempts: number) => number) => {
  for (const run of runs) {
    const last = runs.find(({ attempts, id }) => id === run.id && attempts === run.attempts - 1)
    if (last !== undefined) assert.isAtLeast(run.at - last.at, least(last.attempts), `${run.id}, run ${run.attempts}`)
  }
}

const send = (queue: string, ...ids: ReadonlyArray<string>) =>
  on(native, (broker) => broker.publish(ids.map((id) => outgoing(queue, id))))

describe.runIf(isAtLeast(version, "4.3"))("a queue that delays by itself", () => {
  test("is sent to, and its dead letters are listed and redriven, by processes that know no policy", async () => {
    const queue = queueName("native")
    const { dead, runs, start } = failing(queue)
    await on(native, () =>
      Effect.gen(function* () {
        yield* start
        yield* Effect.promise(() => send(queue, "a", "b"))
        yield* until("two dead letters", () => dead() === 2)
        yield* Effect.promise(() =>
          on(native, () =>
            Effect.gen(function* () {
              const letters = yield* DeadLetters.make(`${queue}.dlq`)
              assert.strictEqual((yield* letters.list()).length, 2)
              assert.strictEqual((yield* letters.redrive()).redriven, 2)
            })
          )
        )
        yield* until("two more", () => dead() === 4)
      })
    )
    assert.deepStrictEqual(runs.map(({ attempts, id }) => `${id}${attempts}`).toSorted(), [
      "a1",
      "a1",
      "a2",
      "a2",
      "a3",
      "a3",
      "b1",
      "b1",
      "b2",
      "b2",
      "b3",
      "b3"
    ])
    notEarly(runs.slice(0, 6), () => delay)
  })

  test.each(["its consumer has started", "requeue create has made it"])("refuses until %s", async (how) => {
    const queue = queueName("unmade")
    const error = await on(native, (broker) => Effect.flip(broker.publish([outgoing(queue, "early")])))
    assert.instanceOf(error, BrokerError.BrokerError)
    assert.strictEqual(error.reason, "QueueMissing")
    assert.match(error.remedy ?? "", /^Start its consumer first, or run requeue create with its policy/)
    if (how === "its consumer has started") await on(native, () => failing(queue).start)
    else
      await Effect.runPromise(
        Effect.scoped(
          Effect.flatMap(adapter.operations!.operate(new URL(url), { topology: "native" }), ({ create }) =>
            create({ queue, retry: constant })
          )
        )
      )
    await send(queue, "a")
    const { dead, runs, start } = failing(queue)
    await on(native, () =>
      Effect.andThen(
        start,
        until("a dead letter", () => dead() === 1)
      )
    )
    assert.strictEqual(runs.length, 3)
    notEarly(runs, () => delay)
  })

  test("is declared with its delays by producers as well, where the options name them", async () => {
    const queue = queueName("named")
    const named: RabbitMqOptions.Options = { ...native, queues: { [queue]: { arguments: own(delay) } } }
    await on(named, (broker) => broker.publish([outgoing(queue, "a")]))
    const { dead, runs, start } = failing(queue)
    await on(named, () =>
      Effect.andThen(
        start,
        until("a dead letter", () => dead() === 1)
      )
    )
    assert.strictEqual(runs.length, 3)
    notEarly(runs, () => delay)
    const other = failing(queue, RetryPolicy.make({ backoff: Backoff.constant("1 second") }))
    const error = await on(named, () => Effect.flip(other.start))
    assert.match(error.message, /the queue has other delays: .*x-delayed-retry-min=300/)
    const same = failing(queue, RetryPolicy.make({ maxRetries: 0, backoff: Backoff.constant(delay) }))
    await on(named, () => same.start)
  })

  // A delay that is longer than the queue's would end early.
  test("refuses the delays of another policy, in the same process too", async () => {
    const queue = queueName("two")
    await on(native, () =>
      Effect.gen(function* () {
        yield* failing(queue).start
        const other = failing(queue, RetryPolicy.make({ backoff: Backoff.constant("1 second") }))
        const error = yield* Effect.flip(other.start)
        assert.instanceOf(error, BrokerError.BrokerError)
        assert.strictEqual(error.reason, "QueueMismatch")
      })
    )
  })

  test("is made again with its delays when it is deleted, and its dead-letter queue as well", async () => {
    const queue = queueName("deleted")
    const { dead, runs, start } = failing(queue)
    await on(native, () =>
      Effect.gen(function* () {
        yield* start
        yield* Effect.promise(() =>
          raw(url, async (channel) => {
            await channel.deleteQueue(`${queue}.dlq`)
            await channel.deleteQueue(queue)
          })
        )
        // Until the consumer has made it, a producer is refused.
        yield* until("the queue", () =>
          send(queue, "a").then(
            () => true,
            () => false
          )
        )
        yield* until("a dead letter", () => dead() === 1)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ attempts }) => attempts),
      [1, 2, 3]
    )
    notEarly(runs, () => delay)
    assert.deepStrictEqual(await drainIds(url, `${queue}.dlq`), ["a"])
  })

  test("has no delays where the policy has none", async () => {
    const queue = queueName("none")
    const retry = RetryPolicy.make({ maxRetries: 2 })
    const { dead, runs, start } = failing(queue, retry)
    await on(native, (broker) =>
      Effect.gen(function* () {
        yield* start
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("a dead letter", () => dead() === 1)
      })
    )
    assert.isBelow(runs[2]!.at - runs[0]!.at, delay)
  })
})

describe.runIf(isAtLeast(version, "4.3") && server.managementUrl !== undefined)(
  "an adopted queue that delays by itself",
  () => {
    const management = server.managementUrl!
    const passive = (queue: string, args: Arguments = {}): RabbitMqOptions.Options => ({
      queues: { [queue]: { assert: "passive", arguments: args } }
    })
    const policyDelays = Object.entries({ type: "all", min: 20_000, max: 20_000 }).map(
      ([name, value]) => [`delayed-retry-${name}`, value] as const
    )
    const atOnce = [RetryPolicy.make({ maxRetries: 8 }), 9] as const

    test.each([
      ["by the options", { ...own(20_000), "x-delivery-limit": 100 }],
      ["by nobody", {}]
    ])("keeps retries at once, told %s", async (_, args) => {
      const queue = queueName("adopted")
      await make(url, queue, { "x-queue-type": "quorum", "x-delivery-limit": 100, ...own(20_000) })
      await balance(url, queue, passive(queue, args), atOnce)
    })

    // The management interface tells the delivery limit once it tells of policies.
    test.each([
      ["its arguments", own(20_000), { "delivery-limit": 100 }],
      ["a policy of the server", {}, Object.fromEntries(policyDelays)],
      ["both", { ...own(40_000), "x-delayed-retry-type": "disabled" }, Object.fromEntries(policyDelays)]
    ])("keeps retries at once where %s delays them, told by management", async (_, args, policy) => {
      const queue = queueName("managed")
      await make(url, queue, { "x-queue-type": "quorum", "x-delivery-limit": 100, ...args })
      await policyOf(management, queue, policy)
      await balance(url, queue, { ...passive(queue), management }, atOnce)
    })
  }
)
