/** Messages of groups: in order, in batches and one by one. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import { PermanentError } from "../../src/policy/Failure.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import type { Batch, Received } from "../../src/message/Handler.ts"
import * as Scripted from "../scripted.ts"

const batch = BatchPolicy.make({ maxBatchSize: 10, maxBatchTimeout: 1000 })
const idsOf = ({ messages }: Batch<unknown>) => messages.map(({ id }) => id).join(" ")

/** Batches and what was asked of the broker, of one consumer of batches. */
const world = (handler: (batch: Batch<unknown>) => unknown, options: Consumer.Options = {}) => {
  const broker = Scripted.make({ settleBatch: 10, connectionBound: false })
  const batches: Array<string> = []
  const deliver = (...ids: ReadonlyArray<string>) => {
    for (const id of ids) broker.deliver(id, { group: id[0]! })
  }
  const settled = () => broker.take().filter((call) => !call.startsWith("credit"))
  return {
    broker,
    batches,
    deliver,
    settled,
    run: (program: Effect.Effect<void>) =>
      Effect.gen(function* () {
        yield* Consumer.startBatch("q", { batch, ...options }, (got) => {
          batches.push(idsOf(got))
          return handler(got) as void // or an Effect
        })
        yield* program
      }).pipe(Effect.scoped, Effect.provide(broker.layer))
  }
}

const find = ({ messages }: Batch<unknown>, id: string): Received<unknown> =>
  messages.find((message) => message.id === id)!

describe("a batch of messages of groups", () => {
  it.effect("has what is there of each group, in order", () => {
    const { batches, deliver, run, settled } = world(() => {})
    return run(
      Effect.gen(function* () {
        deliver("a1", "a2", "b1", "a3")
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(batches, ["a1 a2 b1 a3"])
        assert.deepStrictEqual(settled(), ["a1:Ack a2:Ack b1:Ack a3:Ack"])
      })
    )
  })

  it.effect("the first that is retried takes those behind it in its group along, acked or not", () => {
    const { deliver, run, settled } = world((got) => {
      find(got, "a3").ack()
      find(got, "a1").ack()
      find(got, "a2").retry()
      find(got, "b1").ack()
    })
    return run(
      Effect.gen(function* () {
        deliver("a1", "a2", "b1", "a3", "b2", "a4")
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(settled().join(" "), "a1:Ack b1:Ack a2:Retry a3:Release b2:Ack a4:Release")
      })
    )
  })

  it.effect(
    "a handler that fails: the first of each group is retried, and no other is given up or counted for it",
    () => {
      const retry = RetryPolicy.make({ maxRetries: 0 })
      const { deliver, run, settled } = world(() => Effect.fail(new Error("no")))
      const last = world(() => Effect.fail(new Error("no")), { retry })
      return Effect.gen(function* () {
        yield* run(
          Effect.gen(function* () {
            deliver("a1", "a2", "b1")
            yield* TestClock.adjust(1000)
            assert.deepStrictEqual(settled().join(" "), "a1:Retry a2:Release b1:Retry")
          })
        )
        // What is given up unblocks its group: the next one has its own verdict.
        yield* last.run(
          Effect.gen(function* () {
            last.deliver("a1", "a2")
            yield* TestClock.adjust(1000)
            assert.deepStrictEqual(last.settled().join(" "), "a1:DeadLetter a2:DeadLetter")
          })
        )
      })
    }
  )

  it.effect("one that is given up lets those behind it go", () => {
    const { deliver, run, settled } = world((got) => find(got, "a1").fail(new PermanentError({ message: "never" })))
    return run(
      Effect.gen(function* () {
        deliver("a1", "a2")
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(settled().join(" "), "a1:DeadLetter a2:Ack")
      })
    )
  })

  it.effect("an ack is sent at once where all before it in its group are acked, a retry at the end", () => {
    const { deliver, run, settled } = world((got) =>
      Effect.gen(function* () {
        find(got, "a2").ack()
        find(got, "b1").retry({ delay: 1000 })
        yield* Effect.sleep(100)
        find(got, "a1").ack()
        yield* Effect.sleep(100)
      })
    )
    return run(
      Effect.gen(function* () {
        deliver("a1", "a2", "b1")
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(settled(), [])
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(settled(), ["a1:Ack a2:Ack"])
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(settled(), ["b1:Retry"])
      })
    )
  })

  it.effect(
    "what is left of a group waits for the end of its batch, and goes back uncounted when that goes back",
    () => {
      const small = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 0 })
      const { batches, broker, deliver, run, settled } = world(
        (got) =>
          Effect.gen(function* () {
            if (got.messages[0]!.attempts > 1) return
            yield* Effect.sleep(100)
            if (idsOf(got) === "a1 a2") find(got, "a1").retry()
          }),
        { batch: small, concurrency: 3 }
      )
      return run(
        Effect.gen(function* () {
          deliver("a1", "a2", "a3", "a4", "b1", "b2")
          yield* TestClock.adjust(50)
          assert.deepStrictEqual(batches, ["a1 a2", "b1 b2"])
          yield* TestClock.adjust(50)
          assert.deepStrictEqual(
            settled()
              .flatMap((call) => call.split(" "))
              .toSorted(),
            ["a1:Retry", "a2:Release", "a3:Release", "a4:Release", "b1:Ack", "b2:Ack"]
          )
          for (const id of ["a1", "a2", "a3", "a4"]) broker.deliver(id, { group: "a", attempts: 2 })
          yield* TestClock.adjust(100)
          // Those that no batch had come with the attempt that they had.
          assert.deepStrictEqual(batches.slice(2), ["a1 a2", "a3 a4"])
          yield* TestClock.adjust(100)
        })
      )
    }
  )
})

describe("single messages of groups", () => {
  it.effect(
    "run one of a group at a time, several groups side by side, and no receive counts that brought no run",
    () => {
      const broker = Scripted.make({ settleBatch: 10, connectionBound: false, uncountedRelease: false })
      return Effect.gen(function* () {
        const runs: Array<string> = []
        yield* Consumer.start("q", { concurrency: 3 }, ({ attempts, id }) => {
          runs.push(`${id} ${attempts}`)
          const fails = id === "a1" && attempts === 1
          return Effect.andThen(Effect.sleep(100), fails ? Effect.fail(new Error("no")) : Effect.void)
        })
        for (const id of ["a1", "a2", "b1", "b2"]) broker.deliver(id, { group: id[0]! })
        yield* TestClock.adjust(50)
        assert.deepStrictEqual(runs, ["a1 1", "b1 1"])
        yield* TestClock.adjust(50)
        assert.deepStrictEqual(runs, ["a1 1", "b1 1", "b2 1"])
        for (const id of ["a1", "a2"]) broker.deliver(id, { group: "a", attempts: 2 })
        yield* TestClock.adjust(200)
        assert.deepStrictEqual(runs, ["a1 1", "b1 1", "b2 1", "a1 2", "a2 1"])
      }).pipe(Effect.scoped, Effect.provide(broker.layer))
    }
  )

  it.effect("wait for those that came again before the broker had answered that they went back", () => {
    const broker = Scripted.make({
      settleBatch: 10,
      connectionBound: false,
      uncountedRelease: false,
      lease: { duration: 1e9, max: 1e9 }
    })
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", { concurrency: 3 }, ({ attempts, id }) => {
        runs.push(`${id} ${attempts}`)
        return id === "a1" && attempts === 1 ? Effect.fail(new Error("no")) : Effect.sleep(100)
      })
      broker.faults.settle = ({ delivery }) => {
        if (delivery.metadata.id !== "a2") return undefined
        broker.faults.settle = () => undefined
        for (const id of ["a1", "a2"]) broker.deliver(id, { group: "a", attempts: 2 })
        return undefined
      }
      for (const id of ["a1", "a2"]) broker.deliver(id, { group: "a" })
      yield* TestClock.adjust(50)
      broker.deliver("a3", { group: "a" })
      yield* TestClock.adjust(0)
      const begun = [...runs]
      yield* TestClock.adjust(300)
      assert.deepStrictEqual(begun, ["a1 1", "a1 2"])
      assert.deepStrictEqual(runs, ["a1 1", "a1 2", "a2 1", "a3 1"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("none is given up by the number of its deliveries alone, and those run alone, in order", () => {
    const broker = Scripted.make({ settleBatch: 10, connectionBound: false, uncountedRelease: false })
    return Effect.gen(function* () {
      const runs: Array<string> = []
      const retry = RetryPolicy.make({ maxRetries: 1, maxDeliveries: 3 })
      yield* Consumer.startBatch("q", { retry, batch }, (got) => void runs.push(idsOf(got)))
      for (const id of ["a1", "a2"]) broker.deliver(id, { group: "a", attempts: 9 })
      broker.deliver("b1", { group: "b" })
      yield* TestClock.adjust(3000)
      assert.deepStrictEqual(
        runs.filter((ids) => ids.startsWith("a")),
        ["a1", "a2"]
      )
      assert.include(runs, "b1")
      assert.notInclude(broker.take().join(), "DeadLetter")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("what was decided of a message", () => {
  it.effect("is repeated when the message has gone back unrun behind another one of its group", () => {
    const { batches, broker, run, settled } = world(() => {})
    const deliver = (attempts: number, ...ids: ReadonlyArray<string>) => {
      for (const id of ids) broker.deliver(id, { group: "a", attempts })
      return TestClock.adjust(2000)
    }
    return run(
      Effect.gen(function* () {
        const lost = { reason: "LeaseLost", fate: "lost" } as const
        broker.faults.settle = ({ delivery: { metadata } }) => (metadata.id === "a3" ? undefined : lost)
        yield* deliver(1, "a1", "a2", "a3")
        broker.faults.settle = ({ settlement }) => (settlement._tag === "Ack" ? lost : undefined)
        yield* deliver(2, "a1", "a2", "a4")
        broker.faults.settle = () => undefined
        yield* deliver(3, "a1", "a2", "a4")
        assert.deepStrictEqual(batches, ["a1 a2 a3", "a4"])
        assert.deepStrictEqual(settled(), [
          "a1:Ack a2:Ack a3:Ack",
          "a1:Ack",
          "a2:Release a4:Release",
          "a1:Ack",
          "a2:Ack",
          "a4:Ack"
        ])
      })
    )
  })
})

it.effect("a retry that is repeated on a redelivery still holds up the later messages of its group", () => {
  const broker = Scripted.make({ connectionBound: false, lease: { duration: 60_000, max: 1e9 } })
  return Effect.gen(function* () {
    const runs: Array<string> = []
    yield* Consumer.start("q", { concurrency: 2, retryDelay: 5000 }, ({ id }) => {
      runs.push(id)
      throw new Error("no")
    })
    broker.faults.latency = 100
    broker.faults.settle = () => ({ reason: "LeaseLost", fate: "lost" })
    broker.deliver("a1", { group: "a" })
    yield* TestClock.adjust(50)
    broker.deliver("a1", { group: "a", attempts: 2 })
    yield* TestClock.adjust(50)
    broker.faults.settle = () => undefined
    broker.deliver("a2", { group: "a" })
    broker.take()
    yield* TestClock.adjust(1000)
    const settled = broker.take().filter((call) => !call.startsWith("credit"))
    assert.deepStrictEqual([runs, settled], [["a1"], ["a1:Retry", "a2:Release"]])
  }).pipe(Effect.scoped, Effect.provide(broker.layer))
})

it.effect("an ack that is repeated on a redelivery is not returned with a later message that is lost", () => {
  const broker = Scripted.make({ connectionBound: false, lease: { duration: 60_000, max: 1e9 }, settleBatch: 10 })
  return Effect.gen(function* () {
    yield* Consumer.startBatch("q", { batch }, () => {})
    broker.faults.latency = 100
    broker.faults.settle = () => ({ reason: "LeaseLost", fate: "lost" })
    broker.deliver("a1", { group: "a" })
    broker.deliver("a2", { group: "a" })
    yield* TestClock.adjust(1050)
    broker.deliver("a1", { group: "a", attempts: 2 })
    yield* TestClock.adjust(50)
    broker.faults.settle = () => undefined
    broker.deliver("a2", { group: "a", attempts: 2 })
    broker.take()
    yield* TestClock.adjust(1000)
    const settled = broker.take().filter((call) => !call.startsWith("credit"))
    assert.deepStrictEqual(settled, ["a1:Ack", "a2:Ack"])
  }).pipe(Effect.scoped, Effect.provide(broker.layer))
})
