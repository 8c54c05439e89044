import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import type { SettleFailure, SettleRequest, Subscription } from "../../src/port/Broker.ts"
import { BrokerError } from "../../src/port/BrokerError.ts"
import type { Delivery } from "../../src/message/Delivery.ts"
import * as Settler from "../../src/consume/internal/settler.ts"
import * as Settlement from "../../src/message/Settlement.ts"
import * as Timers from "../../src/runtime/Timers.ts"
import * as Lifecycle from "../../src/consume/Lifecycle.ts"
import type { Group, Item } from "../../src/consume/internal/item.ts"
import { item, step } from "../items.ts"

const lost = (delivery: Delivery): SettleFailure => ({
  delivery,
  error: new BrokerError({ broker: "test", operation: "settle", reason: "LeaseLost", detail: "gone" }),
  fate: "lost"
})

const unanswered = (delivery: Delivery): SettleFailure => ({
  ...lost(delivery),
  error: new BrokerError({ broker: "test", operation: "extend", reason: "Throttled", detail: "slow down" }),
  fate: "transient"
})

interface Options {
  readonly batch?: number
  readonly wait?: number
  /** Milliseconds that a call of the broker takes. */
  readonly takes?: number
  readonly failing?: ReadonlyArray<string>
  readonly unanswered?: ReadonlyArray<string>
  readonly dies?: boolean
  readonly interrupts?: boolean
  readonly isStopping?: boolean
}

const start = Effect.fnUntraced(function* ({
  batch = 1,
  dies = false,
  failing = [],
  interrupts = false,
  isStopping = false,
  takes = 0,
  unanswered: throttled = [],
  wait = 0
}: Options) {
  const real = yield* Timers.make
  let timersSet = 0
  const timers: Timers.Timers = {
    ...real,
    after: (delay, run) => {
      timersSet++
      return real.after(delay, run)
    }
  }
  const fork = Effect.runForkWith(yield* Effect.context())
  const log: Array<string> = []
  let areKnown: boolean | undefined
  const answer = (deliveries: ReadonlyArray<Delivery>) =>
    Effect.as(
      interrupts
        ? Effect.interrupt
        : dies
          ? Effect.die(new Error("a bug"))
          : takes === 0
            ? Effect.void
            : Effect.sleep(takes),
      deliveries.flatMap((d) =>
        failing.includes(d.metadata.id) ? [lost(d)] : throttled.includes(d.metadata.id) ? [unanswered(d)] : []
      )
    )
  const subscription: Subscription = {
    credit: () => {},
    settle: (requests: ReadonlyArray<SettleRequest>) => {
      log.push(
        `settle ${requests.map(({ delivery, settlement }) => `${delivery.metadata.id}:${settlement._tag}`).join(" ")}`
      )
      return answer(requests.map(({ delivery }) => delivery))
    },
    extend: (deliveries) => {
      log.push(`extend ${deliveries.map(({ metadata }) => metadata.id).join(" ")}`)
      return answer(deliveries)
    },
    identify: () => undefined
  }
  const settler = Settler.make({
    broker: "test",
    outlet: { subscription },
    fork,
    timers,
    batch,
    wait,
    isStopping: () => isStopping,
    watch: undefined,
    onSettled: ({ key, settlement: { _tag } }) => log.push(`${key} ${_tag} settled`),
    onFailed: ({ key, settlement: { _tag } }, { error: { reason } }) => log.push(`${key} ${_tag} ${reason}`),
    onLeaseLost: ({ key }, { error: { reason } }) => log.push(`${key} ${reason}`),
    onSending: (items) => {
      for (const each of items) each.state = Lifecycle.quick.sent(each.state)
    },
    onAnswered: () => {},
    onExtended: (began) => (areKnown = began !== undefined)
  })
  return {
    areKnown: () => areKnown,
    settler,
    take: () => log.splice(0),
    timersSet: () => timersSet
  }
})

const { Ack } = Settlement

const decided = (one: Item, settlement: Settlement.Settlement): Item =>
  Object.assign(step(one, { _tag: "Concluded", settlement }), { settlement })

describe("settle", () => {
  it.effect(
    "an adapter that interrupts a settlement may have done it; a closing consumer has interrupted it itself",
    () =>
      Effect.gen(function* () {
        for (const isStopping of [false, true]) {
          const { settler, take } = yield* start({ interrupts: true, isStopping })
          settler.settle(decided(item("a"), Ack))
          settler.flush()
          yield* Effect.yieldNow
          assert.deepStrictEqual(take(), ["settle a:Ack", ...(isStopping ? [] : ["a Ack Timeout"])])
        }
      })
  )

  it.effect("an adapter that dies has settled nothing, and says so", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ dies: true })
      settler.settle(decided(item("a"), Ack))
      settler.flush()
      assert.deepStrictEqual(take(), ["settle a:Ack", "a Ack Unsupported"])
      assert.isTrue(settler.isIdle())
    })
  )

  it.effect("asks again for each message alone when the adapter dies of several", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ dies: true })
      settler.settle(decided(item("a"), Ack))
      settler.settle(decided(item("b"), Ack))
      settler.flush()
      assert.deepStrictEqual(take(), [
        "settle a:Ack b:Ack",
        "settle a:Ack",
        "a Ack Unsupported",
        "settle b:Ack",
        "b Ack Unsupported"
      ])
      assert.isTrue(settler.isIdle())
    })
  )

  it.effect("waits for the flush, and marks the item at once", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({})
      const a = item("a")
      settler.settle(decided(a, Ack))
      assert.deepStrictEqual([a.settlement, settler.isIdle(), take()], [Ack, false, []])
      settler.settle(decided(item("b"), Settlement.Retry(5)))
      settler.flush()
      assert.deepStrictEqual(take(), ["settle a:Ack b:Retry", "a Ack settled", "b Retry settled"])
      assert.isTrue(settler.isIdle())
      settler.flush()
      assert.deepStrictEqual(take(), [])
    })
  )

  it.effect("gathers up to a batch of the broker's", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ batch: 2 })
      for (const name of ["a", "b", "c"]) settler.settle(decided(item(name), Ack))
      assert.deepStrictEqual(take(), ["settle a:Ack b:Ack", "a Ack settled", "b Ack settled"])
    })
  )

  it.effect("sets no timer for a batch that is full by the end of the job, and one for the rest", () =>
    Effect.gen(function* () {
      const { settler, take, timersSet } = yield* start({ batch: 2, wait: 5 })
      for (const name of ["a", "b", "c", "d"]) settler.settle(decided(item(name), Ack))
      yield* TestClock.adjust(1)
      assert.strictEqual(timersSet(), 0)
      for (const name of ["e", "f", "g"]) settler.settle(decided(item(name), Ack))
      yield* TestClock.adjust(1)
      assert.strictEqual(timersSet(), 1)
      take()
      yield* TestClock.adjust(5)
      assert.deepStrictEqual(take().slice(0, 1), ["settle g:Ack"])
      assert.isTrue(settler.isIdle())
    })
  )

  it.effect("gathers for as long as the broker's batches may wait, from the first", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ batch: 10, wait: 5 })
      settler.settle(decided(item("a"), Ack))
      yield* TestClock.adjust(3)
      settler.settle(decided(item("b"), Ack))
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(take(), [])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(take().slice(0, 1), ["settle a:Ack b:Ack"])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(take(), [])
    })
  )

  it.effect("tells what failed apart from what did not", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ failing: ["b"] })
      for (const name of ["a", "b", "c"]) settler.settle(decided(item(name), Ack))
      settler.flush()
      assert.deepStrictEqual(take().slice(1), ["a Ack settled", "b Ack LeaseLost", "c Ack settled"])
    })
  )

  it.effect("is not idle while the broker is at it", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ takes: 50 })
      settler.settle(decided(item("a"), Ack))
      settler.flush()
      assert.deepStrictEqual([settler.isIdle(), take()], [false, ["settle a:Ack"]])
      yield* TestClock.adjust(50)
      assert.deepStrictEqual([settler.isIdle(), take()], [true, ["a Ack settled"]])
    })
  )
})

describe("extend", () => {
  it.effect("leaves out what is being settled, and calls nobody for nothing", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({})
      const [a, b] = [item("a"), item("b")]
      settler.settle(decided(a, Ack))
      settler.extend([a])
      assert.deepStrictEqual(take(), [])
      settler.extend([a, b])
      assert.deepStrictEqual(take().slice(0, 1), ["extend b"])
    })
  )

  it.effect("never races a settlement: that waits for its end", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ takes: 50 })
      const a = item("a")
      settler.extend([a])
      settler.settle(decided(a, Ack))
      settler.flush()
      settler.extend([item("b")])
      assert.deepStrictEqual([settler.isIdle(), take()], [false, ["extend a"]])
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(take(), ["settle a:Ack"])
      yield* TestClock.adjust(50)
      assert.deepStrictEqual([settler.isIdle(), take()], [true, ["a Ack settled"]])
    })
  )

  it.effect("holds up no settlement of another delivery", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ takes: 50 })
      const [a, b] = [item("a"), item("b")]
      settler.extend([a])
      settler.settle(decided(a, Ack))
      settler.settle(decided(b, Ack))
      settler.flush()
      assert.deepStrictEqual(take(), ["extend a", "settle b:Ack"])
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(take(), ["settle a:Ack", "b Ack settled"])
    })
  )

  it.effect("holds up the settlements of later messages of its group", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ takes: 50 })
      const group: Group = { name: "g", out: new Set(), behind: [], following: new Set(), isClosed: true }
      const [a, b, other] = [Object.assign(item("a"), { group }), Object.assign(item("b"), { group }), item("other")]
      settler.extend([a])
      for (const each of [a, b, other]) settler.settle(decided(each, Ack))
      settler.flush()
      assert.deepStrictEqual(take(), ["extend a", "settle other:Ack"])
      yield* TestClock.adjust(50)
      assert.deepStrictEqual(take(), ["settle a:Ack b:Ack", "other Ack settled"])
    })
  )

  it.effect.each([
    { when: "all are extended", options: {}, areKnown: true },
    { when: "one is lost", options: { failing: ["a"] }, areKnown: true },
    { when: "no answer came", options: { unanswered: ["a", "b", "running"] }, areKnown: false },
    { when: "no answer came for one that waits", options: { unanswered: ["a"] }, areKnown: false },
    { when: "no answer came for one that a handler has", options: { unanswered: ["running"] }, areKnown: true },
    {
      when: "one is lost, and no answer came for another",
      options: { unanswered: ["b"], failing: ["a"] },
      areKnown: false
    }
  ])("if $when, it is known which waiting messages are leased: $areKnown", ({ areKnown, options }) =>
    Effect.gen(function* () {
      const { areKnown: answer, settler } = yield* start(options)
      settler.extend([item("a"), item("b"), step(item("running"), { _tag: "Started" })])
      assert.strictEqual(answer(), areKnown)
    })
  )

  it.effect("reports lost leases, and not those that may last", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ failing: ["b"], unanswered: ["a"] })
      settler.extend([item("a"), item("b")])
      assert.deepStrictEqual(take(), ["extend a b", "b LeaseLost"])
    })
  )

  it.effect("a redelivery that has taken the place of a lost one leaves the others as lost as they are", () =>
    Effect.gen(function* () {
      const { settler, take } = yield* start({ takes: 10, failing: ["a", "b"] })
      const [a, b] = [item("a"), item("b")]
      settler.extend([a, b])
      a.delivery = { ...a.delivery }
      yield* TestClock.adjust(10)
      assert.deepStrictEqual(take(), ["extend a b", "b LeaseLost"])
    })
  )
})
