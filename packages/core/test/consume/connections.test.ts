/** A broker with several connections loses one of them. */
import { assert, describe, it } from "@effect/vitest"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as QueueDefinition from "../../src/message/QueueDefinition.ts"
import type { Delivery } from "../../src/message/Delivery.ts"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as Scripted from "../scripted.ts"

const isOf =
  (name: string) =>
  ({ metadata }: Delivery): boolean =>
    metadata.id.startsWith(name)

describe("a lost connection of several", () => {
  it.effect("takes along what it delivered, and nothing else", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<ReadonlyArray<string>> = []
      const batch = BatchPolicy.make({ maxBatchSize: 4, maxBatchTimeout: 1000 })
      yield* Consumer.startBatch("q", { batch }, ({ messages }) => void runs.push(messages.map(({ id }) => id)))
      broker.deliver("x1")
      broker.deliver("y1")
      broker.deliver("x2")
      broker.reconnect(isOf("x"))
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(runs, [["y1"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("takes room for what handlers have of it, and for nothing else", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { concurrency: 2 }, () => Effect.never)
      broker.deliver("x")
      broker.deliver("y")
      const [first] = broker.take()
      const full = Number(first!.split(" ")[1])
      broker.reconnect(isOf("x"))
      assert.deepStrictEqual(broker.take(), [`credit ${full - 1}`])
      broker.reconnect(isOf("y"))
      assert.deepStrictEqual(broker.take(), [`credit ${full - 2}`])
      yield* consumer.drain(0)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("gives the room back once for all that is settled together", () => {
    const broker = Scripted.make({ settleBatch: 2 })
    return Effect.gen(function* () {
      const batch = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 1000 })
      yield* Consumer.startBatch("q", { batch }, () => Effect.sleep(1000))
      broker.deliver("x")
      broker.deliver("y")
      const [full] = broker.take()
      broker.reconnect()
      broker.take()
      broker.faults.settle = () => ({ reason: "ConnectionLost", fate: "lost" })
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual(broker.take(), ["x:Ack y:Ack", full])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("reports no lost lease when the extension is answered later", () => {
    const broker = Scripted.make({ lease: { duration: 3000, max: 60_000 } })
    const events: Array<string> = []
    return Effect.gen(function* () {
      const onEvent = ({ _tag }: { readonly _tag: string }) => void events.push(_tag)
      const consumer = yield* Consumer.start("q", { onEvent, prefetch: 2, drainTimeout: 0 }, () => Effect.never)
      broker.deliver("running")
      broker.deliver("waiting")
      broker.faults.isOver = ({ metadata }) => {
        if (metadata.id === "running") broker.reconnect(isOf("waiting"))
        return metadata.id === "waiting"
      }
      yield* TestClock.adjust(3000)
      yield* consumer.drain(0)
      assert.notInclude(events, "LeaseLost")
      assert.isAbove(events.length, 0)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("leaves alone what another one's codec still decodes", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const waiting: Array<() => void> = []
      const codec = {
        contentType: undefined,
        encode: () => new Uint8Array(),
        decode: () => new Promise((resolve) => waiting.push(() => resolve("decoded")))
      }
      const runs: Array<string> = []
      yield* Consumer.start(QueueDefinition.make("q", { codec }), {}, ({ id }) => void runs.push(id))
      broker.deliver("x")
      broker.deliver("y")
      broker.reconnect(isOf("x"))
      for (const resume of waiting) resume()
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      assert.deepStrictEqual(runs, ["y"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a lost lease", () => {
  it.effect("takes room as long as a handler has its message", () => {
    const broker = Scripted.make({ lease: { duration: 3000, max: 10_000 } })
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", { concurrency: 2 }, () => Effect.never)
      broker.deliver("x")
      const full = Number(broker.take()[0]!.split(" ")[1])
      broker.faults.isOver = () => true
      yield* TestClock.adjust(3000)
      const credit = broker.take().at(-1)
      yield* consumer.drain(0)
      assert.strictEqual(credit, `credit ${full - 1}`)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("leases that may have ended, as in a process that was suspended", () => {
  it.effect("no handler begins until the broker has answered which of them last", () => {
    const broker = Scripted.make({ lease: { duration: 3000, max: 10_000 } })
    return Effect.gen(function* () {
      const runs: Array<string> = []
      const end = yield* Deferred.make<void>()
      const run = ({ id }: { readonly id: string }) => {
        runs.push(id)
        return id === "running" ? Deferred.await(end) : Effect.void
      }
      yield* Consumer.start("q", { prefetch: 2, drainTimeout: 0 }, run)
      for (const id of ["running", "lost", "kept"]) broker.deliver(id)
      broker.faults.isOver = isOf("lost")
      broker.faults.extendLatency = 5000
      yield* TestClock.adjust(4000)
      yield* Deferred.succeed(end, undefined)
      yield* TestClock.adjust(1999)
      const before = [...runs]
      broker.faults.extendLatency = 0
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([before, runs], [["running"], ["running", "kept"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("leases of which the broker has extended only some", () => {
  it.effect(
    "hold up handlers once they may have ended, until the broker has answered for each message that waits",
    () => {
      const broker = Scripted.make({ lease: { duration: 3000, max: 10_000 } })
      return Effect.gen(function* () {
        const runs: Array<string> = []
        const ends = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const run = ({ id }: { readonly id: string }) => {
          runs.push(id)
          return ends[runs.length - 1] === undefined ? Effect.void : Deferred.await(ends[runs.length - 1]!)
        }
        yield* Consumer.start("q", { prefetch: 3, drainTimeout: 0 }, run)
        for (const id of ["running", "next", "throttled", "last"]) broker.deliver(id)
        broker.faults.isUnanswered = isOf("throttled")
        yield* TestClock.adjust(2000)
        yield* Deferred.succeed(ends[0]!, undefined)
        yield* TestClock.adjust(0)
        const inTime = [...runs]
        yield* TestClock.adjust(1000)
        yield* Deferred.succeed(ends[1]!, undefined)
        yield* TestClock.adjust(999)
        const late = [...runs]
        broker.faults.isUnanswered = () => false
        yield* TestClock.adjust(1)
        assert.deepStrictEqual(
          [inTime, late],
          [
            ["running", "next"],
            ["running", "next"]
          ]
        )
        assert.deepStrictEqual(runs, ["running", "next", "throttled", "last"])
      }).pipe(Effect.scoped, Effect.provide(broker.layer))
    }
  )
})

describe("a connection that is lost while bodies are decoded", () => {
  it.effect("leaves no credit behind, so that a consumer that probes its broker goes on", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const codec = {
        contentType: undefined,
        encode: () => new Uint8Array(),
        decode: (_: Uint8Array, { slow }: Readonly<Record<string, string>>) =>
          slow === undefined ? "decoded" : new Promise(() => {})
      }
      broker.faults.settle = () => "Timeout"
      const consumer = yield* Consumer.start(QueueDefinition.make("q", { codec }), { drainTimeout: 0 }, () => {})
      broker.deliver("slow 1", { headers: { slow: "yes" } })
      broker.deliver("slow 2", { headers: { slow: "yes" } })
      broker.deliver("fast")
      yield* TestClock.adjust(1)
      broker.reconnect()
      broker.take()
      yield* TestClock.adjust("3 seconds")
      // One message, as the probe.
      assert.deepStrictEqual([broker.take(), consumer.health().state], [["credit 1"], "probing"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})
