/** Redrives in stages where queues share the places of their delays, and counts are those of a while ago, as on RabbitMQ. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { Backoff, type Broker, BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

/** The places of the delays, which other queues use as well. */
interface Places {
  /** Messages of others. */
  others: number
  /** Whether a browser shows all of them; `refused` where the user may not browse, `undefined` where the broker cannot. */
  isSeen: boolean | "refused" | undefined
  /** Whether anybody knows what is there. */
  isKnown: boolean
  browsers: number
}

const refused = new BrokerError.BrokerError({
  broker: "memory",
  operation: "delayed",
  queue: "q",
  reason: "AccessRefused",
  detail: "no permission to read"
})

const shared = async (places: Places): Promise<VirtualBroker> =>
  open({ faults: { capabilities: { exactCounts: false } } }, (broker) => {
    const { browse, counts, ...admin } = broker.admin
    const delayed: Broker.Admin["browse"] = (options) => {
      if (options.from === "ready") return browse(options)
      places.browsers++
      if (places.isSeen === "refused") return Effect.fail(refused)
      return Effect.map(browse(options), (browser) => ({
        ...browser,
        browsed: () => ({ isWhole: places.isSeen === true, hidden: 0 })
      }))
    }
    return {
      ...broker,
      capabilities: { ...broker.capabilities, delayedMessages: places.isSeen !== undefined },
      admin: {
        ...admin,
        counts: (queue) => Effect.map(counts(queue), (all) => ({ ...all, delayed: undefined })),
        delayedAtMost: (queue) =>
          Effect.map(counts(queue), ({ delayed = 0 }) => (places.isKnown ? delayed + places.others : undefined)),
        browse: delayed
      }
    }
  })

const make = (places: Partial<Places>): Places => ({ others: 0, isSeen: true, isKnown: true, browsers: 0, ...places })

const bury = async (broker: VirtualBroker, count: number) => {
  const worker = await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("no")))
  await broker.requeue.sendBatch(
    "q",
    Array.from({ length: count }, (_, body) => ({ body, id: `${body}` }))
  )
  await turns(200)
  await broker.finish(worker.drain())
  return deadLetters(broker.requeue, "q.dlq")
}

/** A consumer whose retries wait for so long. */
const work = (
  broker: VirtualBroker,
  fails: (body: number, attempts: number) => boolean,
  delay: "1 minute" | "5 minutes"
) =>
  broker.requeue.consume<number>(
    "q",
    { retry: { maxRetries: 1, backoff: Backoff.constant(delay) }, concurrency: 100 },
    ({ attempts, body }) => (fails(body, attempts) ? Promise.reject(new Error("still down")) : undefined)
  )

describe("a redrive in stages, where queues share their delays,", () => {
  it("browses what is delayed, and goes on where none of it is its own", async () => {
    const places = make({ others: 3 })
    await using broker = await shared(places)
    const letters = await bury(broker, 30)
    await work(broker, () => false, "1 minute")
    const before = broker.now()
    const report = await broker.finish(letters.redrive({ stages: [1, 10], wait: "1 hour" }))
    assert.deepInclude(report, { published: 30, succeeded: 30, cameBack: 0, waiting: 0, stoppedBy: undefined })
    // Ten seconds for each of three stages, and a browser every five.
    assert.isBelow(broker.now() - before, 40_000)
    assert.isAtMost(places.browsers, 9)
  })

  it("browses nothing where nothing is delayed", async () => {
    const places = make({})
    await using broker = await shared(places)
    const letters = await bury(broker, 30)
    await work(broker, () => false, "1 minute")
    assert.deepInclude(await broker.finish(letters.redrive({ stages: [1] })), { succeeded: 30, waiting: 0 })
    assert.strictEqual(places.browsers, 0)
  })

  it("that is aborted before counts of 0 can be believed reports what may wait at most", async () => {
    await using broker = await shared(make({}))
    const letters = await bury(broker, 1)
    const stop = new AbortController()
    await work(broker, () => false, "1 minute")
    const redriving = letters.redrive({ stages: [1], signal: stop.signal })
    await broker.advance(3000)
    stop.abort()
    const report = await broker.finish(redriving)
    assert.deepInclude(report, { published: 1, succeeded: 0, cameBack: 0, waiting: 1, stoppedBy: "abort" })
  })

  it.each([true, false, undefined])(
    "takes no letter that waits for its retry for done (browser: %s)",
    async (isSeen) => {
      await using broker = await shared(make({ isSeen }))
      const letters = await bury(broker, 1)
      await work(broker, () => true, "5 minutes")
      const report = await broker.finish(letters.redrive({ stages: [1], wait: "1 minute" }))
      assert.deepInclude(report, { published: 1, succeeded: 0, cameBack: 0, waiting: 1 })
    }
  )

  it("waits for a retry as for all others", async () => {
    await using broker = await shared(make({ others: 3 }))
    const letters = await bury(broker, 4)
    await work(broker, (body, attempts) => body === 0 || attempts === 1, "1 minute")
    const report = await broker.finish(letters.redrive({ stages: [4], stopAt: 1, wait: "1 hour" }))
    assert.deepInclude(report, { published: 4, succeeded: 3, cameBack: 1, waiting: 0, stoppedBy: undefined })
    assert.isBelow(broker.now(), 120_000)
  })

  it.each([false, "refused", undefined] as const)(
    "tells the least that has succeeded where no browser tells (browser: %s)",
    async (isSeen) => {
      const places = make({ others: 3, isSeen })
      await using broker = await shared(places)
      const letters = await bury(broker, 30)
      await work(broker, () => false, "1 minute")
      const report = await broker.finish(letters.redrive({ stages: [2], wait: "30 seconds" }))
      // It did not stop, though something waits and does not leave.
      assert.deepInclude(report, { published: 30, succeeded: 27, cameBack: 0, waiting: 3, stoppedBy: undefined })
    }
  )

  it("passes over what others have sent to the same queue for later", async () => {
    await using broker = await shared(make({}))
    const letters = await bury(broker, 5)
    await work(broker, () => false, "1 minute")
    await broker.requeue.send("q", -1, { delay: "2 hours" })
    const report = await broker.finish(letters.redrive({ stages: [2], wait: "1 hour" }))
    assert.deepInclude(report, { published: 5, succeeded: 5, waiting: 0 })
    assert.isBelow(broker.now(), 60_000)
  })

  it("stops where nobody works", async () => {
    await using broker = await shared(make({ others: 3 }))
    const letters = await bury(broker, 30)
    const report = await broker.finish(letters.redrive({ stages: [2], wait: "30 seconds" }))
    assert.deepInclude(report, { published: 2, succeeded: 0, waiting: 2, stoppedBy: "wait" })
  })

  it("does not know where nobody counts, and knows again later", async () => {
    const places = make({ isKnown: false })
    await using broker = await shared(places)
    const letters = await bury(broker, 2)
    await work(broker, () => false, "1 minute")
    const unknown = await broker.finish(letters.redrive({ limit: 1, stages: [1], wait: "30 seconds" }))
    assert.deepInclude(unknown, { published: 1, succeeded: undefined, waiting: undefined, stoppedBy: undefined })
    const redriving = letters.redrive({ stages: [1], wait: "30 seconds" })
    await broker.advance("15 seconds")
    places.isKnown = true
    assert.deepInclude(await broker.finish(redriving), { published: 1, succeeded: 1, waiting: 0 })
  })

  it.each([
    ["5 seconds", undefined, undefined],
    ["15 seconds", 1, 0]
  ] as const)(
    "reports after a wait of %s that %s have succeeded: counts are those of a while ago",
    async (wait, succeeded, waiting) => {
      await using broker = await shared(make({}))
      const letters = await bury(broker, 1)
      await work(broker, () => false, "1 minute")
      const report = await broker.finish(letters.redrive({ stages: [1], wait }))
      assert.deepInclude(report, { published: 1, succeeded, waiting, stoppedBy: undefined })
    }
  )

  it("removes the original of an edited letter when no delay holds its copy", async () => {
    await using broker = await shared(make({ others: 3 }))
    const letters = await bury(broker, 1)
    const [letter] = await broker.finish(letters.list())
    await work(broker, (_, attempts) => attempts === 1, "1 minute")
    const kept = await broker.finish(letters.edit(letter!, { headers: {}, wait: "30 seconds" }))
    assert.deepInclude(kept, { outcome: "waiting", isRemoved: false })
    await broker.advance("1 minute")
    const removed = await broker.finish(letters.edit(letter!, { headers: {}, wait: "1 hour" }))
    assert.deepInclude(removed, { outcome: "succeeded", isRemoved: true })
    assert.strictEqual(await broker.finish(letters.count()), 0)
  })
})

it("does not take the letters of a queue that was deleted for done", async () => {
  await using broker = await open({}, (broker) => ({
    ...broker,
    admin: {
      ...broker.admin,
      counts: (queue) =>
        Effect.map(broker.admin.counts(queue), (counts) =>
          queue === "q" ? { ready: 0, inFlight: 0, delayed: 0, isMissing: true } : counts
        )
    }
  }))
  const letters = await bury(broker, 1)
  const report = await broker.finish(letters.redrive({ stages: [1], wait: "30 seconds", create: true }))
  assert.deepInclude(report, { published: 1, succeeded: undefined, waiting: undefined })
})
