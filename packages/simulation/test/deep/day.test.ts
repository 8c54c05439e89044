/** A day of each adapter in virtual time: nothing that it keeps grows with the time, or with the messages that it has handled. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { SqliteBroker } from "@requeue/adapter-sqlite"
import { VirtualTime, Workload } from "@requeue/conformance"
import { Broker, Consumer, RetryPolicy } from "@requeue/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as References from "effect/References"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, test } from "vitest"
import * as Nsq from "../nsq/harness.ts"
import * as RabbitMq from "../rabbitmq/harness.ts"

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void // V8 has no type for it

const brokers: Readonly<Record<string, Layer.Layer<Broker.Broker, unknown>>> = {
  memory: MemoryBroker.layer(),
  SQLite: SqliteBroker.layer({ url: "sqlite::memory:" }),
  NSQ: Nsq.layer(),
  // Without SQS, whose simulated server keeps each receipt handle.
  RabbitMQ: RabbitMq.layer()
}

/** What adapters remember of the last messages is bounded, and begins again after this many, or a part of it. */
const period = 20_000
const periods = 4
const pause = (24 * 3_600_000) / (period * periods)

/** Kilobytes that a heap may grow in one period: compiled code, which V8 makes at any time, among them. */
const allowed = 512

for (const [name, layer] of Object.entries(brokers))
  test(`${name}: the heap of a process does not grow in a day`, { timeout: 900_000 }, async () => {
    const heap: Array<number> = []
    let runs = 0
    const program = Effect.gen(function* () {
      const broker = yield* Broker.Broker
      const retry = RetryPolicy.make({ maxRetries: 1 })
      yield* Consumer.start<string>("orders", { retry }, ({ attempts, id }) => {
        runs++
        if (attempts === 1 && Number(id) % 2 === 0) throw new Error("no")
      })
      for (let n = 1; n <= period * periods; n++) {
        const now = yield* Clock.currentTimeMillis
        yield* broker.publish([Workload.outgoing("orders", String(n), { now, delay: 0 })])
        yield* Effect.sleep(pause)
        if (n % period !== 0) continue
        yield* Effect.sleep(60_000)
        collect()
        heap.push(process.memoryUsage().heapUsed / 1024)
      }
    })
    await program.pipe(
      Effect.provide(layer),
      Effect.scoped,
      Effect.provideService(References.MinimumLogLevel, "None"),
      VirtualTime.run,
      Effect.runPromise
    )
    assert.strictEqual(runs, period * periods * 1.5)
    assert.isBelow(heap.at(-1)! - heap.at(-2)!, allowed, `kB after each period: ${heap.map(Math.round).join(", ")}`)
  })
