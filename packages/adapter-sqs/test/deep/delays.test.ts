/** When delayed messages come: hundreds of 0 to 11 s, and long ones by a clock that is moved. None early. */
import * as Effect from "effect/Effect"
import { type Broker, type Event, RetryPolicy } from "@requeue/core"
import type { Control, Measured } from "@requeue/conformance"
import type * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { movedWith, type Moved } from "../real/clock.ts"
import { measured } from "./lateness.ts"
import { strict } from "./strict.ts"
import { consume, has, ids, on, outgoing, queueName, until, untilEmpty, type Run } from "../real/world.ts"

const { another, behind, proxy, url } = await strict()

/** 33 delays from 0 to 11 s: whole seconds, a little more, and a little less. */
const mixed = Array.from({ length: 11 }, (_, index) => [0, 331, 997].map((more) => index * 1000 + more)).flat()

const count = 330

/** SQS's whole seconds take one of it. */
const bound = 1500

const show = (what: string, came: ReadonlyArray<Control.Arrival>): void => {
  const sorted = came.map(({ late }) => late).toSorted((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!)
  console.log(
    `${came.length} ${what}, late in milliseconds: first ${at(0)}, median ${at(0.5)}, p99 ${at(0.99)}, last ${at(1)}`
  )
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

/** Delays under way, and those that are over. */
const stopwatch = () => {
  const asked = new Map<string, { readonly from: number; readonly due: number }>()
  const came: Array<Control.Arrival> = []
  return {
    came,
    ask: (id: string) => asked.set(id, { from: Date.now(), due: performance.now() + delayOf(id) }),
    /** Whether it was under way. */
    arrived: (id: string): boolean => {
      const found = asked.get(id)
      if (found === undefined) return false
      const what = `${id}, asked for ${delayOf(id)} ms`
      came.push({ what, late: performance.now() - found.due, bound, from: found.from, at: Date.now() })
      return true
    }
  }
}

describe.concurrent(`${count} delays of 0 to 11 s: none early, 99 of 100 late by no more than ${bound} ms`, () => {
  test.for([
    ["retries, by visibility", 60_000],
    ["retries, by delayed copies", 0]
  ] as const)("%s", ([name, inFlightLimit], context) =>
    measured(
      context,
      { url, inFlightLimit },
      (broker) =>
        Effect.gen(function* () {
          const queue = queueName("retries")
          const { arrived, ask, came } = stopwatch()
          yield* consume(queue, [], { concurrency: 100 }, (message) => {
            if (arrived(message.id)) return
            ask(message.id)
            message.retry({ delay: delayOf(message.id) })
          })
          yield* spread((names) => broker.publish(names.map((id) => outgoing(queue, id))))
          yield* until(`${count} messages`, () => came.length === count, 120_000)
          show(name, came)
          return came
        }),
      0.01
    )
  )

  test("sends", (context) =>
    measured(
      context,
      { url },
      (broker) =>
        Effect.gen(function* () {
          const queue = queueName("sends")
          const { arrived, ask, came } = stopwatch()
          yield* consume(queue, [], { concurrency: 100 }, ({ id }) => void arrived(id))
          yield* spread((names) => {
            for (const id of names) ask(id)
            return broker.publish(names.map((id) => outgoing(queue, id, { delay: delayOf(id) })))
          })
          yield* until(`${count} messages`, () => came.length === count, 120_000)
          show("sends", came)
          return came
        }),
      0.01
    ))
})

const [second, minute, hour] = [1000, 60_000, 3_600_000]

/** Runs a program by a clock that it moves. */
const timed = <A>(
  program: (broker: Broker.Service, moved: Moved) => Effect.Effect<A, unknown, Broker.Broker | Scope.Scope>
): Promise<A> => {
  const moved = movedWith(proxy)
  return on({ url }, (broker) => program(broker, moved), moved.run)
}

/** Waits until the one message of a queue is a delayed copy, and its original is gone: no lease runs any more. */
const delayed = (queue: string, or = () => false) =>
  until("a delayed copy", async () => or() || (await has(behind, queue, 0, 0, 1)))

/** Moves the clock to a time, by what SQS delays at most; in between the message hops. Answers how often it moved. */
const travel = (queue: string, moved: Moved, due: number, isThere: () => boolean) =>
  Effect.gen(function* () {
    let steps = 0
    while (!isThere() && steps < 100) {
      yield* delayed(queue, isThere)
      const copies = proxy.calls()["SendMessageBatch"] ?? 0
      yield* Effect.promise(() => moved.forward(Math.max(0, Math.min(15 * minute, due - moved.now()))))
      yield* until(`step ${++steps}`, () => isThere() || (proxy.calls()["SendMessageBatch"] ?? 0) > copies)
    }
    return steps
  })

describe("by a clock that is moved", () => {
  /** The control has a proxy to itself: the program counts its own calls. */
  const punctual = async (
    context: Measured.TestContext,
    program: (
      broker: Broker.Service,
      moved: Moved
    ) => Effect.Effect<Control.Arrival, unknown, Broker.Broker | Scope.Scope>
  ) => {
    await using own = await another()
    await measured(context, { url: own.url }, () => Effect.promise(async () => [await timed(program)]))
  }

  /**
   * From when it was due by the moved clock, which goes as fast as any when it is not moved. If each hop was late by a
   * second, 13 hours would be late by 52.
   */
  const cameOf = (what: string, late: number): Control.Arrival => ({
    what,
    late,
    bound: 10 * second,
    from: Date.now() - late,
    at: Date.now()
  })

  test("a retry of 13 hours, beyond any visibility: by copies of 15 minutes, to the second, and counted once", (context) =>
    punctual(context, (broker, moved) =>
      Effect.gen(function* () {
        const queue = queueName("hours")
        const runs: Array<Run> = []
        let due = 0
        const came: Array<Control.Arrival> = []
        yield* consume(queue, runs, {}, (message) => {
          if (due > 0) return void came.push(cameOf("the retry", moved.now() - due))
          due = moved.now() + 13 * hour
          message.retry({ delay: 13 * hour })
        })
        const sent = moved.now()
        yield* broker.publish([outgoing(queue, "a", { now: sent })])
        yield* until("the first run", () => due > 0)
        const hops = yield* travel(queue, moved, due, () => runs.length === 2)
        assert.isAtLeast(hops, 52)
        yield* untilEmpty(behind, queue)
        assert.deepStrictEqual(
          runs.map(({ attempts }) => attempts),
          [1, 2]
        )
        return came[0]!
      })
    ))

  test("a send of 40 minutes: by hops, none of which counts", (context) =>
    punctual(context, (broker, moved) =>
      Effect.gen(function* () {
        const queue = queueName("minutes")
        const runs: Array<Run> = []
        const came: Array<Control.Arrival> = []
        const sent = moved.now()
        const due = sent + 40 * minute
        yield* consume(queue, runs, {}, () => void came.push(cameOf("the send", moved.now() - due)))
        yield* broker.publish([outgoing(queue, "a", { delay: 40 * minute, now: sent })])
        assert.strictEqual(yield* travel(queue, moved, due, () => runs.length === 1), 3)
        yield* untilEmpty(behind, queue)
        assert.deepStrictEqual(
          runs.map(({ attempts }) => attempts),
          [1]
        )
        return came[0]!
      })
    ))

  test("a retry of 11 hours, by visibility: there is no copy", async () => {
    const queue = queueName("visibility")
    const runs: Array<Run> = []
    await timed((broker, moved) =>
      Effect.gen(function* () {
        const tags: Array<string> = []
        const onEvent = ({ _tag }: Event.Event) => void tags.push(_tag)
        yield* consume(queue, runs, { retry: RetryPolicy.make(), onEvent }, (message) => {
          if (message.id === "a" && message.attempts === 1) message.retry({ delay: 11 * hour })
        })
        yield* broker.publish([outgoing(queue, "a", { now: moved.now() })])
        yield* until("its retry is taken", () => tags.includes("RetryScheduled"))
        const copies = proxy.calls()["SendMessageBatch"] ?? 0
        yield* Effect.promise(() => moved.forward(11 * hour - minute))
        // What is received now shows that the other is not there.
        yield* broker.publish([outgoing(queue, "b", { now: moved.now() })])
        yield* until("the end of b", () => tags.includes("Succeeded"))
        assert.strictEqual(runs.length, 2)
        yield* Effect.promise(() => moved.forward(minute))
        yield* until("its second run", () => runs.length === 3)
        assert.strictEqual(proxy.calls()["SendMessageBatch"], copies + 1, "a copy beside b")
      })
    )
    assert.deepStrictEqual(
      runs.map(({ attempts, id }) => `${id} ${attempts}`),
      ["a 1", "b 1", "a 2"]
    )
  })
})
