/** Clocks that differ, and addresses that do not: defects that this adapter once had. */
import { BrokerError, Backoff, RetryPolicy } from "@requeue/core"
import { Wait } from "@requeue/conformance"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { assert } from "vitest"
import { type Bench, consume, elapsed, type OwnCase, type Run, send } from "./Bench.ts"

const queue = "orders"

/** Runs a process whose wall clock differs, by milliseconds that may change meanwhile. */
const skewed = <A, E, R>(skew: { by: number }, program: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.Clock, (clock) => {
    const millis = () => clock.currentTimeMillisUnsafe() + skew.by
    const nanos = () => clock.currentTimeNanosUnsafe() + BigInt(skew.by) * 1_000_000n
    return Effect.provideService(program, Clock.Clock, {
      monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
      monotonicTimeNanos: clock.monotonicTimeNanos,
      sleep: (duration) => clock.sleep(duration),
      currentTimeMillisUnsafe: millis,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos)
    })
  })

/** How late nsqd and the adapter may be together, in milliseconds. */
const lateness = 250

/** A delayed message, whose consumer has another time than nsqd and the producer. */
const delayed = (by: number): OwnCase => ({
  name: `a consumer whose clock is ${Math.abs(by) / 1000} seconds ${by < 0 ? "slow" : "fast"} gets a delayed message at its time`,
  program: ({ on, warm }) =>
    Effect.gen(function* () {
      yield* warm(queue)
      const runs: Array<Run> = []
      const delay = 10_000
      const consuming = on(() =>
        Effect.andThen(
          consume(queue, runs),
          Wait.until("its run", () => runs.length === 1)
        )
      )
      const from = yield* elapsed
      yield* on((broker) => send(broker, queue, "m", { delay }))
      yield* skewed({ by }, consuming)
      const late = runs[0]!.at - from - delay
      assert.isAtLeast(late, 0)
      assert.isBelow(late, lateness)
    })
})

/** A retry while the consumer's clock is set. */
const stepped = (by: number, how: "native" | "exact"): OwnCase => ({
  name: `a retry that is ${how} comes at its time, although the consumer's clock is set ${by < 0 ? "back" : "ahead"} by an hour`,
  settings: { options: { retry: how } },
  program: ({ on, warm }) =>
    Effect.gen(function* () {
      yield* warm(queue)
      const runs: Array<Run> = []
      const delay = 10_000
      const skew = { by: 0 }
      const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) })
      yield* skewed(
        skew,
        on((broker) =>
          Effect.gen(function* () {
            yield* consume(queue, runs, { retry }, ({ attempts }) =>
              attempts === 1 ? Effect.fail(new Error("no")) : undefined
            )
            yield* send(broker, queue, "m")
            yield* Wait.until("a run", () => runs.length === 1)
            yield* Effect.sleep(1000)
            skew.by = by
            yield* Wait.until("the retry", () => runs.length === 2)
          })
        )
      )
      const late = runs[1]!.at - runs[0]!.at - delay
      assert.isAtLeast(late, 0)
      assert.isBelow(late, lateness)
    })
})

/** A lease while the consumer's clock is set ahead. */
const leased: OwnCase = {
  name: "a clock that is set ends no lease",
  program: ({ nsqd: [first], on }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const skew = { by: 0 }
      const setAhead = Effect.sync(() => (skew.by = 3_600_000))
      const handler = () => Effect.andThen(setAhead, Effect.sleep(500))
      const consuming = on(() => Effect.andThen(consume(queue, runs, {}, handler), Effect.never))
      yield* Effect.forkScoped(skewed(skew, consuming))
      yield* on((broker) => send(broker, queue, "m"))
      const counts = () => first!.topic(queue).channel("requeue").statistics()
      yield* Wait.until("its end", () => runs.length > 0 && counts().inFlight + counts().depth === 0)
      assert.deepStrictEqual([runs.length, counts().timeouts], [1, 0])
    })
}

/** One nsqd at two addresses. */
const aliased = ({ network, nsqd: [first] }: Bench) =>
  Effect.sync(() => {
    network.add(first!, "other:4150", "http://other:4151")
    return { nsqd: ["n0:4150", "other:4150"] }
  })

const identities: ReadonlyArray<OwnCase> = [
  {
    name: "an nsqd that is reached at two addresses counts once",
    program: (bench) =>
      Effect.gen(function* () {
        yield* bench.on(
          (broker) =>
            Effect.gen(function* () {
              yield* send(broker, queue, "a")
              yield* send(broker, queue, "b")
              const { ready } = yield* broker.admin.counts(queue)
              assert.strictEqual(ready, 2)
              assert.strictEqual(yield* broker.admin.purge(queue), 2)
            }),
          yield* aliased(bench)
        )
      })
  },
  {
    name: "an nsqd that is reached at two addresses does not store a message twice for publishTo: 2",
    program: (bench) =>
      Effect.gen(function* () {
        const error = yield* bench.on((broker) => Effect.flip(send(broker, queue, "m")), {
          ...(yield* aliased(bench)),
          publishTo: 2
        })
        assert.instanceOf(error, BrokerError.BrokerError)
        assert.match(error.message, /are the same nsqd/)
        assert.isAtMost(bench.nsqd[0]!.topic(queue).statistics().messages, 1)
      })
  },
  {
    name: "two nsqd that say the same of themselves, except for their start, are two",
    settings: { nodes: 2 },
    program: ({ nsqd, on }) =>
      on(
        (broker) =>
          Effect.gen(function* () {
            yield* send(broker, queue, "m")
            assert.deepStrictEqual(
              nsqd.map((each) => each.topic(queue).statistics().messages),
              [1, 1]
            )
          }),
        { publishTo: 2 }
      )
  }
]

export const cases: ReadonlyArray<OwnCase> = [
  delayed(-20_000),
  delayed(20_000),
  ...(["native", "exact"] as const).flatMap((how) => [stepped(-3_600_000, how), stepped(3_600_000, how)]),
  leased,
  ...identities
]
