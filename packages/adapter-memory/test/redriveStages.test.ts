/** Redrives in stages, which stop by themselves when too much comes back. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import type { Broker } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { browsing } from "./browsing.ts"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

const bury = async (broker: VirtualBroker, count: number): Promise<void> => {
  const worker = await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, () =>
    Promise.reject(new Error("down"))
  )
  const entries = Array.from({ length: count }, (_, index) => ({ body: index, id: `${index}` }))
  await broker.requeue.sendBatch("q", entries)
  await turns(200)
  await broker.finish(worker.drain())
  assert.strictEqual(await broker.finish(deadLetters(broker.requeue, "q.dlq").count()), count)
}

/** A consumer that does what the fix lets it do. */
const work = (broker: VirtualBroker, fails: (body: number) => boolean, delay = 0) =>
  broker.requeue.consume<number>("q", { retry: { maxRetries: 0 }, concurrency: 100 }, ({ body }) =>
    fails(body) ? Effect.fail(new Error("still down")) : Effect.sleep(delay)
  )

const stage = (size: number | undefined, published: number, cameBack: number) => ({
  size,
  published,
  succeeded: published - cameBack,
  cameBack,
  waiting: 0,
  unseen: 0
})

describe("a redrive in stages", () => {
  it("stops at the first letter when nothing is mended", async () => {
    await using broker = await open()
    await bury(broker, 500)
    await work(broker, () => true)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const report = await broker.finish(letters.redrive({ stages: [1, 10, 100] }))
    assert.deepInclude(report, {
      published: 1,
      redriven: 1,
      succeeded: 0,
      cameBack: 1,
      waiting: 0,
      unseen: 0,
      stoppedBy: "stop-at",
      queued: 499
    })
    assert.deepStrictEqual(report.stages, [stage(1, 1, 1)])
    const [last] = (await broker.finish(letters.list({ limit: 1000 }))).filter(({ redrives }) => redrives > 0)
    assert.strictEqual(last!.operation, report.operation)
  })

  it("stops at 11 when the first one happens to succeed", async () => {
    await using broker = await open()
    await bury(broker, 500)
    await work(broker, (body) => body !== 0)
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ stopAt: 0.1 }))
    assert.deepInclude(report, { published: 11, succeeded: 1, cameBack: 10, waiting: 0, stoppedBy: "stop-at" })
    assert.deepStrictEqual(report.stages, [stage(1, 1, 0), stage(10, 10, 10)])
  })

  it("goes on to the end where little comes back, and none is redriven twice", async () => {
    await using broker = await open()
    await bury(broker, 500)
    const runs: Array<number> = []
    await work(broker, (body) => runs.push(body) > 0 && body % 20 === 19)
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ stages: [1, 10, 100] }))
    assert.deepInclude(report, { published: 500, succeeded: 475, cameBack: 25, waiting: 0, stoppedBy: undefined })
    assert.deepStrictEqual(
      report.stages.map(({ published }) => published),
      [1, 10, 100, 389]
    )
    assert.strictEqual(runs.length, 500)
  })

  it("waits for what its letters become", async () => {
    await using broker = await open()
    await bury(broker, 30)
    await work(broker, () => false, 20_000)
    const before = broker.now()
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ stages: [1, 10] }))
    assert.deepInclude(report, { published: 30, succeeded: 30, cameBack: 0, waiting: 0, stoppedBy: undefined })
    assert.isAtLeast(broker.now() - before, 60_000)
    assert.isAtMost(broker.now() - before, 65_000)
  })

  it("stops where nobody works, and says what waits", async () => {
    await using broker = await open()
    await bury(broker, 30)
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ wait: "10 seconds" }))
    assert.deepInclude(report, { published: 1, succeeded: 0, cameBack: 0, waiting: 1, stoppedBy: "wait", queued: 29 })
  })

  it("waits once for the last letters, and not for a stage without any", async () => {
    await using broker = await open()
    await bury(broker, 2)
    await broker.requeue.consume<number>("q", { concurrency: 2 }, ({ body }) => Effect.sleep(body * 60_000))
    const before = broker.now()
    const report = await broker.finish(
      deadLetters(broker.requeue, "q.dlq").redrive({ stages: [2], wait: "10 seconds" })
    )
    assert.deepInclude(report, { published: 2, succeeded: 1, waiting: 1, stoppedBy: undefined })
    assert.isBelow(broker.now() - before, 15_000)
  })

  it("goes on after the wait where the queue moves", async () => {
    await using broker = await open()
    await bury(broker, 30)
    await broker.requeue.sendBatch(
      "q",
      Array.from({ length: 2000 }, () => ({ body: -1 }))
    )
    await work(broker, () => false, 5000)
    const report = await broker.finish(
      deadLetters(broker.requeue, "q.dlq").redrive({ wait: "10 seconds", stages: [1] })
    )
    assert.deepInclude(report, { published: 30, cameBack: 0, stoppedBy: undefined })
    assert.strictEqual(report.succeeded! + report.waiting!, 30)
  })

  it("is aborted while it waits, and says where every letter is", async () => {
    await using broker = await open()
    await bury(broker, 30)
    const stop = new AbortController()
    await work(broker, (body) => body === 1 || body === 2, 3000)
    const redriving = deadLetters(broker.requeue, "q.dlq").redrive({
      stages: [5],
      stopAt: 1,
      wait: "1 hour",
      signal: stop.signal
    })
    await broker.advance(2000)
    stop.abort()
    const report = await broker.finish(redriving)
    assert.deepInclude(report, { published: 5, succeeded: 0, cameBack: 2, waiting: 3, stoppedBy: "abort", queued: 25 })
  })

  it("goes on with the others when it is called again", async () => {
    await using broker = await open()
    await bury(broker, 30)
    let isMended = false
    await work(broker, () => !isMended)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const { operation } = await broker.finish(letters.redrive({ stages: [1, 10] }))
    isMended = true
    const report = await broker.finish(letters.redrive({ stages: [1, 10], operation }))
    assert.deepInclude(report, { operation, published: 29, succeeded: 29, cameBack: 0, repeated: 1, queued: 1 })
    assert.deepInclude(await broker.finish(letters.redrive({ stages: [1] })), {
      published: 1,
      succeeded: 1,
      repeated: 0
    })
  })

  it("keeps to its rate over all its passes", async () => {
    await using broker = await open()
    await bury(broker, 12)
    await work(broker, () => false)
    const before = broker.now()
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ stages: [1, 2], rate: 0.1 }))
    assert.deepInclude(report, { published: 12, succeeded: 12 })
    assert.isAtLeast(broker.now() - before, 110_000)
  })

  it("watches the dead letters of the queue that it redrives to", async () => {
    await using broker = await open()
    await bury(broker, 30)
    await broker.requeue.consume("other", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("no")))
    const report = await broker.finish(
      deadLetters(broker.requeue, "q.dlq").redrive({ stages: [1], to: "other", create: true })
    )
    assert.deepInclude(report, { published: 1, cameBack: 1, stoppedBy: "stop-at" })
  })

  it("does not know what becomes of letters where the broker does not count them", async () => {
    await using broker = await open({}, (broker) => ({
      ...broker,
      admin: {
        ...broker.admin,
        counts: (queue) => Effect.map(broker.admin.counts(queue), (counts) => ({ ...counts, delayed: undefined }))
      }
    }))
    await bury(broker, 30)
    await work(broker, () => false)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const report = await broker.finish(letters.redrive({ stages: [1], wait: "5 seconds" }))
    assert.deepInclude(report, { published: 30, succeeded: undefined, cameBack: 0, waiting: undefined })
  })

  it("takes letters that came and were not seen for such that came back", async () => {
    const many = 100_500
    await using broker = await open()
    await broker.requeue.sendBatch(
      "q.dlq",
      Array.from({ length: many }, (_, body) => ({ body }))
    )
    await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("no")))
    const report = await broker.finish(
      deadLetters(broker.requeue, "q.dlq").redrive({ stages: [1], to: "q", create: true, watch: [] })
    )
    assert.deepInclude(report, { published: 1, cameBack: 0, unseen: 1, stoppedBy: "stop-at" })
  })

  it("refuses wrong options", async () => {
    await using broker = await open()
    const letters = deadLetters(broker.requeue, "q.dlq")
    const whole = "stages must be an array of at least one whole number >= 1"
    const wrong = [
      [{ stages: [] }, `${whole}, got an array`],
      [{ stages: [0.5] }, `${whole}, got an array`],
      // oxlint-disable-next-line no-sparse-arrays -- what is refused
      [{ stages: [1, , 2] as unknown as ReadonlyArray<number> }, `${whole}, got an array`],
      [{ stopAt: 10 }, "stopAt must be a number from 0 to 1, got 10"],
      [{ wait: 0 }, "wait must be a duration from 1ms to 1d, got 0"],
      [{ operation: "a b" }, 'operation must be 1 to 32 letters, digits, ".", "_" or "-", got "a b"']
    ] as const
    for (const [options, message] of wrong) {
      const error = await letters.redrive(options as DeadLetters.RedriveOptions).catch((error: unknown) => error)
      assert.instanceOf(error, RangeError)
      assert.strictEqual((error as Error).message, `DeadLetters.redrive (queue q.dlq): ${message}`)
    }
  })
})

describe("the letters of a stage", () => {
  it.each([
    [0.5, 3000],
    [20, 2500],
    [500, 2500]
  ])("are as many as its size, at %d a second of %d letters", async (rate, count) => {
    await using broker = await open()
    await bury(broker, count)
    await work(broker, () => false)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const report = await broker.finish(letters.redrive({ stages: [1, 10, 100], limit: 150, rate }))
    assert.deepStrictEqual(
      report.stages.map(({ published }) => published),
      [1, 10, 100, 39]
    )
    assert.deepInclude(report, { published: 150, succeeded: 150, queued: count - 150 })
  })
  it("are as many as the limit, also where nobody watches, and where most are passed over", async () => {
    await using broker = await open()
    await bury(broker, 4000)
    const letters = deadLetters(broker.requeue, "q.dlq")
    assert.deepInclude(await broker.finish(letters.redrive({ limit: 20, rate: 1 })), { redriven: 20, queued: 3980 })
    const filter = ({ metadata }: DeadLetters.DeadLetter) => Number(metadata.id) % 200 === 199
    const report = await broker.finish(letters.redrive({ filter, rate: 0.1 }))
    assert.deepInclude(report, { redriven: 20, filtered: 3960, queued: 3960 })
  })
})

/** A broker whose counts may be late. */
const late = () => open({ faults: { capabilities: { exactCounts: false } } })

describe("letters that arrive while a redrive in stages works", () => {
  const names = ["counts exactly", "may count late"] as const
  it.each(names)("are left for the next time, and their failures stop nothing, where the broker %s", async (name) => {
    await using broker = await (name === names[0] ? open() : late())
    await bury(broker, 20)
    const isNew = (body: number) => body >= 100
    await work(broker, isNew, 2000)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const told: Array<DeadLetters.RedriveReport> = []
    const redriving = letters.redrive({
      stages: [1, 5],
      wait: "20 seconds",
      onProgress: (report) => void told.push(report)
    })
    await broker.advance(1000)
    for (let body = 100; body < 160; body++) await broker.requeue.send("q", body)
    const report = await broker.finish(redriving)
    assert.deepInclude(report, { published: 20, succeeded: 20, cameBack: 0, queued: 0, stoppedBy: undefined })
    for (const { queued, redriven } of told) assert.strictEqual(redriven + queued!, 20)
    assert.strictEqual(await broker.finish(letters.count()), 60)
  })

  it("are told apart by counts alone where their times tell nothing, so that none is left that could go", async () => {
    await using broker = await open()
    await broker.requeue.sendBatch(
      "q.dlq",
      Array.from({ length: 20 }, (_, body) => ({ body }))
    )
    await work(broker, () => false, 2000)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const redriving = letters.redrive({ stages: [1, 5], to: "q", create: true, watch: [] })
    await broker.advance(1000)
    await broker.requeue.send("q.dlq", 100)
    const report = await broker.finish(redriving)
    assert.deepInclude(report, { published: 20, succeeded: 20, queued: 0, stoppedBy: undefined })
    assert.strictEqual(await broker.finish(letters.count()), 1)
  })
})

describe("two redrives at once", () => {
  it.each([
    ["all at once", {}],
    ["in stages", { stages: [5, 30] }]
  ] as const)("tell truly how many letters are left, %s", async (_, options) => {
    await using broker = await open()
    await bury(broker, 300)
    await work(broker, () => false)
    const redrive = () => deadLetters(broker.requeue, "q.dlq").redrive({ ...options, rate: 15 })
    const [first, second] = await broker.finish(Promise.all([redrive(), redrive()]))
    assert.strictEqual(first.redriven + second.redriven, 300)
    assert.deepStrictEqual([first.queued, second.queued], [0, 0])
  })
})

describe("the progress of a redrive in stages", () => {
  it.each([0, 100])("claims no success before it was, and none that ceases, with a handler of %d ms", async (delay) => {
    await using broker = await open()
    await bury(broker, 300)
    let succeeded = 0
    await broker.requeue.consume<number>("q", { retry: { maxRetries: 0 }, concurrency: 20 }, ({ body }) =>
      Effect.andThen(
        Effect.sleep(delay),
        body % 4 === 3 ? Effect.fail(new Error("no")) : Effect.sync(() => succeeded++)
      )
    )
    let before: Partial<DeadLetters.RedriveReport> = { succeeded: 0, cameBack: 0 }
    const onProgress = (report: DeadLetters.RedriveReport) => {
      assert.isAtMost(report.succeeded!, succeeded)
      assert.isAtLeast(report.succeeded!, before.succeeded!)
      assert.isAtLeast(report.cameBack!, before.cameBack!)
      assert.strictEqual(report.published, report.succeeded! + report.cameBack! + report.waiting!)
      before = report
    }
    const letters = deadLetters(broker.requeue, "q.dlq")
    const report = await broker.finish(letters.redrive({ stages: [3, 30], stopAt: 0.5, rate: 20, onProgress }))
    assert.deepInclude(report, { published: 300, succeeded: 225, cameBack: 75, waiting: 0, stoppedBy: undefined })
  })
})

describe("reading letters that keep arriving", () => {
  /** A broker on which another letter arrives each second while they are read. */
  const endless = () =>
    open(
      {},
      browsing(({ next }) => {
        let last: ReadonlyArray<Broker.BrowsedMessage> = []
        const more = Effect.andThen(
          Effect.sleep(1000),
          Effect.sync(() => last.slice(0, 1))
        )
        return {
          next: (count) =>
            Effect.flatMap(next(count), (page) => {
              if (page.length > 0) last = page
              return page.length > 0 ? Effect.succeed(page) : more
            })
        }
      })
    )

  it("ends soon after it has shown as many as were there", async () => {
    await using broker = await endless()
    await bury(broker, 20)
    const groups = await broker.finish(deadLetters(broker.requeue, "q.dlq").group())
    assert.isAtLeast(groups.browsed, 20)
    assert.isAtMost(groups.browsed, 26)
  })

  it("keeps a redrive in stages from nothing", async () => {
    await using broker = await endless()
    await bury(broker, 30)
    await work(broker, () => true)
    const before = broker.now()
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ wait: "10 seconds" }))
    assert.deepInclude(report, { published: 1, cameBack: 1, stoppedBy: "stop-at" })
    assert.isBelow(broker.now() - before, 30_000)
  })
})

describe("letters that another reader has", () => {
  it("stop a redrive in stages when it has waited for them", async () => {
    await using broker = await open()
    await bury(broker, 30)
    await work(broker, () => false)
    await broker.requeue.consume("q.dlq", { concurrency: 5 }, () => Effect.never)
    await turns()
    const letters = deadLetters(broker.requeue, "q.dlq")
    const report = await broker.finish(letters.redrive({ stages: [1], wait: "10 seconds" }))
    assert.isAtLeast(report.held!, 5)
    const published = 30 - report.held!
    assert.deepInclude(report, { published, succeeded: published, queued: 0, stoppedBy: "held" })
  })

  it("are redriven when they come back meanwhile", async () => {
    await using broker = await open()
    await bury(broker, 30)
    await work(broker, () => false)
    const reader = await broker.requeue.consume("q.dlq", { concurrency: 5, drainTimeout: 1000 }, () => Effect.never)
    await turns()
    const redriving = deadLetters(broker.requeue, "q.dlq").redrive({ stages: [1], wait: "30 seconds" })
    await broker.advance(5000)
    const [report] = await broker.finish(Promise.all([redriving, reader.drain()]))
    assert.deepInclude(report, { published: 30, succeeded: 30, queued: 0, held: 0, stoppedBy: undefined })
  })

  it("that come back while they are browsed are none that came meanwhile", async () => {
    let isOpen = false
    await using broker = await open({}, (broker) => ({
      ...broker,
      admin: {
        ...broker.admin,
        // Letters that are out while they are counted, and in the browser, as after it on SQS.
        counts: (queue) =>
          Effect.map(broker.admin.counts(queue), (counts) => {
            const { ready = 0 } = counts
            if (!isOpen || queue !== "q.dlq" || ready < 20) return counts
            return { ...counts, ready: ready - 20, inFlight: 20, isRead: true }
          })
      }
    }))
    await bury(broker, 60)
    await work(broker, (body) => body % 10 === 3)
    isOpen = true
    const letters = deadLetters(broker.requeue, "q.dlq")
    const report = await broker.finish(letters.redrive({ stages: [5], stopAt: 0.5, wait: "10 seconds", limit: 10 }))
    assert.deepInclude(report, { published: 10, cameBack: 1, unseen: 0, stoppedBy: undefined })
  })
})

describe("letters of several queues", () => {
  /** Dead letters of two queues in one, both of which fail again: into that one, and into another. */
  const open2 = async () => {
    const broker = await open()
    const fail = (queue: string, deadLetter: string) =>
      broker.requeue.consume(queue, { retry: { maxRetries: 0, deadLetter } }, () => Promise.reject(new Error("no")))
    for (const queue of ["one", "two"]) {
      const worker = await fail(queue, "all.dlq")
      await broker.requeue.sendBatch(
        queue,
        Array.from({ length: 10 }, (_, body) => ({ body }))
      )
      await turns(100)
      await broker.finish(worker.drain())
    }
    await fail("one", "all.dlq")
    await fail("two", "elsewhere")
    return broker
  }

  it("come back to the dead letters of each one's own policy", async () => {
    await using broker = await open2()
    const asked: Array<string> = []
    const watch = (queue: string) => {
      asked.push(queue)
      return queue === "two" ? ["elsewhere"] : []
    }
    const report = await broker.finish(deadLetters(broker.requeue, "all.dlq").redrive({ stopAt: 1, watch }))
    assert.deepInclude(report, { published: 20, succeeded: 0, cameBack: 20, waiting: 0 })
    assert.deepStrictEqual(asked, ["one", "two"])
  })

  it("come back to those of the default policy, unless others are told", async () => {
    await using broker = await open()
    await broker.requeue.consume("q", { retry: { maxRetries: 0, deadLetter: "old" } }, () =>
      Promise.reject(new Error("no"))
    )
    await broker.requeue.send("q", 1)
    await turns(100)
    await broker.requeue.consume("other", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("no")))
    const report = await broker.finish(
      deadLetters(broker.requeue, "old").redrive({ stages: [1], to: "other", create: true })
    )
    assert.deepInclude(report, { published: 1, cameBack: 1, stoppedBy: "stop-at" })
  })

  it("come back to no queue that is missing", async () => {
    await using broker = await open2()
    const error = await deadLetters(broker.requeue, "all.dlq")
      .redrive({ stages: [1], watch: ["mising"] })
      .catch((error: unknown) => error)
    assert.deepInclude(error as object, { _tag: "BrokerError", reason: "QueueMissing", queue: "mising" })
  })

  it("go to none that is missing, unless it may be made", async () => {
    await using broker = await open()
    const deadLetter = "old"
    await broker.requeue.consume("q", { retry: { maxRetries: 0, deadLetter } }, () => Promise.reject(new Error("no")))
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns(100)
    const letters = deadLetters(broker.requeue, "old")
    const asked = { to: "archive" } as const
    for (const options of [asked, { ...asked, stages: [1] }]) {
      const report = await broker.finish(letters.redrive(options))
      assert.deepInclude(report, { published: 0, refused: 2, queued: 2 })
      assert.strictEqual(report.failures[0]!.error?.reason, "QueueMissing")
      assert.isFalse(await broker.finish(deadLetters(broker.requeue, "archive").exists()))
    }
    assert.deepInclude(await broker.finish(letters.redrive({ to: "archive", create: true })), {
      redriven: 2,
      refused: 0
    })
  })
})
