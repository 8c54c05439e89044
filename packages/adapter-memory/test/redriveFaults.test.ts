/** Redrives and purges on a broker that fails, is slow, or loses its connection: nothing is lost, doubled or asked twice. */
import { deadLetters } from "@requeue/operations/promise"
import { Broker, BrokerError, type Delivery } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { browsing, leasing } from "./browsing.ts"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index}`)

const fill = async (broker: VirtualBroker, count: number): Promise<void> => {
  await broker.requeue.sendBatch(
    "q.dlq",
    numbers(count).map((id) => ({ body: id, id }))
  )
}

const sorted = (ids: ReadonlyArray<string>) => ids.toSorted((a, b) => Number(a) - Number(b))

/** The ids that wait in a queue, smallest first. */
const idsIn = async (broker: VirtualBroker, queue: string): Promise<ReadonlyArray<string>> => {
  const { ready } = await Effect.runPromise(broker.control.snapshot(queue))
  return sorted(ready.map(({ metadata }) => metadata.id))
}

const inFlight = async (broker: VirtualBroker) =>
  (await Effect.runPromise(broker.control.snapshot("q.dlq"))).inFlight.length

const idOf = ({ metadata }: Pick<Delivery.Delivery, "metadata">) => metadata.id

/** The error with which a redrive fails. */
const stopped = async (redriving: Promise<unknown>): Promise<DeadLetters.DeadLettersStopped> => {
  const error: unknown = await redriving.catch((thrown: unknown) => thrown)
  if (error instanceof DeadLetters.DeadLettersStopped) return error
  throw new Error("the redrive did not stop", { cause: error })
}

const broken = (operation: string, reason: BrokerError.Reason) =>
  new BrokerError.BrokerError({ broker: "memory", operation, reason, detail: "made to fail" })

/** Changes the answers of publishes to `q`: `undefined` publishes. */
const publishing =
  (refusal: (id: string) => BrokerError.Reason | undefined) =>
  (broker: Broker.Service): Broker.Service => ({
    ...broker,
    publish: (messages) => {
      const reason = messages.map((each) => (each.queue === "q" ? refusal(idOf(each)) : undefined)).find((r) => r)
      return reason === undefined ? broker.publish(messages) : Effect.fail(broken("publish", reason))
    }
  })

/** The removals of these ids fail for good, and the broker still holds them for us. */
const keeps = (...ids: ReadonlyArray<string>) =>
  browsing(({ remove }) => ({
    remove: (deliveries) => {
      const isKept = (delivery: Delivery.Delivery) => ids.includes(idOf(delivery))
      const error = broken("remove", "AccessRefused")
      const failures = deliveries.filter(isKept).map((delivery) => ({ delivery, error, fate: "rejected" as const }))
      return Effect.map(remove(deliveries.filter((each) => !isKept(each))), (others) => [...failures, ...others])
    }
  }))

/** The broker cannot name copies. */
const unnamed = browsing(() => ({ identify: () => undefined }))

describe("settlements that fail", () => {
  it.each(["ConnectionLost", "LeaseLost"] as const)("%s: what is counted is gone", async (reason) => {
    await using broker = await open({ faults: { failSettle: { every: 4, reason } } })
    await fill(broker, 30)
    const letters = deadLetters(broker.requeue, "q.dlq")
    assert.strictEqual(await broker.finish(letters.purge({ filter: () => true })), 30)
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), [])
    await fill(broker, 30)
    const report = await broker.finish(letters.redrive({ to: "q", create: true }))
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), [])
    assert.deepStrictEqual(await idsIn(broker, "q"), numbers(30))
    assert.deepStrictEqual([report.redriven, report.queued], [30, 0])
  })

  it("a redrive whose published letter is lost at each removal pauses, and ends after a minute", async () => {
    let removals = 0
    await using broker = await open(
      { faults: { failSettle: { every: 1, reason: "LeaseLost" } } },
      browsing(({ remove }) => ({ remove: (letters) => (removals++, remove(letters)) }))
    )
    await fill(broker, 1)
    const before = broker.now()
    const error = await broker.finish(stopped(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true })))
    assert.strictEqual(error.cause.reason, "LeaseLost")
    assert.isAtLeast(broker.now() - before, 60_000)
    assert.isAtMost(removals, 10)
    assert.deepStrictEqual([error.report?.published, error.report?.unremoved, error.report?.queued], [1, 1, 1])
    assert.deepStrictEqual(await idsIn(broker, "q"), ["0"])
  })

  it("a letter whose ack is refused is published once, and named in the report", async () => {
    await using broker = await open({}, keeps("3", "5"))
    await fill(broker, 10)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const report = await broker.finish(letters.redrive({ to: "q", create: true }))
    assert.deepStrictEqual(await idsIn(broker, "q"), numbers(10))
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), ["3", "5"])
    assert.deepStrictEqual([report.redriven, report.unremoved, report.queued], [8, 2, 2])
    assert.deepStrictEqual(
      report.failures.map(({ error, id, isPublished }) => [id, isPublished, error?.reason]),
      [
        ["3", true, "AccessRefused"],
        ["5", true, "AccessRefused"]
      ]
    )
    assert.strictEqual(await broker.finish(letters.purge({ filter: () => true })), 0)
  })

  it("a removal that the broker takes later is tried again", async () => {
    const error = broken("remove", "Throttled")
    let tries = 0
    const busy = browsing(({ remove }) => ({
      remove: (deliveries) => {
        if (tries++ > 0) return remove(deliveries)
        return Effect.succeed(deliveries.map((delivery) => ({ delivery, error, fate: "transient" as const })))
      }
    }))
    await using broker = await open({}, busy)
    await fill(broker, 3)
    await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true }))
    assert.deepStrictEqual(await idsIn(broker, "q"), numbers(3))
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), [])
  })
})

describe("a stage", () => {
  it("publishes no letter that an earlier stage has published, and whose ack the broker refused", async () => {
    await using broker = await open({}, keeps("0"))
    await fill(broker, 10)
    const handled: Array<string> = []
    await broker.requeue.consume("q", {}, ({ id }) => void handled.push(id))
    const letters = deadLetters(broker.requeue, "q.dlq")
    const report = await broker.finish(letters.redrive({ to: "q", create: true, stages: [2, 4] }))
    assert.deepStrictEqual(sorted(handled), numbers(10))
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), ["0"])
    assert.deepStrictEqual([report.published, report.redriven, report.unremoved], [10, 9, 1])
  })

  it("tries no letter again that an earlier stage was refused, and counts what it passes over once", async () => {
    const tried: Array<string> = []
    const refusal = (id: string) => {
      tried.push(id)
      return id === "0" ? "Unroutable" : undefined
    }
    await using broker = await open({}, publishing(refusal))
    await fill(broker, 12)
    await broker.requeue.consume("q", {}, () => {})
    const letters = deadLetters(broker.requeue, "q.dlq")
    const filter = (letter: DeadLetters.DeadLetter) => idOf(letter) !== "1"
    const report = await broker.finish(letters.redrive({ to: "q", create: true, stages: [2, 4], filter }))
    const wanted = numbers(12).filter((id) => id !== "1")
    assert.deepStrictEqual(sorted(tried), wanted)
    assert.deepStrictEqual([report.redriven, report.refused, report.filtered], [10, 1, 1])
  })
})

describe("a queue that a letter names", () => {
  /** Sends a dead letter that says it comes from this queue, as anybody can. */
  const forge = (broker: VirtualBroker, id: string, queue: string): Promise<void> => {
    const error = { name: "Error", message: "forged" }
    const deadLetter = { queue, attempts: 1, reason: "permanent" as const, at: 0, error }
    const metadata = { ...Metadata.make(id, 0), deadLetter }
    return Effect.runPromise(
      broker.broker.publish([{ queue: "q.dlq", body: new TextEncoder().encode("1"), headers: {}, delay: 0, metadata }])
    )
  }

  const reasons = ["ConnectionLost", "Timeout", "Throttled", "AccessRefused", "Unsupported"] as const

  it.each([
    ...reasons.map((reason) => ({ reason, dryRun: false })),
    { reason: "ConnectionLost" as const, dryRun: true },
    { reason: "ConnectionLost" as const, dryRun: false, stages: [1] }
  ])("concerns that letter alone where the broker fails to look it up: %o", async ({ reason, ...options }) => {
    let asked = 0
    const failing = (broker: Broker.Service): Broker.Service => ({
      ...broker,
      publish: (messages) =>
        messages.some(({ queue }) => queue === "evil")
          ? Effect.fail(broken("publish", "Unroutable"))
          : broker.publish(messages),
      admin: {
        ...broker.admin,
        counts: (queue) =>
          queue === "evil"
            ? Effect.suspend(() => {
                asked++
                return Effect.fail(broken("counts", reason))
              })
            : broker.admin.counts(queue)
      }
    })
    await using broker = await open({}, failing)
    await broker.requeue.consume("q", {}, () => {})
    for (const id of numbers(20)) await forge(broker, id, Number(id) % 4 === 0 ? "evil" : "q")
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive(options))
    assert.deepStrictEqual(
      [report.redriven, report.refused, report.queued, report.unconfirmed],
      [15, 5, options.dryRun ? 20 : 5, 0]
    )
    assert.deepStrictEqual(
      report.failures.map(({ id }) => Number(id) % 4),
      [0, 0, 0, 0, 0]
    )
    assert.isAtMost(asked, reason === "AccessRefused" ? 30 : 3)
    if (!options.dryRun) assert.strictEqual((await idsIn(broker, "q.dlq")).length, 5)
  })

  it("is looked up alone: where that ends the connection, no other name fails with it", async () => {
    let cuts = 0
    const fragile = (broker: Broker.Service): Broker.Service => ({
      ...broker,
      admin: {
        ...broker.admin,
        counts: (queue) =>
          Effect.gen(function* () {
            const before = cuts
            yield* Effect.sleep("100 millis")
            if (queue === "evil") cuts++
            return cuts === before ? yield* broker.admin.counts(queue) : yield* broken("counts", "ConnectionLost")
          })
      }
    })
    await using broker = await open({}, fragile)
    await broker.requeue.consume("q", {}, () => {})
    await forge(broker, "0", "evil")
    await forge(broker, "1", "q")
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive())
    assert.deepStrictEqual([report.redriven, report.refused], [1, 1])
  })

  it("is looked up for as long as an outage takes", async () => {
    // Two failures when the connection is back are fewer than those that refuse the name.
    let [isUp, left] = [false, 2]
    const away = (broker: Broker.Service): Broker.Service => ({
      ...broker,
      connection: () => (isUp ? broker.connection() : { ...broker.connection(), state: "down" }),
      admin: {
        ...broker.admin,
        counts: (queue) =>
          Effect.suspend(() =>
            queue !== "q" || (isUp && left-- <= 0)
              ? broker.admin.counts(queue)
              : Effect.fail(broken("counts", "ConnectionFailed"))
          )
      }
    })
    await using broker = await open({}, away)
    await broker.requeue.consume("q", {}, () => {})
    await forge(broker, "0", "q")
    const redriving = deadLetters(broker.requeue, "q.dlq").redrive()
    // Long enough for more failures than those that refuse a name.
    await broker.advance("10 seconds")
    isUp = true
    const report = await broker.finish(redriving)
    assert.deepStrictEqual([report.redriven, report.refused], [1, 0])
  })
})

describe("a connection that is cut", () => {
  it.each([
    ["names copies", (broker: Broker.Service) => broker, true],
    // Those that were published as they were lost stay, because others may have the same metadata.
    ["does not name copies", unnamed, false]
  ] as const)("a broker that %s: each letter is judged once, and published once", async (_, wrap, isNamed) => {
    await using broker = await open({}, wrap)
    await fill(broker, 20)
    const judged: Array<string> = []
    const filter = (letter: DeadLetters.DeadLetter) => {
      judged.push(idOf(letter))
      return Number(idOf(letter)) % 4 !== 0
    }
    const cut = async () => {
      await broker.advance("1 second")
      await Effect.runPromise(broker.control.cut)
      await broker.advance("200 millis")
      await Effect.runPromise(broker.control.cut)
    }
    const redriving = deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, filter, rate: 5 })
    await cut()
    const report = await broker.finish(redriving)
    assert.deepStrictEqual(sorted(judged), numbers(20))
    const [passed = [], sent] = [0, 1].map((rest) =>
      numbers(20).filter((id) => (Number(id) % 4 === 0) === (rest === 0))
    )
    assert.deepStrictEqual(await idsIn(broker, "q"), sent)
    const left = report.failures.map(({ id }) => id)
    assert.isAtMost(left.length, isNamed ? 0 : 10)
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), sorted([...passed, ...left]))
    assert.deepStrictEqual(
      [report.redriven + report.unremoved, report.unremoved, report.filtered, report.queued],
      [15, left.length, 5, 5 + left.length]
    )
  })

  it("fails with the report when there is no connection for a minute, and a second call goes on", async () => {
    let isDown = false
    await using broker = await open({}, (broker) => ({
      ...broker,
      connection: () => ({ state: isDown ? "down" : "up", since: 0 }),
      publish: (messages) =>
        isDown && messages[0]!.queue === "q"
          ? Effect.fail(broken("publish", "ConnectionFailed"))
          : broker.publish(messages)
    }))
    await fill(broker, 10)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const onProgress = ({ redriven }: { readonly redriven: number }) => void (isDown = redriven === 4)
    const error = await broker.finish(stopped(letters.redrive({ to: "q", create: true, rate: 1, onProgress })))
    assert.deepStrictEqual([error.cause.reason, error.removed], ["ConnectionFailed", 4])
    assert.deepStrictEqual([error.report?.redriven, error.report?.queued], [4, 6])
    assert.isAtLeast(broker.now(), 60_000)
    isDown = false
    assert.strictEqual((await broker.finish(letters.redrive({ to: "q", create: true }))).redriven, 6)
    assert.deepStrictEqual(await idsIn(broker, "q"), numbers(10))
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), [])
  })
})

describe("leases that end before the letters are through", () => {
  const filter = (letter: DeadLetters.DeadLetter) => Number(idOf(letter)) % 5 !== 0
  const isMeant = (id: string) => Number(id) % 5 !== 0

  it.each([1, 4, 50])("a redrive of %s letters in a second opens the queue again, and doubles none", async (rate) => {
    await using broker = await open({}, leasing(3500))
    await fill(broker, 60)
    const judged: Array<string> = []
    const once = (letter: DeadLetters.DeadLetter) => (judged.push(idOf(letter)), filter(letter))
    const report = await broker.finish(
      deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, rate, filter: once })
    )
    assert.deepStrictEqual(sorted(judged), numbers(60))
    assert.deepStrictEqual([report.redriven, report.unremoved, report.filtered, report.queued], [48, 0, 12, 12])
    assert.deepStrictEqual(await idsIn(broker, "q"), numbers(60).filter(isMeant))
    assert.deepStrictEqual(
      await idsIn(broker, "q.dlq"),
      numbers(60).filter((id) => !isMeant(id))
    )
  })

  it("a letter that takes longer than a lease is removed when it is shown again", async () => {
    await using broker = await open({}, leasing(3500))
    await fill(broker, 4)
    const report = await broker.finish(
      deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, rate: 0.1 })
    )
    assert.deepStrictEqual([report.redriven, report.unremoved, report.queued], [4, 0, 0])
    assert.deepStrictEqual(await idsIn(broker, "q"), numbers(4))
  })

  it("a redrive that can never be quick enough ends after a minute, and its report is true", async () => {
    await using broker = await open({}, (broker) => {
      const { admin, ...others } = leasing(3500)(broker)
      // To show a page takes longer than the lease of letters that stay.
      const slow: Broker.Admin["browse"] = (options) =>
        Effect.map(admin.browse(options), (browser) => ({
          ...browser,
          next: (count) => Effect.delay(browser.next(Math.min(count, 5)), "1 second")
        }))
      return { ...others, admin: { ...admin, browse: slow } }
    })
    await fill(broker, 60)
    const none = () => false
    const before = broker.now()
    const error = await broker.finish(
      stopped(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, filter: none }))
    )
    assert.strictEqual(error.cause.reason, "LeaseLost")
    assert.isAtLeast(broker.now() - before, 60_000)
    const { filtered, queued, redriven } = error.report!
    assert.deepStrictEqual([redriven, queued], [0, 60])
    assert.isAtMost(filtered, 20)
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), numbers(60))
  })

  it("a list shows each letter once, and ends where it can never be quick enough", async () => {
    let slowPages = 4
    await using broker = await open({}, (broker) =>
      browsing(({ next }) => ({
        next: (count) => Effect.delay(next(Math.min(count, 20)), slowPages-- > 0 ? "1 second" : "0 millis")
      }))(leasing(3500)(broker))
    )
    await fill(broker, 100)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const listed = await broker.finish(letters.list())
    assert.deepStrictEqual(sorted(listed.map(({ id }) => id)), numbers(100))
    assert.isAtLeast(broker.now(), 4000)
    slowPages = Number.POSITIVE_INFINITY
    const error: unknown = await broker.finish(letters.list().catch((thrown: unknown) => thrown))
    assert.match(String(error), /browse on queue .*q\.dlq.*: LeaseLost/)
    assert.strictEqual(await inFlight(broker), 0)
  })
})

describe("letters that the broker does not name", () => {
  it("are each decided on, where they have one id and were shown before, and once each where leases end", async () => {
    for (const lease of [1e9, 3500]) {
      const capabilities = { uncountedBrowse: false }
      await using broker = await open({ faults: { capabilities } }, (broker) => unnamed(leasing(lease)(broker)))
      await broker.requeue.sendBatch(
        "q.dlq",
        numbers(20).map((body) => ({ body, id: "same" }))
      )
      const letters = deadLetters(broker.requeue, "q.dlq")
      assert.strictEqual((await broker.finish(letters.list())).length, 20)
      const judged: Array<string> = []
      const filter = ({ body }: DeadLetters.DeadLetter) => {
        const text = JSON.parse(new TextDecoder().decode(body)) as string
        judged.push(text)
        return Number(text) % 4 !== 0
      }
      const report = await broker.finish(letters.redrive({ to: "q", create: true, rate: 2, filter }))
      assert.deepStrictEqual(sorted(judged), numbers(20))
      assert.deepStrictEqual([report.published, report.filtered, report.held], [15, 5, 0])
      assert.strictEqual((await broker.waiting("q")).length, 15)
    }
  })
})

describe("a queue that is deleted", () => {
  it("ends its redrive with QueueMissing, and no letter is there any more", async () => {
    let isDeleted = false
    const deleted = (broker: Broker.Service): Broker.Service => ({
      ...broker,
      admin: {
        ...broker.admin,
        counts: (queue) =>
          isDeleted && queue === "q.dlq"
            ? Effect.succeed({ ready: 0, inFlight: 0, delayed: 0, isMissing: true })
            : broker.admin.counts(queue)
      }
    })
    const lost = browsing(({ next, remove }) => ({
      next: (count) => (isDeleted ? Effect.succeed([]) : next(count)),
      remove: (deliveries) =>
        isDeleted
          ? Effect.succeed(
              deliveries.map((delivery) => ({ delivery, error: broken("remove", "LeaseLost"), fate: "lost" as const }))
            )
          : remove(deliveries)
    }))
    await using broker = await open({}, (broker) => lost(deleted(broker)))
    await fill(broker, 60)
    const onProgress = ({ redriven }: { readonly redriven: number }) => void (isDeleted = redriven >= 10)
    const error = await broker.finish(
      stopped(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, rate: 10, onProgress }))
    )
    assert.strictEqual(error.cause.reason, "QueueMissing")
    assert.deepStrictEqual([error.report?.unremoved, error.report?.queued], [0, 0])
  })
})

describe("a queue whose messages the broker does not give", () => {
  /** Shows none of the dead letters for so many milliseconds, and says so. */
  const withholding = (millis: number) =>
    browsing(({ next }) => ({
      next: (count) =>
        Effect.flatMap(
          Effect.clockWith((clock) => clock.currentTimeMillis),
          (now) => (now < millis ? Effect.fail(broken("browse", "ConnectionFailed")) : next(count))
        )
    }))

  it("holds a redrive up, which goes on when it does", async () => {
    await using broker = await open({}, withholding(45_000))
    await fill(broker, 10)
    const { redriven } = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true }))
    assert.deepStrictEqual([redriven, await idsIn(broker, "q")], [10, numbers(10)])
  })

  it("ends it after a minute with the reason, and stops none of another queue", async () => {
    await using broker = await open({}, withholding(10 * 60_000))
    await fill(broker, 10)
    await broker.requeue.sendBatch(
      "other.dlq",
      numbers(5).map((id) => ({ body: id, id }))
    )
    const other = await broker.finish(deadLetters(broker.requeue, "other.dlq").redrive({ to: "q", create: true }))
    assert.strictEqual(other.redriven, 5)
    const error = await broker.finish(stopped(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true })))
    assert.match(error.cause.message, /browse: ConnectionFailed: made to fail/)
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), numbers(10))
  })
})

describe("publishes that fail", () => {
  it("one letter that is refused holds up no other, and none is published twice", async () => {
    await using broker = await open(
      {},
      publishing((id) => (id === "7" ? "Unroutable" : undefined))
    )
    await fill(broker, 50)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const others = numbers(50).filter((id) => id !== "7")
    for (const redriven of [49, 0, 0]) {
      const report = await broker.finish(letters.redrive({ to: "q", create: true }))
      assert.deepStrictEqual(await idsIn(broker, "q"), others)
      assert.deepStrictEqual(await idsIn(broker, "q.dlq"), ["7"])
      assert.deepStrictEqual([report.redriven, report.refused, report.queued], [redriven, 1, 1])
      assert.deepStrictEqual(
        report.failures.map(({ error, id, isPublished }) => [id, isPublished, error?.reason]),
        [["7", false, "Unroutable"]]
      )
    }
  })

  it("a letter that is refused takes no place of a limit", async () => {
    await using broker = await open(
      {},
      publishing((id) => (id === "0" ? "Unroutable" : undefined))
    )
    await fill(broker, 5)
    const report = await broker.finish(
      deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, limit: 2 })
    )
    assert.deepStrictEqual([report.redriven, report.refused], [2, 1])
    assert.deepStrictEqual(await idsIn(broker, "q"), ["1", "2"])
  })

  it("tries again what got no answer, and says that it may be there twice", async () => {
    const tried = new Set<string>()
    const once = (id: string) => (tried.has(id) ? undefined : (tried.add(id), "Timeout" as const))
    await using broker = await open(
      {},
      publishing((id) => (id === "1" ? once(id) : undefined))
    )
    await fill(broker, 3)
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true }))
    assert.deepStrictEqual([report.redriven, report.unconfirmed, report.queued], [3, 1, 0])
    assert.deepStrictEqual(await idsIn(broker, "q"), numbers(3))
  })

  it("gives up when nothing at all is taken", async () => {
    await using broker = await open(
      {},
      publishing(() => "QueueMissing")
    )
    await fill(broker, 500)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const error = await broker.finish(stopped(letters.redrive({ to: "q", create: true })))
    assert.deepStrictEqual([error.cause.reason, error.report?.refused], ["QueueMissing", 100])
    assert.strictEqual(error.report?.failures.length, 100)
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), numbers(500))
  })
})

describe("letters that are passed over", () => {
  it("are held, and what lies behind them is reached", async () => {
    await using broker = await open()
    await fill(broker, 3004)
    const filter = (letter: DeadLetters.DeadLetter) => Number(idOf(letter)) >= 3000
    const before = (await Effect.runPromise(broker.control.snapshot("q.dlq"))).ready.slice(0, 3000).map(idOf)
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, filter }))
    assert.deepStrictEqual(await idsIn(broker, "q"), ["3000", "3001", "3002", "3003"])
    const after = (await Effect.runPromise(broker.control.snapshot("q.dlq"))).ready.map(idOf)
    assert.deepStrictEqual(after, before)
    assert.deepStrictEqual([report.redriven, report.filtered, report.queued], [4, 3000, 3000])
  })

  it("are decided on once, where nobody counts", async () => {
    const counts = { ready: false, inFlight: false, delayed: false }
    await using broker = await open({ faults: { capabilities: { counts } } })
    await fill(broker, 2500)
    const decided: Array<string> = []
    const filter = (letter: DeadLetters.DeadLetter) => decided.push(idOf(letter)) === 0
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true, filter }))
    assert.deepStrictEqual(sorted(decided), numbers(2500))
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), numbers(2500))
    assert.deepStrictEqual([report.filtered, report.queued], [2500, undefined])
  })

  it.each([true, false])(
    "are held up to a limit, and what is behind them is not reached (exact counts: %s)",
    async (exactCounts) => {
      // The 100,000 that it is would show no more.
      const patch = {
        file: "dead-letters/internal/sweep.ts",
        text: "const heldLimit = 100_000",
        replacement: "const heldLimit = 20"
      }
      const patched: { readonly deadLetters: typeof deadLetters } = await import(
        /* @vite-ignore */ `@requeue/operations/promise?patch=${encodeURIComponent(JSON.stringify(patch))}`
      )
      await using broker = await open({ faults: { capabilities: { exactCounts } } })
      await fill(broker, 50)
      const letters = patched.deadLetters(broker.requeue, "q.dlq")
      const filter = (letter: DeadLetters.DeadLetter) => Number(idOf(letter)) % 50 === 5 || Number(idOf(letter)) > 40
      const report = await broker.finish(letters.redrive({ to: "q", create: true, filter }))
      assert.deepInclude(report, { redriven: 1, filtered: 20, queued: 49, stoppedBy: undefined })
      const error = await broker.finish(letters.purge({ filter }).catch((error: unknown) => error))
      assert.deepInclude(error, { _tag: "DeadLettersStopped", removed: 0 })
      assert.match(String((error as DeadLetters.DeadLettersStopped).cause), /: 29 letters were not browsed: /)
      assert.strictEqual(broker.now(), 0)
      assert.strictEqual((await idsIn(broker, "q.dlq")).length, 49)
    }
  )

  it("are not moved by a dry run, which browses 100,000 at most", async () => {
    // A tenth of the letters shows it as well.
    const patch = {
      file: "dead-letters/internal/reading.ts",
      text: "const limit = 100_000",
      replacement: "const limit = 10_000"
    }
    const patched: { readonly deadLetters: typeof deadLetters } = await import(
      /* @vite-ignore */ `@requeue/operations/promise?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    await using broker = await open()
    await fill(broker, 10_500)
    const letters = patched.deadLetters(broker.requeue, "q.dlq")
    const before = await idsIn(broker, "q.dlq")
    const [group, ...others] = await broker.finish(letters.group({ limit: 20_000 }))
    assert.deepStrictEqual([group?.count, others], [10_000, []])
    const filter = (letter: DeadLetters.DeadLetter) => Number(idOf(letter)) % 1000 === 999
    const found = await broker.finish(letters.list({ filter, limit: 3 }))
    assert.deepStrictEqual(
      found.map(({ id }) => id),
      ["999", "1999", "2999"]
    )
    const report = await broker.finish(letters.redrive({ to: "q", create: true, dryRun: true, filter }))
    assert.deepStrictEqual([report.redriven, report.filtered, report.queued], [10, 9990, 10_500])
    assert.strictEqual(await broker.finish(letters.purge({ all: true, dryRun: true })), 10_500)
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), before)
    assert.strictEqual(await inFlight(broker), 0)
  })
})

describe("an abort", () => {
  it("is heard while the rate is waited for, and a second call goes on", async () => {
    await using broker = await open()
    await fill(broker, 6)
    const letters = deadLetters(broker.requeue, "q.dlq")
    const stop = new AbortController()
    const redriving = letters.redrive({ to: "q", create: true, rate: 0.1, signal: stop.signal })
    await broker.advance("15 seconds")
    stop.abort()
    await turns()
    assert.strictEqual(await inFlight(broker), 0)
    const report = await broker.finish(redriving)
    assert.strictEqual(broker.now(), 15_000)
    assert.deepStrictEqual([report.redriven, report.queued], [2, 4])
    assert.strictEqual((await broker.finish(letters.redrive({ to: "q", create: true }))).redriven, 4)
    assert.deepStrictEqual(await idsIn(broker, "q"), numbers(6))
  })

  it("is heard before the broker answers at all, and in a publish that never ends", async () => {
    let hangs: "browse" | "publish" = "browse"
    await using broker = await open({}, (broker) => ({
      ...broker,
      admin: {
        ...broker.admin,
        browse: (options) => (hangs === "browse" ? Effect.never : broker.admin.browse(options))
      },
      publish: (messages) => (messages[0]!.queue === "q" ? Effect.never : broker.publish(messages))
    }))
    await fill(broker, 2)
    const letters = deadLetters(broker.requeue, "q.dlq")
    for (hangs of ["browse", "publish"] as const) {
      const stop = new AbortController()
      const redriving = letters.redrive({ to: "q", create: true, signal: stop.signal })
      await turns()
      stop.abort()
      const report = await broker.finish(redriving)
      assert.deepStrictEqual([report.redriven, report.unconfirmed, report.queued], [0, hangs === "publish" ? 2 : 0, 2])
      assert.deepStrictEqual(await idsIn(broker, "q.dlq"), ["0", "1"])
    }
  })

  it("keeps a purge of all from beginning", async () => {
    await using broker = await open()
    await fill(broker, 3)
    const letters = deadLetters(broker.requeue, "q.dlq")
    assert.strictEqual(await broker.finish(letters.purge({ all: true, signal: AbortSignal.abort() })), 0)
    assert.strictEqual((await idsIn(broker, "q.dlq")).length, 3)
  })

  it("is what an error of a filter is: nothing stays in flight", async () => {
    await using broker = await open()
    await fill(broker, 3)
    const filter = () => {
      throw new Error("a mistake in the filter")
    }
    const error = await broker.finish(
      deadLetters(broker.requeue, "q.dlq")
        .redrive({ to: "q", create: true, filter })
        .catch((thrown: unknown) => thrown)
    )
    assert.match(String(error), /a mistake in the filter/)
    assert.strictEqual(await inFlight(broker), 0)
    assert.deepStrictEqual(await idsIn(broker, "q.dlq"), numbers(3))
  })
})

describe("the end", () => {
  /** The broker shows its letters only after so many milliseconds. */
  const slow = (millis: number) =>
    browsing(({ next }) => {
      let isFirst = true
      return {
        next: (count) => {
          if (!isFirst) return next(count)
          isFirst = false
          return Effect.as(Effect.sleep(millis), [])
        }
      }
    })

  it("is not one second of silence, where the broker cannot count", async () => {
    const counts = { ready: false, inFlight: false, delayed: false }
    await using broker = await open({ faults: { capabilities: { counts } } }, slow(2500))
    await fill(broker, 5)
    const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true }))
    assert.deepStrictEqual([report.redriven, report.queued], [5, undefined])
  })

  it("is an error where letters have been counted and none comes", async () => {
    await using broker = await open(
      {},
      browsing(() => ({ next: () => Effect.succeed([]) }))
    )
    await fill(broker, 5)
    const error = await broker.finish(stopped(deadLetters(broker.requeue, "q.dlq").redrive({ to: "q", create: true })))
    assert.deepStrictEqual([error.cause.reason, error.report?.redriven, error.report?.queued], ["Timeout", 0, 5])
  })
})
