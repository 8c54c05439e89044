/** When delayed messages come: hundreds of 0 to 30 s, and long ones by a clock that is moved. None early. */
import * as Effect from "effect/Effect"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import type { Broker, Service } from "@requeue/core/Broker"
import type * as Scope from "effect/Scope"
import { assert, describe, test, vi } from "vitest"
import { movedWith, type Moved } from "./clock.ts"
import { strict } from "./strict.ts"
import { consume, has, ids, left, on, outgoing, queueName, until, type Run } from "./world.ts"

vi.setConfig({ testTimeout: 90_000 })

const { behind, proxy, url } = await strict()

/** 31 delays from 0 to 30 s: whole seconds, and up to a second less. */
const mixed = Array.from({ length: 31 }, (_, index) => Math.max(0, index * 1000 - ((index * 331) % 1000)))

const count = 310

/**
 * On a machine that does nothing else, with REQUEUE_STRICT_DELAYS=1: one kind after the other, and late by under 1.5 s,
 * of which SQS's whole seconds take one. Else all run at once beside whatever else there is.
 */
const isStrict = process.env["REQUEUE_STRICT_DELAYS"] === "1"
const bound = isStrict ? 1500 : 4000

const judge = (what: string, late: ReadonlyArray<number>): void => {
  const sorted = late.toSorted((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!)
  console.log(
    `${late.length} ${what}, late in milliseconds: first ${at(0)}, median ${at(0.5)}, p99 ${at(0.99)}, last ${at(1)}`
  )
  assert.isAtLeast(sorted[0]!, 0, "early")
  assert.isBelow(at(0.99), bound, "late")
}

const delayOf = (id: string): number => mixed[Number(id.slice(1)) % mixed.length]!

/** 100 a second: what is measured is the delays, not how fast all of them can be asked for at once. */
const spread = (send: (names: ReadonlyArray<string>) => Effect.Effect<void, unknown>) =>
  Effect.gen(function* () {
    for (let from = 0; from < count; from += 10) {
      yield* send(ids(count).slice(from, from + 10))
      yield* Effect.sleep(100)
    }
  })

describe(`${count} delays of 0 to 30 s: none early, p99 late by under ${bound} ms`, { concurrent: !isStrict }, () => {
  test.each([
    ["retries, by visibility", 60_000],
    ["retries, by delayed copies", 0]
  ])("%s", async (name, inFlightLimit) => {
    const queue = queueName("retries")
    const due = new Map<string, number>()
    const late: Array<number> = []
    await on({ url, inFlightLimit }, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, [], { concurrency: 100 }, (message) => {
          const before = due.get(message.id)
          if (before !== undefined) return void late.push(performance.now() - before)
          const delay = delayOf(message.id)
          due.set(message.id, performance.now() + delay)
          return message.retry({ delay })
        })
        yield* spread((names) => broker.publish(names.map((id) => outgoing(queue, id))))
        yield* until(`${count} messages`, () => late.length === count)
      })
    )
    judge(name, late)
  })

  test("sends", async () => {
    const queue = queueName("sends")
    const late: Array<number> = []
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        const due = new Map<string, number>()
        yield* consume(queue, [], { concurrency: 100 }, ({ id }) => {
          late.push(performance.now() - due.get(id)!)
        })
        yield* spread((names) => {
          for (const id of names) due.set(id, performance.now() + delayOf(id))
          return broker.publish(names.map((id) => outgoing(queue, id, { delay: delayOf(id) })))
        })
        yield* until(`${count} messages`, () => late.length === count)
      })
    )
    judge("sends", late)
  })
})

const [second, minute, hour] = [1000, 60_000, 3_600_000]

/** Runs a program by a clock that it moves. */
const timed = async <A>(
  options: { readonly visibilityTimeout?: number },
  program: (broker: Service, moved: Moved) => Effect.Effect<A, unknown, Broker | Scope.Scope>
): Promise<A> => {
  const moved = movedWith(proxy)
  return on({ url, ...options }, (broker) => program(broker, moved), moved.run)
}

/** Waits until the one message of a queue is a delayed copy, and its original is gone: no lease runs any more. */
const delayed = (queue: string, or = () => false) =>
  until("a delayed copy", async () => or() || (await has(behind, queue, 0, 0, 1)), 10_000)

/** Moves the clock to a time, by what SQS delays at most; in between the message hops. Answers how often it moved. */
const travel = (queue: string, moved: Moved, due: number, isThere: () => boolean) =>
  Effect.gen(function* () {
    let steps = 0
    while (!isThere() && steps < 100) {
      yield* delayed(queue, isThere)
      const copies = proxy.calls()["SendMessageBatch"] ?? 0
      yield* Effect.promise(() => moved.forward(Math.max(0, Math.min(15 * minute, due - moved.now()))))
      yield* until(`step ${++steps}`, () => isThere() || (proxy.calls()["SendMessageBatch"] ?? 0) > copies, 10_000)
    }
    return steps
  })

describe("by a clock that is moved", () => {
  test("a retry of 13 hours, beyond any visibility: by copies of 15 minutes, to the second, and counted once", async () => {
    const queue = queueName("hours")
    const runs: Array<Run> = []
    await timed({}, (broker, moved) =>
      Effect.gen(function* () {
        let due = 0
        const times: Array<number> = []
        yield* consume(queue, runs, {}, (message) => {
          times.push(moved.now())
          if (due > 0) return
          due = moved.now() + 13 * hour
          message.retry({ delay: 13 * hour })
        })
        const sent = moved.now()
        yield* broker.publish([outgoing(queue, "a", { now: sent })])
        yield* until("the first run", () => due > 0)
        const hops = yield* travel(queue, moved, due, () => runs.length === 2)
        assert.isAtLeast(hops, 52)
        assert.isAtLeast(times[1]!, due, "early")
        assert.isBelow(times[1]! - due, 3 * second)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ attempts }) => attempts),
      [1, 2]
    )
    assert.strictEqual(await left(behind, queue), 0)
  })

  test("a send of 40 minutes: by hops, none of which counts", async () => {
    const queue = queueName("minutes")
    const runs: Array<Run> = []
    await timed({}, (broker, moved) =>
      Effect.gen(function* () {
        let came = 0
        yield* consume(queue, runs, {}, () => void (came = moved.now()))
        const sent = moved.now()
        yield* broker.publish([outgoing(queue, "a", { delay: 40 * minute, now: sent })])
        const due = sent + 40 * minute
        assert.strictEqual(yield* travel(queue, moved, due, () => runs.length === 1), 3)
        assert.isAtLeast(came, due, "early")
        assert.isBelow(came - due, 3 * second)
      })
    )
    assert.deepStrictEqual(
      runs.map(({ attempts }) => attempts),
      [1]
    )
  })

  test("a retry of 11 hours, by visibility: there is no copy", async () => {
    const queue = queueName("visibility")
    const runs: Array<Run> = []
    await timed({}, (broker, moved) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry: RetryPolicy.make() }, (message) => {
          if (message.attempts === 1) message.retry({ delay: 11 * hour })
        })
        yield* broker.publish([outgoing(queue, "a", { now: moved.now() })])
        const hidden = proxy.calls()["ChangeMessageVisibilityBatch"] ?? 0
        yield* until("it is hidden", () => (proxy.calls()["ChangeMessageVisibilityBatch"] ?? 0) > hidden)
        const copies = proxy.calls()["SendMessageBatch"]
        yield* Effect.promise(() => moved.forward(11 * hour - 2 * second))
        yield* Effect.sleep(200)
        assert.strictEqual(runs.length, 1)
        yield* Effect.promise(() => moved.forward(2 * second))
        yield* until("its second run", () => runs.length === 2, 5000)
        assert.strictEqual(proxy.calls()["SendMessageBatch"], copies)
      })
    )
    assert.strictEqual(runs[1]?.attempts, 2)
  })
})
