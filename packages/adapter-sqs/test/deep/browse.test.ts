/** Browsers: what they show, hold, remove and return, on standard and FIFO queues. */
import { type Broker, BrokerError, RetryPolicy } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import type { StrictSqs } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { movedWith } from "../real/clock.ts"
import { drain, has, idOf, ids, left, on, outgoing, queueName, until, urlOf } from "../real/world.ts"
import { strict } from "./strict.ts"

const { another, behind } = await strict()

const idsOf = (page: ReadonlyArray<Broker.BrowsedMessage>) => page.map(({ delivery }) => delivery.metadata.id)
const deliveriesOf = (page: ReadonlyArray<Broker.BrowsedMessage>) => page.map(({ delivery }) => delivery)
const told = (failures: ReadonlyArray<Broker.SettleFailure>) =>
  failures.map(({ delivery, error, fate }) => `${delivery.metadata.id} ${fate} ${error.reason}`)

/** All that a browser shows until it shows nothing. */
const all = ({ next }: Broker.Browser, count = 100) =>
  Effect.gen(function* () {
    const found: Array<Broker.BrowsedMessage> = []
    for (let page = yield* next(count); page.length > 0; page = yield* next(count)) {
      assert.isAtMost(page.length, count)
      found.push(...page)
    }
    return found
  })

interface World {
  readonly broker: Broker.Service
  readonly own: StrictSqs
  readonly queue: string
  /** Moves the clocks of the adapter and of the server. */
  readonly forward: (milliseconds: number) => Effect.Effect<void>
  readonly browse: (
    limit?: number,
    from?: Broker.BrowseOptions["from"]
  ) => Effect.Effect<Broker.Browser, BrokerError.BrokerError, Scope.Scope>
  /** Whether the server counts these as ready and in flight. */
  readonly counted: (ready: number, inFlight: number) => Effect.Effect<void, unknown>
}

interface Given {
  readonly fifo?: boolean
  readonly messages?: ReadonlyArray<string>
  /** The group of a message. Default: its own id. */
  readonly groupOf?: (id: string) => string
  readonly proxy?: Parameters<typeof another>[0]
  readonly requestTimeout?: number
}

/** Runs a program on a queue with these messages, behind a proxy of its own. */
const withQueue = async <E>(
  { fifo = false, groupOf = (id) => id, messages = ids(5), proxy = {}, ...options }: Given,
  program: (world: World) => Effect.Effect<unknown, E, Scope.Scope>
) => {
  await using own = await another(proxy)
  const clock = movedWith(own)
  const queue = `${queueName("browse")}${fifo ? ".fifo" : ""}`
  await on(
    { url: own.url, visibilityTimeout: 60_000, ...options },
    (broker) =>
      Effect.gen(function* () {
        // One by one, because a FIFO queue has the order in which they come.
        for (const [at, id] of messages.entries()) {
          const headers: Record<string, string> = fifo ? { "message-group-id": groupOf(id) } : {}
          yield* broker.publish([outgoing(queue, id, { headers, now: clock.now() + at })])
        }
        yield* program({
          broker,
          own,
          queue,
          forward: (milliseconds) => Effect.promise(() => clock.forward(milliseconds)),
          browse: (limit = 1000, from = "ready") =>
            broker.admin.browse({ queue, from, limit, retry: RetryPolicy.make() }),
          counted: (ready, inFlight) =>
            until(`${ready} ready, ${inFlight} in flight`, () => has(behind, queue, ready, inFlight, 0))
        })
      }),
    clock.run
  )
}

const kinds = [
  ["a standard queue", false],
  ["a FIFO queue", true]
] as const

describe.concurrent.each(kinds)("of %s, a browser", (_, fifo) => {
  test("shows each message once, removes every second of them, and returns the others at its end", () =>
    withQueue({ fifo, messages: ids(45) }, ({ browse, counted, queue }) =>
      Effect.gen(function* () {
        const shown = yield* Effect.scoped(
          Effect.gen(function* () {
            const browser = yield* browse()
            const found: Array<string> = []
            for (let page = yield* browser.next(20); page.length > 0; page = yield* browser.next(20)) {
              assert.isAtMost(page.length, 20)
              const odd = deliveriesOf(page).filter(({ metadata }) => Number(metadata.id.replace(/\D/g, "")) % 2 === 1)
              assert.deepStrictEqual(yield* browser.remove(odd), [])
              assert.deepStrictEqual(
                told(yield* browser.remove(odd)),
                odd.map(({ metadata }) => `${metadata.id} lost LeaseLost`)
              )
              found.push(...idsOf(page))
            }
            assert.deepStrictEqual(browser.browsed(), { isWhole: true, hidden: 0 })
            return found
          })
        )
        assert.deepStrictEqual(shown.toSorted(), ids(45).toSorted())
        const rest = ids(45).filter((id) => Number(id.replace(/\D/g, "")) % 2 === 0)
        yield* counted(rest.length, 0)
        const found = yield* Effect.promise(() => drain(behind, queue))
        assert.deepStrictEqual(found.map(idOf).toSorted(), rest.toSorted())
      })
    ))

  test("holds no more than its limit, and is not whole then; what is removed makes room", () =>
    withQueue({ fifo }, ({ browse, counted }) =>
      Effect.gen(function* () {
        const browser = yield* browse(3)
        const first = yield* all(browser)
        yield* counted(2, 3)
        assert.isFalse(browser.browsed().isWhole)
        assert.deepStrictEqual(yield* browser.remove(deliveriesOf(first)), [])
        const others = yield* all(browser)
        assert.deepStrictEqual([...idsOf(first), ...idsOf(others)].toSorted(), ids(5).toSorted())
        assert.deepStrictEqual(browser.browsed(), { isWhole: true, hidden: 0 })
      })
    ))

  test("repeats a removal that gets no answer", () =>
    withQueue({ fifo }, ({ browse, counted, own }) =>
      Effect.gen(function* () {
        const browser = yield* browse()
        const shown = deliveriesOf(yield* all(browser))
        own.lose({ action: "DeleteMessageBatch", times: 1 }, "reset")
        assert.deepStrictEqual(yield* browser.remove(shown), [])
        yield* counted(0, 0)
      })
    ))

  test("does not know whether messages are removed while SQS never answers, and removes them when it does", () =>
    withQueue({ fifo, messages: ids(2), requestTimeout: 1000 }, ({ browse, counted, own }) =>
      Effect.gen(function* () {
        const browser = yield* browse()
        const shown = deliveriesOf(yield* all(browser))
        own.ignore({ action: "DeleteMessageBatch", times: 500 })
        const failed = told(yield* browser.remove(shown))
        assert.deepStrictEqual(
          failed.toSorted(),
          ids(2)
            .map((id) => `${id} unknown Timeout`)
            .toSorted()
        )
        own.clear()
        assert.deepStrictEqual(yield* browser.remove(shown), [])
        yield* counted(0, 0)
      })
    ))

  test("keeps what SQS refuses to delete, and returns it at its end", () =>
    withQueue({ fifo, messages: ids(2) }, ({ browse, counted, own }) =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const browser = yield* browse()
            const shown = deliveriesOf(yield* all(browser))
            own.deny(["DeleteMessage"])
            const failed = told(yield* browser.remove(shown))
            assert.deepStrictEqual(
              failed.toSorted(),
              ids(2)
                .map((id) => `${id} rejected AccessRefused`)
                .toSorted()
            )
            yield* counted(0, 2)
          })
        )
        yield* counted(2, 0)
      })
    ))

  test("shows what a call that was interrupted has received", () =>
    withQueue({ fifo, messages: ids(3) }, ({ browse, counted, own }) =>
      Effect.gen(function* () {
        // The receive that was interrupted has all that may be held.
        const browser = yield* browse(10)
        const held = own.hold({ action: "ReceiveMessage", times: 1 })
        const receives = () => own.calls()["ReceiveMessage"] ?? 0
        const before = receives()
        const asking = yield* Effect.forkChild(browser.next(10), { startImmediately: true })
        yield* until("its receive", () => receives() > before)
        yield* Fiber.interrupt(asking)
        const other = yield* Effect.forkChild(browser.next(10), { startImmediately: true })
        held.release()
        assert.deepStrictEqual(idsOf(yield* Fiber.join(other)).toSorted(), ids(3).toSorted())
        yield* counted(0, 3)
      })
    ))

  test("fails when its queue is deleted, and shows nothing of one that was missing before", () =>
    withQueue({ fifo, messages: ids(1) }, ({ browse, broker, queue }) =>
      Effect.gen(function* () {
        const browser = yield* browse()
        yield* all(browser)
        const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue))
        yield* Effect.promise(() => behind.deleteQueue({ QueueUrl }))
        assert.strictEqual((yield* Effect.flip(browser.next(10))).reason, "QueueMissing")
        const name = `${queueName("never")}${fifo ? ".fifo" : ""}`
        const retry = RetryPolicy.make()
        for (const missing of [queue, name]) {
          const other = yield* broker.admin.browse({ queue: missing, from: "ready", limit: 10, retry })
          assert.deepStrictEqual(yield* other.next(10), [])
        }
        assert.isTrue((yield* broker.admin.counts(name)).isMissing)
      })
    ))

  test("shows no delayed messages", () =>
    withQueue({ fifo, messages: [] }, ({ browse }) =>
      Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(browse(10, "delayed"))).reason, "Unsupported")
      })
    ))

  test("has messages whose copies keep the types of their attributes", () =>
    withQueue({ fifo, messages: [] }, ({ browse, broker, queue }) =>
      Effect.gen(function* () {
        yield* broker.publish([outgoing(queue, "first", { headers: { "message-group-id": "a" } })])
        const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue))
        const total = { DataType: "Number.euro", StringValue: "9.50" }
        const fields = fifo ? { MessageGroupId: "b", MessageDeduplicationId: "b" } : {}
        yield* Effect.promise(() =>
          behind.sendMessage({ QueueUrl, MessageBody: "1", MessageAttributes: { total }, ...fields })
        )
        const browser = yield* browse()
        const found = deliveriesOf(yield* all(browser)).find(({ headers }) => headers["total"] !== undefined)!
        assert.strictEqual(found.group, fifo ? "b" : undefined)
        const target = `${queueName("copy")}${fifo ? ".fifo" : ""}`
        yield* broker.publish([
          { ...outgoing(target, found.metadata.id, { headers: found.headers }), body: found.body }
        ])
        const [copy] = yield* Effect.promise(() => drain(behind, target))
        assert.deepStrictEqual(copy?.MessageAttributes?.["total"], total)
        assert.strictEqual(Metadata.decode(copy?.MessageAttributes?.[Metadata.header]?.StringValue ?? "")?.attempts, 0)
      })
    ))
})

test.concurrent("a browser of a standard queue shows a message once that SQS delivers twice, and removes it", () =>
  withQueue({ messages: ids(3) }, ({ browse, counted, own }) =>
    Effect.gen(function* () {
      const browser = yield* browse()
      own.duplicate(3)
      const shown = yield* all(browser)
      assert.deepStrictEqual(idsOf(shown).toSorted(), ids(3).toSorted())
      assert.deepStrictEqual(yield* browser.remove(deliveriesOf(shown)), [])
      yield* counted(0, 0)
    })
  ))

test.concurrent("a browser of a standard queue is not whole where SQS delivers no more in flight, and goes on when there is room", () =>
  withQueue({ messages: ids(30), proxy: { inFlight: 20 } }, ({ browse, counted }) =>
    Effect.gen(function* () {
      const browser = yield* browse()
      // One receive at a time: the quota of the proxy counts only what was answered.
      const first = yield* all(browser, 10)
      assert.deepStrictEqual([first.length, browser.browsed().isWhole], [20, false])
      assert.deepStrictEqual(yield* browser.remove(deliveriesOf(first)), [])
      const others = yield* all(browser)
      assert.deepStrictEqual([others.length, browser.browsed().isWhole], [10, true])
      assert.deepStrictEqual(yield* browser.remove(deliveriesOf(others)), [])
      yield* counted(0, 0)
    })
  ))

test.concurrent("a browser of a FIFO queue keeps the order of each group, says what it hides, and shows that when there is room", () => {
  const messages = ids(30)
  return withQueue({ fifo: true, messages, groupOf: (id) => `g${messages.indexOf(id) % 2}` }, ({ browse, counted }) =>
    Effect.gen(function* () {
      const browser = yield* browse()
      const shown = new Map<string | undefined, Array<string>>()
      let hidden: number | undefined
      let count = 0
      for (let page = yield* all(browser); page.length > 0; page = yield* all(browser)) {
        count += page.length
        hidden = browser.browsed().hidden
        assert.deepStrictEqual(browser.browsed(), { isWhole: count === 30, hidden: 30 - count })
        for (const { group, metadata } of deliveriesOf(page))
          shown.set(group, [...(shown.get(group) ?? []), metadata.id])
        assert.deepStrictEqual(yield* browser.remove(deliveriesOf(page)), [])
      }
      assert.strictEqual(hidden, 0)
      for (const parity of [0, 1])
        assert.deepStrictEqual(
          shown.get(`g${parity}`),
          messages.filter((_, at) => at % 2 === parity)
        )
      yield* counted(0, 0)
    })
  )
})

// Not beside others: all proxies share the clock of one server.
describe.each(kinds)("while time passes, a browser of %s", (_, fifo) => {
  test("holds messages for as long as SQS lets it, and shows them again when their twelve hours are over", () =>
    withQueue({ fifo }, ({ browse, counted, forward, own }) =>
      Effect.gen(function* () {
        const browser = yield* browse()
        const shown = yield* all(browser)
        const extensions = () => own.calls()["ChangeMessageVisibilityBatch"] ?? 0
        for (let minute = 0; minute < 3; minute++) {
          const before = extensions()
          yield* forward(30_000)
          yield* until("an extension", () => extensions() > before)
          yield* counted(0, 5)
        }
        yield* forward(43_200_000)
        assert.strictEqual((yield* Effect.flip(browser.next(100))).reason, "LeaseLost")
        const again = yield* all(browser)
        assert.deepStrictEqual(idsOf(again).toSorted(), idsOf(shown).toSorted())
        const names = (page: ReadonlyArray<Broker.BrowsedMessage>) => new Set(deliveriesOf(page).map(browser.identify))
        assert.deepStrictEqual(names(again), names(shown))
        assert.deepStrictEqual(yield* browser.remove(deliveriesOf(again)), [])
        yield* counted(0, 0)
      })
    ))

  test("removes nothing by a handle that has expired: its fate is gone, and the message is shown again", () =>
    withQueue({ fifo }, ({ browse, counted, forward, own }) =>
      Effect.gen(function* () {
        const browser = yield* browse()
        const shown = yield* all(browser)
        own.deny(["ChangeMessageVisibility"])
        yield* forward(61_000)
        const deletes = own.calls()["DeleteMessageBatch"]
        const [first, ...others] = deliveriesOf(shown)
        assert.deepStrictEqual(told(yield* browser.remove([first!])), [`${first!.metadata.id} lost LeaseLost`])
        assert.strictEqual(own.calls()["DeleteMessageBatch"], deletes)
        own.clear()
        own.deny([])
        assert.strictEqual((yield* Effect.flip(browser.next(100))).reason, "LeaseLost")
        assert.strictEqual(told(yield* browser.remove(others)).length, others.length)
        const again = yield* all(browser)
        assert.deepStrictEqual(idsOf(again).toSorted(), ids(5).toSorted())
        assert.deepStrictEqual(yield* browser.remove(deliveriesOf(again)), [])
        yield* counted(0, 0)
      })
    ))
})

test("a browser is not whole after a receive whose answer was lost, until what that took is shown", () =>
  withQueue({ messages: ids(3) }, ({ browse, forward, own, queue }) =>
    Effect.gen(function* () {
      const browser = yield* browse()
      own.lose({ action: "ReceiveMessage", times: 3 }, "reset")
      const error = yield* Effect.flip(browser.next(10))
      assert.isTrue(BrokerError.isDoubtful(error), error.message)
      own.clear()
      assert.deepStrictEqual(idsOf(yield* all(browser)), [])
      assert.isFalse(browser.browsed().isWhole)
      yield* forward(62_000)
      assert.deepStrictEqual(idsOf(yield* all(browser)).toSorted(), ids(3).toSorted())
      assert.isTrue(browser.browsed().isWhole)
      assert.strictEqual(yield* Effect.promise(() => left(behind, queue)), 3)
    })
  ))
