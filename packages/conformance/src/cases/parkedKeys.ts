/** Dead letters that hold up the later messages of their keys, until they are redriven or removed. */
import { ConfigurationError, RetryPolicy, Transaction } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { failing, keyOf, runsOf, sendKeyed, test as keyed } from "../internal/keys.ts"
import { begin, sentTo } from "../internal/transactions.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const test = (name: string, body: Case.Body, ...needs: ReadonlyArray<Case.Requirement>): Case.Case =>
  keyed(name, body, Needs.has("parkedKeys"), ...needs)

const parking = RetryPolicy.make({ maxRetries: 0, afterDeadLetter: "park" })

/** Parks a0. The others of its key wait, and b0 does not. Returns the consumer, which has nothing to do. */
const parkRunning = (lab: Lab) =>
  Effect.gen(function* () {
    yield* sendKeyed(lab, "a0", "a1", "a2", "b0")
    const consumer = yield* lab.start({ concurrency: 10, retry: parking }, failing("a0"))
    yield* lab.untilDeadLetters(1)
    yield* lab.untilEvents("Succeeded", 1)
    // Until the consumer's leases have ended: it tries again then.
    yield* lab.quiet(2 * (lab.capabilities.lease?.duration ?? lab.unit))
    Check.equal("runs", [runsOf(lab, "a"), runsOf(lab, "b")], [["a0.1"], ["b0.1"]])
    return consumer
  })

/** Does the same, and ends the consumer. */
const park = (lab: Lab) => Effect.flatMap(parkRunning(lab), ({ drain }) => drain())

/** Handles the three messages of a, and returns their ids in order. */
const rest = (lab: Lab, count: number) =>
  Effect.gen(function* () {
    const before = lab.runs.length
    yield* lab.start({ concurrency: 10, retry: parking })
    yield* lab.untilEvents("Succeeded", 1 + count)
    yield* lab.quiet()
    yield* lab.untilEmpty
    Check.equal("blocked", (yield* lab.broker.admin.counts(lab.queue)).blocked ?? 0, 0)
    return lab.runs.slice(before).map(({ attempts, id }) => `${id}.${attempts}`)
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("a parked letter holds up its key, and shows how many messages wait for it", function* (lab) {
    yield* park(lab)
    yield* sendKeyed(lab, "a3", "b1")
    const { blocked, delayed, inFlight, ready } = yield* lab.broker.admin.counts(lab.queue)
    Check.equal("counts", { blocked, delayed, inFlight, ready }, { blocked: 3, delayed: 0, inFlight: 0, ready: 1 })
    const [letter, ...others] = yield* Effect.flatMap(lab.letters, ({ list }) => list())
    Check.equal("letter", [letter!.id, letter!.key, letter!.blocks, others], ["a0", "a", 3, []])
  }),
  test("a redriven parked letter is handled first, and then the messages that waited for it, in order", function* (lab) {
    yield* park(lab)
    yield* sendKeyed(lab, "a3")
    const { redriven } = yield* Effect.flatMap(lab.letters, ({ redrive }) => redrive())
    Check.equal("redriven", redriven, 1)
    Check.equal("order", yield* rest(lab, 4), ["a0.1", "a1.1", "a2.1", "a3.1"])
  }),
  test("a letter that is parked again after its redrive holds up its key again", function* (lab) {
    yield* park(lab)
    yield* Effect.flatMap(lab.letters, ({ redrive }) => redrive())
    const consumer = yield* lab.start({ concurrency: 10, retry: parking }, failing("a0"))
    yield* lab.untilDeadLetters(1)
    yield* lab.quiet()
    Check.equal("runs", runsOf(lab, "a"), ["a0.1", "a0.1"])
    yield* consumer.drain()
    yield* Effect.flatMap(lab.letters, ({ redrive }) => redrive())
    Check.equal("order", yield* rest(lab, 3), ["a0.1", "a1.1", "a2.1"])
  }),
  test("a parked letter that is removed makes way for the next message of its key", function* (lab) {
    yield* parkRunning(lab)
    const removed = yield* Effect.flatMap(lab.letters, ({ purge }) => purge({ filter: ({ id }) => id === "a0" }))
    Check.equal("removed", removed, 1)
    yield* lab.untilEvents("Succeeded", 3)
    Check.equal("order", runsOf(lab, "a"), ["a0.1", "a1.1", "a2.1"])
  }),
  test("a purge of the parked letters makes way for the messages that waited for them", function* (lab) {
    yield* parkRunning(lab)
    yield* lab.broker.admin.purge(lab.dlq)
    yield* lab.untilEvents("Succeeded", 3)
    Check.equal("order", runsOf(lab, "a"), ["a0.1", "a1.1", "a2.1"])
  }),
  test("a parked letter that a consumer of its queue acks makes way for the next message of its key", function* (lab) {
    yield* parkRunning(lab)
    const port = yield* Port.open(lab.broker, { queue: lab.dlq, credit: 1 })
    yield* port.settle(yield* port.next, Settlement.Ack)
    yield* lab.untilEvents("Succeeded", 3)
    Check.equal("order", runsOf(lab, "a"), ["a0.1", "a1.1", "a2.1"])
  }),
  test("a parked letter that is moved aside holds up its key from there", function* (lab) {
    yield* park(lab)
    const aside = `${lab.queue}.aside`
    yield* Effect.flatMap(lab.letters, (letters) => letters.park({ to: aside, create: true }))
    yield* lab.untilDeadLetters(1, aside)
    yield* lab.start({ concurrency: 10, retry: parking })
    yield* lab.quiet()
    Check.equal("runs", runsOf(lab, "a"), ["a0.1"])
    yield* Effect.flatMap(lab.lettersIn(aside), ({ redrive }) => redrive({ origin: lab.queue }))
    yield* lab.untilEvents("Succeeded", 4)
    Check.equal("order", runsOf(lab, "a"), ["a0.1", "a0.1", "a1.1", "a2.1"])
  }),
  test(
    "an edited copy of a parked letter is handled before the messages that wait for it",
    function* (lab) {
      yield* park(lab)
      yield* lab.start({ concurrency: 10, retry: parking })
      const letters = yield* lab.letters
      const [letter] = yield* letters.list()
      const { outcome } = yield* letters.edit(letter!, { body: new TextEncoder().encode('"edited"') })
      Check.equal("outcome", outcome, "succeeded")
      yield* lab.untilEvents("Succeeded", 4)
      Check.equal("order", runsOf(lab, "a"), ["a0.1", "a0.1", "a1.1", "a2.1"])
    },
    Needs.has("exactCounts")
  ),
  test("a redriven letter that did not park waits for the message of its key that is in a handler", function* (lab) {
    yield* sendKeyed(lab, "a0", "a1", "a2")
    let isHandled = false
    yield* lab.start({ concurrency: 10, retry: RetryPolicy.make({ maxRetries: 0 }) }, ({ id }) => {
      if (id === "a0" && !isHandled) return failing("a0")({ id })
      if (id !== "a1") return Effect.void
      return Effect.gen(function* () {
        yield* lab.untilDeadLetters(1)
        isHandled = true
        yield* Effect.flatMap(lab.letters, ({ redrive }) => redrive())
        yield* lab.quiet()
        Check.equal("runs", runsOf(lab, "a"), ["a0.1", "a1.1"])
      })
    })
    yield* lab.untilEvents("Succeeded", 3)
    Check.equal("order", runsOf(lab, "a"), ["a0.1", "a1.1", "a0.1", "a2.1"])
  }),
  test(
    "an ack in a transaction makes way for the next message of its key when that is committed",
    function* (lab) {
      yield* sendKeyed(lab, "a0", "a1")
      yield* lab.start({ concurrency: 10 }, (message) =>
        Effect.scoped(
          Effect.gen(function* () {
            const work = yield* begin(lab)
            yield* Transaction.within(message, work.value)
            if (message.attempts === 1) return yield* work.rollback
            yield* lab.quiet()
            Check.equal("last", lab.runs.at(-1)!.id, message.id)
            yield* work.commit
          })
        )
      )
      yield* lab.untilEvents("Succeeded", 2)
      Check.equal("runs", runsOf(lab, "a"), ["a0.1", "a0.2", "a1.1", "a1.2"])
    },
    Needs.transactions
  ),
  test(
    "messages with keys that are sent in a transaction are handled in order when that is committed",
    function* (lab) {
      const ids = ["a0", "a1", "b0", "a2", "b1"]
      const work = yield* begin(lab)
      const producer = yield* lab.producer()
      for (const id of ids) yield* producer.within(work.value).send(id, { id, key: keyOf(id) })
      yield* work.commit
      yield* lab.start({ concurrency: 10 }, ({ attempts, id }) =>
        attempts === 1 ? failing("a0", "b0")({ id }) : Effect.void
      )
      yield* lab.untilEvents("Succeeded", ids.length)
      Check.equal("a", runsOf(lab, "a"), ["a0.1", "a0.2", "a1.1", "a2.1"])
      Check.equal("b", runsOf(lab, "b"), ["b0.1", "b0.2", "b1.1"])
      Check.equal("elsewhere", yield* Port.oldest(lab.broker, sentTo(lab), 1), [])
    },
    Needs.transactions
  ),
  Case.inGroup("keys")(
    "a broker that cannot hold up the messages of a key refuses to park, before a message is delivered",
    function* (lab) {
      yield* lab.send("a")
      const error = yield* Effect.flip(lab.start({ retry: parking }))
      Check.isTrue("a ConfigurationError", error instanceof ConfigurationError.ConfigurationError, error)
      Check.equal("field", (error as ConfigurationError.ConfigurationError).field, "retry.afterDeadLetter") // It was checked above.
      Check.equal("runs", lab.runs, [])
    },
    Needs.lacks("parkedKeys")
  )
]
