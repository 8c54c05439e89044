/** When settlements go out, what they cost, and what is remembered of them. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import * as BatchPolicy from "../../src/policy/BatchPolicy.ts"
import * as Consumer from "../../src/consume/Consumer.ts"
import * as DeadLetterBudget from "../../src/policy/DeadLetterBudget.ts"
import type { Event } from "../../src/observe/Event.ts"
import * as Metadata from "../../src/message/Metadata.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Scripted from "../scripted.ts"

const fail = () => {
  throw new Error("no")
}

describe("settlements", () => {
  it.effect("of single messages are gathered for a broker that settles in batches, for milliseconds", () => {
    const broker = Scripted.make({ settleBatch: 3, settleWait: 5 })
    return Effect.gen(function* () {
      yield* Consumer.start("q", { concurrency: 10 }, () => {})
      for (const id of ["a", "b", "c", "d"]) broker.deliver(id)
      assert.deepStrictEqual(broker.take(), ["credit 11", "a:Ack b:Ack c:Ack"])
      yield* TestClock.adjust(4)
      assert.deepStrictEqual(broker.take(), [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(broker.take(), ["d:Ack"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of what comes again before they are answered cost no attempt that brought no run", () => {
    const broker = Scripted.make({ uncountedRelease: false })
    return Effect.gen(function* () {
      const runs: Array<number> = []
      let told = 1
      broker.faults.settle = ({ delivery: { metadata }, settlement: { _tag } }) => {
        if (_tag === "DeadLetter") return undefined
        told++
        broker.deliver("a", { attempts: told, metadata: told < 4 ? metadata : { ...metadata, notBefore: 0 } })
        return undefined
      }
      const retry = RetryPolicy.make({ maxRetries: 1 })
      yield* Consumer.start("q", { retry, retryDelay: 0 }, ({ attempts }) => {
        runs.push(attempts)
        return fail()
      })
      broker.deliver("a", { metadata: Metadata.make("a", 0, 1000) })
      yield* TestClock.adjust(100)
      assert.deepStrictEqual([runs, told], [[1, 2], 5])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("go out at once where gathering gains nothing", () => {
    const broker = Scripted.make({ settleBatch: 1, settleWait: 5 })
    return Effect.gen(function* () {
      yield* Consumer.start("q", {}, () => {})
      broker.deliver("a")
      yield* Effect.yieldNow
      assert.deepStrictEqual(broker.take(), ["credit 2", "a:Ack"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of handlers that end together go out together", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", { concurrency: 10 }, async () => {})
      for (const id of ["a", "b", "c"]) broker.deliver(id)
      assert.deepStrictEqual(broker.take(), ["credit 11"])
      yield* Effect.yieldNow
      assert.deepStrictEqual(broker.take(), ["a:Ack b:Ack c:Ack"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("that were gathered go out before a drain ends", () => {
    const broker = Scripted.make({ settleBatch: 10, settleWait: 5 })
    return Effect.gen(function* () {
      const consumer = yield* Consumer.start("q", {}, () => {})
      broker.deliver("a")
      const draining = yield* Effect.forkChild(consumer.drain(), { startImmediately: true })
      yield* TestClock.adjust(5)
      assert.deepStrictEqual(broker.take(), ["credit 2", "credit 0", "a:Ack"])
      assert.isDefined(draining.pollUnsafe())
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a budget of dead letters", () => {
  it.effect("is not spent on letters that the broker does not store", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const options = {
        retry: RetryPolicy.make({ maxRetries: 0 }),
        deadLetterBudget: DeadLetterBudget.make({ max: 1 })
      }
      const consumer = yield* Consumer.start("q", options, fail)
      broker.faults.settle = ({ settlement }) => (settlement._tag === "DeadLetter" ? "QueueFull" : undefined)
      for (const id of ["a", "b", "c"]) {
        broker.deliver(id)
        yield* TestClock.adjust("2 minutes")
      }
      assert.strictEqual(consumer.stats().state, "running")
      assert.strictEqual(consumer.health().quarantined, 3)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("stops a consumer that discards as well", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const retry = RetryPolicy.make({ maxRetries: 0, deadLetter: "discard" })
      const consumer = yield* Consumer.start("q", { retry, deadLetterBudget: DeadLetterBudget.make({ max: 1 }) }, fail)
      broker.deliver("a")
      broker.deliver("b")
      assert.include((yield* Effect.flip(consumer.done)).message, "stopped")
      assert.deepStrictEqual(broker.take(), ["credit 2", "credit 0", "a:Drop b:Release"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

const leased = { lease: { duration: 30_000, max: Number.POSITIVE_INFINITY }, connectionBound: false }
const gone = { reason: "ConnectionLost", fate: "lost" } as const

describe("a settlement that was lost with its delivery", () => {
  it.effect("is repeated on the redelivery, without a run, and for no other message of the same id", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", { retry: RetryPolicy.make({ maxRetries: 0 }) }, (message) => {
        runs.push(message.headers["which"]!)
        if (message.headers["which"] === "bad") throw new Error("no")
      })
      const one = (which: string, attempts = 1) => ({ headers: { which }, receipt: which, attempts })
      broker.faults.settle = () => gone
      broker.deliver("order-1", one("good"))
      broker.deliver("order-1", one("bad"))
      yield* Effect.yieldNow
      broker.faults.settle = () => undefined
      broker.take()
      broker.deliver("order-1", one("other"))
      broker.deliver("order-1", one("good", 2))
      broker.deliver("order-1", one("bad", 2))
      yield* Effect.yieldNow
      assert.deepStrictEqual(runs, ["good", "bad", "other"])
      assert.deepStrictEqual(broker.take(), ["order-1:Ack order-1:Ack order-1:DeadLetter"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("waits for what is left of a retry's delay", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const asked: Array<unknown> = []
      const options = { retryDelay: 5000, onEvent: (event: Event) => void asked.push("delay" in event && event.delay) }
      yield* Consumer.start("q", options, fail)
      broker.faults.settle = () => gone
      broker.deliver("a")
      yield* TestClock.adjust(2000)
      broker.faults.settle = () => undefined
      broker.deliver("a", { attempts: 2 })
      yield* Effect.yieldNow
      assert.strictEqual(asked.at(-1), 3000)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("pauses nobody: it comes again on the next one", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const events: Array<string> = []
      yield* Consumer.start("q", { onEvent: ({ _tag }) => void events.push(_tag) }, () => {})
      broker.faults.settle = () => gone
      broker.deliver("a")
      yield* TestClock.adjust(0)
      broker.faults.settle = ({ settlement }) => (settlement._tag === "Ack" ? "Throttled" : undefined)
      broker.deliver("b")
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(events, ["Received", "SettleFailed", "Received", "SettleFailed", "BackoffEntered"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("names of copies", () => {
  it.effect("that throw, or that all messages share, cost no message and settle none unrun", () => {
    const broker = Scripted.make({ ...leased, connectionBound: true })
    return Effect.gen(function* () {
      for (const identify of [fail, () => "all of them"]) {
        broker.faults.identify = identify
        const runs: Array<string> = []
        const consumer = yield* Consumer.start("q", { concurrency: 5 }, ({ id }) => {
          runs.push(id)
          return Effect.sleep(100)
        })
        for (const id of ["a", "b"]) broker.deliver(id)
        broker.reconnect()
        for (const id of ["c", "d"]) broker.deliver(id, { attempts: 2 })
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(runs, ["a", "b", "c", "d"])
        yield* consumer.drain(0)
      }
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("attempts", () => {
  it.effect("are right however often a message comes again while its handler runs", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<number> = []
      const options = { retry: RetryPolicy.make({ maxRetries: 2 }), drainTimeout: 0 }
      yield* Consumer.start("q", options, ({ attempts }) => {
        runs.push(attempts)
        return Effect.andThen(Effect.sleep(100), Effect.fail(new Error("no")))
      })
      broker.deliver("a")
      for (const attempts of [2, 3, 4]) {
        broker.reconnect()
        broker.deliver("a", { attempts })
      }
      yield* TestClock.adjust(100)
      broker.deliver("a", { attempts: 5 })
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(runs, [1, 2])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("that were lost are not counted by later ones: the handler has all its runs", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<number> = []
      yield* Consumer.start("q", { retry: RetryPolicy.make({ maxRetries: 2 }), retryDelay: 1000 }, ({ attempts }) => {
        runs.push(attempts)
        throw new Error("no")
      })
      broker.faults.settle = () => gone
      broker.deliver("a")
      yield* Effect.yieldNow
      broker.faults.settle = () => undefined
      broker.deliver("a", { attempts: 2 })
      yield* TestClock.adjust(1000)
      broker.deliver("a", { attempts: 3 })
      yield* TestClock.adjust(1000)
      broker.deliver("a", { attempts: 4 })
      yield* Effect.yieldNow
      assert.deepStrictEqual(runs, [1, 2, 3])
      assert.strictEqual(broker.take().at(-1), "a:DeadLetter")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("attempts of a message that is given back", () => {
  /** How it runs when it comes with these attempts, after a delivery that was lost unseen and one that was given back. */
  const runAt = (attempts: number) => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", { prefetch: 5 }, (message) => {
        runs.push(`${message.id} ${message.attempts}`)
        return message.id === "slow" ? Effect.sleep(50) : Effect.void
      })
      broker.deliver("slow")
      broker.deliver("a")
      broker.reconnect()
      broker.deliver("a", { attempts: 2 })
      broker.deliver("suspect", { attempts: 9 })
      yield* TestClock.adjust(500)
      assert.include(broker.take(), "a:Release")
      broker.deliver("a", { attempts })
      yield* TestClock.adjust(500)
      return runs.at(-1)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  }

  it.effect("do not count what was lost unseen before", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* runAt(2), "a 1")
      assert.strictEqual(yield* runAt(3), "a 2")
    })
  )
})

describe("a settlement that is lost with each redelivery", () => {
  it.effect("waits longer each time, so that the two do not go round", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      let runs = 0
      yield* Consumer.start("q", {}, () => void runs++)
      broker.faults.settle = () => gone
      broker.deliver("a")
      yield* Effect.yieldNow
      const asked: Array<number> = []
      for (let attempts = 2; attempts < 6; attempts++) {
        broker.take()
        broker.deliver("a", { attempts })
        yield* Effect.yieldNow
        let waited = 0
        while (!broker.take().includes("a:Ack")) {
          waited++
          yield* TestClock.adjust(1000)
        }
        asked.push(waited)
      }
      assert.deepStrictEqual([runs, asked], [1, [0, 1, 2, 4]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("the pause before a settlement that was lost with each redelivery", () => {
  it.effect(
    "is the message's: what becomes of its deliveries meanwhile neither lengthens it nor begins it again",
    () => {
      const broker = Scripted.make()
      return Effect.gen(function* () {
        yield* Consumer.start("q", {}, () => {})
        broker.faults.settle = () => gone
        let attempts = 0
        const deliver = Effect.suspend(() => {
          broker.deliver("a", { attempts: ++attempts })
          return Effect.yieldNow
        })
        for (const pause of [0, 0, 1000, 2000]) {
          yield* deliver
          yield* TestClock.adjust(pause)
        }
        // Its fourth loss: it may be asked for four seconds later.
        broker.faults.settle = () => undefined
        broker.take()
        for (let lost = 0; lost < 7; lost++) {
          yield* deliver
          yield* TestClock.adjust(500)
          broker.reconnect()
        }
        assert.notInclude(broker.take(), "a:Ack")
        yield* deliver
        yield* TestClock.adjust(500)
        assert.include(broker.take(), "a:Ack")
      }).pipe(Effect.scoped, Effect.provide(broker.layer))
    }
  )
})

describe("a settlement that was sent before another connection came back", () => {
  it.effect("and that the broker does not take is the next probe", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", { concurrency: 2 }, () => {})
      // Two failures in a row leave the level above 0.
      broker.faults.settle = () => "Throttled"
      broker.deliver("a")
      yield* TestClock.adjust(3000)
      broker.faults.settle = () => undefined
      yield* TestClock.adjust(5000)
      broker.faults.settle = () => "Throttled"
      broker.faults.latency = 100
      broker.deliver("b")
      yield* TestClock.adjust(50)
      broker.reconnect(() => false)
      yield* TestClock.adjust(50)
      broker.take()
      broker.faults.settle = () => undefined
      yield* TestClock.adjust("10 minutes")
      assert.include(broker.take().join(" "), "b:Ack")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a redelivery", () => {
  it.effect("before a retry is due waits for it, whatever becomes of the retry", () => {
    const broker = Scripted.make(leased)
    broker.faults.latency = 50
    return Effect.gen(function* () {
      for (const fault of [undefined, gone]) {
        const runs: Array<number> = []
        const consumer = yield* Consumer.start("q", { retryDelay: 5000 }, ({ attempts }) => {
          runs.push(attempts)
          if (attempts === 1) throw new Error("no")
        })
        broker.faults.settle = () => fault
        broker.deliver("a")
        yield* Effect.yieldNow
        broker.deliver("a", { attempts: 2 })
        yield* TestClock.adjust(50)
        broker.faults.settle = () => undefined
        broker.take()
        yield* TestClock.adjust(100)
        assert.deepStrictEqual([runs, broker.take().length], [[1], 1])
        yield* consumer.drain(0)
      }
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect(
    "during a retry, which may be a copy, is given the same retry, even when that was answered too late",
    () => {
      const broker = Scripted.make(leased)
      return Effect.gen(function* () {
        const runs: Array<number> = []
        yield* Consumer.start("q", { retryDelay: 5000 }, ({ attempts }) => {
          runs.push(attempts)
          throw new Error("no")
        })
        broker.faults.latency = 10_000
        broker.deliver("a")
        yield* TestClock.adjust(100)
        broker.deliver("a", { attempts: 2 })
        yield* TestClock.adjust(10_000)
        broker.faults.latency = 0
        yield* TestClock.adjust(10_000)
        assert.deepStrictEqual([runs, broker.take()], [[1], ["credit 2", "a:Retry", "a:Retry"]])
      }).pipe(Effect.scoped, Effect.provide(broker.layer))
    }
  )

  it.effect("of a message whose handler runs takes its place: there is one run, and its settlement goes there", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<number> = []
      yield* Consumer.start("q", { retry: RetryPolicy.make({ maxRetries: 0 }) }, ({ attempts }) => {
        runs.push(attempts)
        return Effect.sleep(100)
      })
      broker.deliver("a")
      broker.reconnect()
      broker.deliver("a", { attempts: 2 })
      broker.take()
      yield* TestClock.adjust(100)
      assert.deepStrictEqual([runs, broker.take()], [[1], ["a:Ack"]])
      broker.deliver("b")
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(broker.take(), ["b:Ack"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of a message that waits for its handler costs no attempt, however often it comes", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<number> = []
      const batch = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 1000 })
      yield* Consumer.startBatch("q", { batch, retry: RetryPolicy.make({ maxRetries: 0 }) }, ({ messages }) => {
        runs.push(messages[0]!.attempts)
      })
      broker.deliver("a")
      for (let attempts = 2; attempts < 50; attempts++) {
        broker.reconnect()
        broker.deliver("a", { attempts })
      }
      broker.take()
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([runs, broker.take()], [[1], ["a:Ack"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("of a message that waits, and that others have had meanwhile, is given up or runs alone", () => {
    const broker = Scripted.make(leased)
    return Effect.gen(function* () {
      const runs: Array<string> = []
      const retry = RetryPolicy.make({ maxAttempts: 2, maxDeliveries: 4 })
      yield* Consumer.start("q", { retry, batch: BatchPolicy.make({ maxBatchSize: 3 }) }, ({ attempts, id }) => {
        runs.push(`${id} ${attempts}`)
      })
      for (const id of ["a", "b"]) broker.deliver(id)
      broker.deliver("a", { attempts: 6 })
      broker.deliver("b", { attempts: 4 })
      broker.deliver("c")
      for (const wait of [100, 100]) yield* TestClock.adjust(wait)
      assert.deepStrictEqual([runs, broker.take().includes("a:DeadLetter")], [["b 3"], true])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("that is faster than the answer to the ack is acked as well", () => {
    const broker = Scripted.make(leased)
    broker.faults.latency = 5
    return Effect.gen(function* () {
      let runs = 0
      yield* Consumer.start("q", {}, () => void runs++)
      broker.deliver("a")
      yield* Effect.yieldNow
      broker.deliver("a", { attempts: 2 })
      yield* TestClock.adjust(10)
      assert.deepStrictEqual([runs, broker.take()], [1, ["credit 2", "a:Ack", "a:Ack"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("after a retry is another attempt, though the answer to the retry has not come yet", () => {
    const broker = Scripted.make(leased)
    broker.faults.latency = 5
    return Effect.gen(function* () {
      const runs: Array<number> = []
      yield* Consumer.start("q", {}, ({ attempts }) => {
        runs.push(attempts)
        if (attempts === 1) throw new Error("no")
      })
      broker.deliver("a")
      yield* Effect.yieldNow
      broker.deliver("a", { attempts: 2 })
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(
        [runs, broker.take()],
        [
          [1, 2],
          ["credit 2", "a:Retry", "a:Ack"]
        ]
      )
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("while its retry is copied waits for the copy: the adapter ends it, and no handler runs", () => {
    const broker = Scripted.make(leased)
    broker.faults.latency = 5
    broker.faults.copiesRetries = true
    return Effect.gen(function* () {
      const runs: Array<number> = []
      yield* Consumer.start("q", {}, ({ attempts }) => {
        runs.push(attempts)
        throw new Error("no")
      })
      broker.deliver("a")
      yield* Effect.yieldNow
      broker.deliver("a", { attempts: 2 })
      yield* TestClock.adjust(10)
      assert.deepStrictEqual([runs, broker.take()], [[1], ["credit 2", "a:Retry", "a:Retry"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("after a retry is the next attempt, however often the one before it came", () => {
    const broker = Scripted.make(leased)
    broker.faults.latency = 5
    return Effect.gen(function* () {
      const runs: Array<number> = []
      yield* Consumer.start("q", {}, ({ attempts }) => {
        runs.push(attempts)
        return attempts === 1 ? Effect.andThen(Effect.sleep(100), Effect.fail(new Error("no"))) : Effect.void
      })
      for (const attempts of [1, 2, 3]) broker.deliver("a", { attempts })
      yield* TestClock.adjust(100)
      broker.deliver("a", { attempts: 4 })
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(runs, [1, 2])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("that was on its way for so long that a later one came before it changes nothing", () => {
    const broker = Scripted.make({ ...leased, settleBatch: 10, settleWait: 5 })
    return Effect.gen(function* () {
      for (const [retryDelay, takes] of [
        [0, 0],
        [50, 0],
        [50, 100]
      ] as const) {
        const runs: Array<number> = []
        const settled: Array<number> = []
        const consumer = yield* Consumer.start("q", { retryDelay }, ({ attempts }) => {
          runs.push(attempts)
          const failed = Effect.fail(new Error("no"))
          return attempts > 2 ? Effect.void : takes === 0 ? failed : Effect.andThen(Effect.sleep(takes), failed)
        })
        broker.faults.settle = ({ delivery }) => void settled.push(delivery.attempts)
        broker.deliver("a", { attempts: 2 })
        yield* Effect.yieldNow
        broker.deliver("a", { attempts: 1 })
        yield* TestClock.adjust(200)
        broker.deliver("a", { attempts: 3 })
        yield* TestClock.adjust(100)
        assert.deepStrictEqual(
          [runs, settled],
          [
            [2, 3],
            [2, 3]
          ]
        )
        yield* consumer.drain(0)
      }
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("before the settlement is sent takes the place of the first, and does not run beside it", () => {
    const broker = Scripted.make({ ...leased, settleBatch: 10, settleWait: 5 })
    return Effect.gen(function* () {
      let runs = 0
      const settled: Array<unknown> = []
      yield* Consumer.start("q", { concurrency: 2 }, (message) => {
        runs++
        message.retry({ delay: 0 })
        return Effect.sleep(100)
      })
      broker.faults.settle = ({ delivery }) => void settled.push(delivery.headers["nth"])
      for (const nth of [1, 2]) broker.deliver("a", { attempts: nth, headers: { nth: `${nth}` } })
      yield* TestClock.adjust(200)
      assert.deepStrictEqual([runs, settled], [1, ["2"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("after a retry leaves nothing to do for one that came before the retry was due", () => {
    const broker = Scripted.make(leased)
    return Effect.gen(function* () {
      for (const fault of [undefined, gone]) {
        const runs: Array<number> = []
        const consumer = yield* Consumer.start("q", { retryDelay: 50 }, ({ attempts }) => {
          runs.push(attempts)
          if (attempts === 1) throw new Error("no")
        })
        broker.faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? fault : undefined)
        broker.faults.latency = 100
        broker.deliver("a")
        yield* TestClock.adjust(10)
        broker.deliver("a", { attempts: 2 })
        yield* TestClock.adjust(50)
        broker.deliver("a", { attempts: 3 })
        yield* TestClock.adjust(1000)
        const asked = broker.take().filter((call) => call.startsWith("a:"))
        assert.deepStrictEqual(
          [runs, asked],
          [
            [1, 2],
            ["a:Retry", "a:Ack"]
          ]
        )
        yield* consumer.drain(0)
      }
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("that was on its way for longer than a later one, which is lost, costs no attempt", () => {
    const broker = Scripted.make(leased)
    return Effect.gen(function* () {
      const runs: Array<number> = []
      const batch = BatchPolicy.make({ maxBatchSize: 2, maxBatchTimeout: 1000 })
      yield* Consumer.startBatch("q", { batch }, ({ messages }) => void runs.push(messages[0]!.attempts))
      broker.deliver("a", { attempts: 2 })
      broker.reconnect()
      for (const attempts of [1, 3]) broker.deliver("a", { attempts })
      broker.take()
      yield* TestClock.adjust(1000)
      assert.deepStrictEqual([runs, broker.take()], [[2], ["a:Ack"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("after a retry ends that, whatever the broker answers to it", () => {
    const broker = Scripted.make(leased)
    broker.faults.latency = 5
    return Effect.gen(function* () {
      for (const fault of ["Timeout", "Throttled", "BodyTooLarge"] as const) {
        const consumer = yield* Consumer.start("q", {}, ({ attempts }) => {
          if (attempts === 1) throw new Error("no")
        })
        broker.faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? fault : undefined)
        broker.deliver("a")
        yield* Effect.yieldNow
        broker.deliver("a", { attempts: 2 })
        yield* TestClock.adjust("10 minutes")
        const asked = broker.take().filter((call) => call.startsWith("a:"))
        assert.deepStrictEqual(asked, ["a:Retry", "a:Ack"])
        yield* consumer.drain(0)
      }
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a new connection", () => {
  it.effect("gets one credit, said once, when the broker had not taken a settlement before", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      yield* Consumer.start("q", {}, (message) => {
        if (message.id.startsWith("bad")) message.retry()
      })
      broker.faults.settle = ({ settlement }) => (settlement._tag === "Retry" ? "Throttled" : undefined)
      broker.deliver("bad 1")
      yield* TestClock.adjust(2000)
      broker.faults.settle = () => undefined
      yield* TestClock.adjust(4000)
      assert.deepStrictEqual(broker.take().slice(-2), ["bad 1:Retry", "credit 2"])
      broker.reconnect()
      assert.deepStrictEqual(broker.take(), ["credit 1"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a drain", () => {
  it.effect("that interrupts tells how many messages went back, and not those that were acked before", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const consumer = yield* Consumer.startBatch("q", { batch: BatchPolicy.make({ maxBatchSize: 3 }) }, (batch) => {
        for (const message of batch.messages) if (message.id !== "c") message.ack()
        return Effect.never
      })
      for (const id of ["a", "b", "c"]) broker.deliver(id)
      yield* Effect.yieldNow
      const report = yield* consumer.drain(0)
      assert.deepStrictEqual([report.complete, report.interrupted], [false, 1])
      assert.deepStrictEqual(broker.take(), ["credit 6", "a:Ack b:Ack", "credit 0", "c:Release"])
      assert.deepStrictEqual((yield* consumer.drain()).complete, false)
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a redelivery that is lost in its turn", () => {
  it.effect("is known when it comes once more", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      for (const [id, fault] of [
        ["a", undefined],
        ["b", gone]
      ] as const) {
        let runs = 0
        const consumer = yield* Consumer.start("q", {}, () => void runs++)
        broker.faults.settle = () => fault
        broker.faults.latency = 100
        broker.deliver(id)
        yield* TestClock.adjust(10)
        broker.reconnect()
        broker.deliver(id, { attempts: 2 })
        broker.reconnect()
        yield* TestClock.adjust(100)
        broker.faults.settle = () => undefined
        broker.faults.latency = 0
        broker.take()
        broker.deliver(id, { attempts: 3 })
        yield* Effect.yieldNow
        assert.deepStrictEqual([runs, broker.take()], [1, [`${id}:Ack`]])
        yield* consumer.drain(0)
      }
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("does not bring back what was decided before a later delivery of its message", () => {
    const broker = Scripted.make({ ...leased, settleBatch: 1 })
    return Effect.gen(function* () {
      const runs: Array<number> = []
      yield* Consumer.start("q", { concurrency: 2 }, ({ attempts }) => {
        runs.push(attempts)
        if (attempts === 1) throw new Error("no")
      })
      broker.faults.settle = () => gone
      broker.faults.latency = 100
      broker.deliver("a")
      yield* TestClock.adjust(10)
      broker.faults.latency = 0
      broker.deliver("a", { attempts: 2 })
      yield* TestClock.adjust(100)
      broker.faults.settle = () => undefined
      broker.take()
      broker.deliver("a", { attempts: 3 })
      yield* Effect.yieldNow
      assert.deepStrictEqual([runs, broker.take()], [[1, 2], ["a:Ack"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})

describe("a message that must run alone", () => {
  it.effect("has nothing beside it: what comes goes back, or waits", () => {
    const broker = Scripted.make()
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", { concurrency: 5, drainTimeout: 0 }, ({ id }) => {
        runs.push(id)
        return id === "suspect" ? Effect.sleep(1000) : Effect.void
      })
      broker.deliver("suspect", { attempts: 9 })
      yield* TestClock.adjust(100)
      broker.take()
      broker.deliver("late")
      yield* Effect.yieldNow
      assert.deepStrictEqual([runs, broker.take()], [["suspect"], ["late:Release"]])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("has nothing begun beside it where giving back counts as an attempt", () => {
    const broker = Scripted.make({ uncountedRelease: false })
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", { concurrency: 5, drainTimeout: 0 }, ({ id }) => {
        runs.push(id)
        return id === "suspect" ? Effect.sleep(1000) : Effect.void
      })
      broker.deliver("suspect", { attempts: 9 })
      yield* TestClock.adjust(100)
      broker.deliver("late")
      yield* TestClock.adjust(500)
      assert.deepStrictEqual(runs, ["suspect"])
      yield* TestClock.adjust(500)
      assert.deepStrictEqual(runs, ["suspect", "late"])
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })

  it.effect("runs once the others are given back, which makes no room for further ones", () => {
    const broker = Scripted.make({ settleBatch: 3 })
    return Effect.gen(function* () {
      const runs: Array<string> = []
      yield* Consumer.start("q", { prefetch: 5 }, ({ id }) => {
        runs.push(id)
        return id === "slow" ? Effect.sleep(50) : Effect.void
      })
      broker.deliver("slow")
      broker.deliver("suspect", { attempts: 9 })
      for (const id of ["a", "b", "c"]) broker.deliver(id)
      yield* TestClock.adjust(160)
      assert.deepStrictEqual(
        [runs, broker.take()],
        [["slow"], ["credit 6", "credit 0", "slow:Ack", "a:Release b:Release c:Release"]]
      )
      // As if somebody else went on sending.
      for (const id of ["d", "e", "f"]) broker.deliver(id)
      yield* TestClock.adjust(200)
      assert.include(runs, "suspect")
    }).pipe(Effect.scoped, Effect.provide(broker.layer))
  })
})
