/** The fate of each settlement that fails: table by table, without nsqd. */
import { assert, describe, it } from "@effect/vitest"
import { type Broker, BrokerError, Delivery } from "@requeue/core"
import { Deadlines, Metadata, Settlement, Timers } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import * as NsqdClock from "../src/internal/connect/nsqdClock.ts"
import type { Connection } from "../src/internal/driver.ts"
import * as Credit from "../src/internal/consume/credit.ts"
import { receiptOf } from "../src/internal/consume/receipt.ts"
import * as Session from "../src/internal/consume/session.ts"
import * as Settle from "../src/internal/settle/settle.ts"
import { toCommand } from "../src/internal/settle/toCommand.ts"
import { timedOut, toBrokerError } from "../src/internal/toBrokerError.ts"

const lease = 1000
const identity = { version: "1.3.0", maxRdyCount: 2500, msgTimeout: lease, maxMsgTimeout: 2500, notes: [] }
const node = { name: "h:4150", address: { host: "h", port: 4150, http: undefined }, clock: NsqdClock.make() }
const topic = { topic: "orders", channel: "requeue", isOwn: false }

/** A message's frame as nsqd sends it. */
const payload = (id: string): Buffer => {
  const bytes = Buffer.alloc(27)
  bytes.writeUInt16BE(1, 8)
  bytes.write(id.padEnd(16, "0"), 10)
  return bytes
}

type Publish = Parameters<typeof Settle.make>[0]["publish"]

/** A session whose commands are written down, and the settlement of its deliveries. */
const open = (publish: Publish) =>
  Effect.gen(function* () {
    const timers = yield* Timers.make
    const written: Array<string> = []
    const received: Array<Delivery.Delivery> = []
    const finished = new Set<string>()
    let isWriting = true
    const connection: Connection = {
      clientId: "ours",
      identity,
      isOpen: () => true,
      heard: () => 0,
      write: (commands, done) => {
        if (!isWriting) return done(new Error("gone"))
        written.push(...commands.trim().split("\n"))
        done(null)
      },
      stop: () => Promise.resolve(),
      end: () => {},
      destroy: () => {}
    }
    const session = Session.make({
      node,
      topic,
      connection,
      gone: Deferred.makeUnsafe(),
      elapsed: timers.now,
      sessions: new Set(),
      decode: ({ attempts, body }) => ({
        body,
        headers: {},
        attempts,
        metadata: Metadata.make("m", 0),
        nonce: undefined
      }),
      isFinished: (name) => finished.has(name),
      onDelivery: (delivery) => void received.push(delivery)
    })
    const credit = Credit.make(timers.now)
    session.begin(credit)
    const run = Effect.runForkWith(yield* Effect.context())
    const { extend, settle } = Settle.make({
      queue: "orders",
      fork: (effect) => void run(effect),
      deadlines: Deadlines.make(timers, 5000),
      command: (delivery, settlement) =>
        toCommand(delivery, settlement, () => ({
          queue: "orders",
          retry: "exact",
          cap: 60_000,
          deliveries: 1,
          isFinished: false,
          now: 0
        })),
      publish,
      finished: ({ delivery }) => void finished.add(receiptOf(delivery).name),
      requeued: () => {}
    })
    const deliver = (id: string): Delivery.Delivery => {
      session.receive(payload(id))
      return received.at(-1)!
    }
    return {
      session,
      credit,
      extend,
      settle: (...requests: ReadonlyArray<readonly [Delivery.Delivery, Settlement.Settlement]>) =>
        Effect.map(settle(requests.map(([delivery, settlement]) => ({ delivery, settlement }))), (failures) =>
          failures.map(({ delivery, error, fate }) => `${receiptOf(delivery).id[0]} ${fate} ${error.reason}`)
        ),
      deliver,
      lose: () => void (isWriting = false),
      /** The commands that were written since the last call. */
      written: () => written.splice(0),
      /** Nothing counts against the credit: else it would exceed a credit of 1, and RDY would stay 0. */
      isWhole: () => {
        credit.set(0)
        credit.set(1)
        assert.strictEqual(written.at(-1), "RDY 1")
      }
    }
  })

const stored: Publish = () => Effect.void

const letter = Settlement.DeadLetter("permanent", "orders.dlq", { name: "E", message: "no" })

const context = { operation: "publish", queue: "orders.dlq", node: "h:4150" }
const fails = (text: string) => () => Effect.fail(toBrokerError(new Error(text), context))

describe("a dead letter whose publish fails", () => {
  it.effect.each<[name: string, publish: Publish, fate: Broker.Fate, reason: BrokerError.Reason]>([
    ["its topic's name is bad", fails('E_BAD_TOPIC PUB topic name "!" is not valid'), "rejected", "Unsupported"],
    ["it is too large", fails("E_BAD_MESSAGE PUB message too big 2 > 1"), "rejected", "BodyTooLarge"],
    ["it is forbidden", fails("E_UNAUTHORIZED AUTH failed for PUB"), "rejected", "AccessRefused"],
    ["nsqd cannot store it", fails("E_PUB_FAILED PUB failed disk full"), "transient", "Throttled"],
    ["no nsqd is up", fails("connect ECONNREFUSED 127.0.0.1:1"), "transient", "ConnectionFailed"],
    ["the connection is lost", fails("socket hang up"), "unknown", "ConnectionLost"],
    ["nobody answers", () => Effect.fail(timedOut(context, 5)), "unknown", "Timeout"],
    ["no copy of it can be made", () => Effect.die(Object.create(null)), "rejected", "Unsupported"],
    [
      "making its copy throws",
      () => {
        throw new TypeError("detached")
      },
      "rejected",
      "Unsupported"
    ]
  ])("because %s: it is still held, and its neighbours are settled", ([, publish, fate, reason]) =>
    Effect.gen(function* () {
      const { credit, deliver, settle, written } = yield* open(publish)
      credit.set(3)
      const [a, b, c] = [deliver("a"), deliver("b"), deliver("c")]
      written()
      const failures = yield* settle([a, Settlement.Ack], [b, letter], [c, Settlement.Release()])
      assert.deepStrictEqual(failures, [`b ${fate} ${reason}`])
      assert.deepStrictEqual(written(), [`FIN ${receiptOf(a).id}`, `REQ ${receiptOf(c).id} 0`])
      assert.deepStrictEqual(yield* settle([b, Settlement.Ack]), [])
      assert.deepStrictEqual(written(), [`FIN ${receiptOf(b).id}`])
    })
  )
})

describe("a session that closes", () => {
  it.effect("finishes a message whose FIN nsqd did not read, and requeues others", () =>
    Effect.gen(function* () {
      const { deliver, session, settle, written } = yield* open(stored)
      const [a, b] = [deliver("a"), deliver("b")]
      assert.deepStrictEqual(yield* settle([a, Settlement.Ack], [b, Settlement.Ack]), [])
      deliver("b")
      deliver("c")
      written()
      const closing = session.close()
      session.receive(payload("a"))
      session.receive(payload("d"))
      yield* Effect.promise(() => closing)
      const commands = written().map((command) => command.replace(/ (.)0{15}/, " $1"))
      assert.deepStrictEqual(commands, ["RDY 0", "FIN b", "REQ c 0", "FIN a", "REQ d 0"])
    })
  )
})

describe("a retry by copy", () => {
  it.effect("that is refused is a requeue, for as long", () =>
    Effect.gen(function* () {
      const { credit, deliver, settle, written } = yield* open(fails("E_BAD_MESSAGE PUB message too big 2 > 1"))
      credit.set(1)
      const a = deliver("a")
      written()
      assert.deepStrictEqual(yield* settle([a, Settlement.Retry(500)]), [])
      assert.deepStrictEqual(written(), [`REQ ${receiptOf(a).id} 500`])
    })
  )

  it.effect("that nsqd cannot store now is not: its delay would be this process's", () =>
    Effect.gen(function* () {
      const { credit, deliver, settle } = yield* open(fails("E_DPUB_FAILED DPUB failed"))
      credit.set(1)
      assert.deepStrictEqual(yield* settle([deliver("a"), Settlement.Retry(500)]), ["a transient Throttled"])
    })
  )
})

describe("a settlement that nsqd refuses", () => {
  it.effect("is known among those of two full windows", () =>
    Effect.gen(function* () {
      const { credit, deliver, session, settle } = yield* open(stored)
      credit.set(100)
      const ids = Array.from({ length: 200 }, (_, n) => `m${n}x`)
      for (const id of ids) yield* settle([deliver(id), Settlement.Ack])
      for (const id of ids) {
        const refused = session.refuse(`E_FIN_FAILED FIN ${id.padEnd(16, "0")} failed ID not in flight`)
        assert.deepInclude(refused, { settlement: "Ack" })
      }
    })
  )
})

describe("a delivery that is lost", () => {
  it.effect("because its lease has ended is not told as settled, and counts no more", () =>
    Effect.gen(function* () {
      const { credit, deliver, extend, isWhole, settle, written } = yield* open(stored)
      credit.set(1)
      const [a, b] = [deliver("a"), deliver("b")]
      yield* TestClock.adjust(lease)
      written()
      assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), ["a lost LeaseLost"])
      assert.deepStrictEqual(
        (yield* extend([b])).map(({ error, fate }) => `${fate} ${error.reason}`),
        ["lost LeaseLost"]
      )
      // They were one more than the credit.
      assert.deepStrictEqual(written(), ["RDY 1"])
      isWhole()
    })
  )

  it.effect("because nsqd extends no lease beyond its limit", () =>
    Effect.gen(function* () {
      const { deliver, extend, settle } = yield* open(stored)
      const a = deliver("a")
      for (const _ of [1, 2, 3]) {
        yield* TestClock.adjust(lease - 200)
        assert.deepStrictEqual(yield* extend([a]), [])
      }
      yield* TestClock.adjust(identity.maxMsgTimeout - 3 * (lease - 200))
      assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), ["a lost LeaseLost"])
    })
  )

  it.effect("because its connection is", () =>
    Effect.gen(function* () {
      const { deliver, extend, lose, session, settle } = yield* open(stored)
      const [a, b, c] = [deliver("a"), deliver("b"), deliver("c")]
      lose()
      assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), ["a lost ConnectionLost"])
      session.end()
      assert.deepStrictEqual(yield* settle([b, letter]), ["b lost ConnectionLost"])
      assert.deepStrictEqual(
        (yield* extend([c])).map(({ fate }) => fate),
        ["lost"]
      )
    })
  )

  it.effect("because it was settled before", () =>
    Effect.gen(function* () {
      const { deliver, settle } = yield* open(stored)
      const a = deliver("a")
      assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), [])
      assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), ["a lost LeaseLost"])
    })
  )

  it.effect("while its copy was under way: the credit is whole again, and the redelivery is settled", () =>
    Effect.gen(function* () {
      const answers: Array<Deferred.Deferred<void, BrokerError.BrokerError>> = []
      const { credit, deliver, isWhole, settle } = yield* open(() => {
        const answer = Deferred.makeUnsafe<void, BrokerError.BrokerError>()
        answers.push(answer)
        return Deferred.await(answer)
      })
      credit.set(1)
      let last = deliver("a")
      for (const _ of [1, 2, 3]) {
        const settling = yield* Effect.forkChild(settle([last, letter]), { startImmediately: true })
        yield* TestClock.adjust(lease)
        last = deliver("a")
        yield* Deferred.fail(answers.pop()!, timedOut(context, 5))
        assert.deepStrictEqual(yield* Fiber.join(settling), ["a lost LeaseLost"])
      }
      assert.deepStrictEqual(yield* settle([last, Settlement.Ack]), [])
      isWhole()
    })
  )
})
