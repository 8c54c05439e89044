/** The place of a message in the order of its key: it keeps it while it is delayed, and when its consumer or connection ends. */
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { idsOf, keyOf, runsOf, sendKeyed, test } from "../internal/keys.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

/** Sends a message with a key and a delay in milliseconds. */
const sendDelayed = (lab: Lab, id: string, delay: number) =>
  Effect.flatMap(lab.producer(), ({ send }) => send(id, { id, key: keyOf(id), delay }))

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "a delayed message holds up the later messages of its key, and is not early",
    function* (lab) {
      const delay = 4 * lab.unit
      const begun = lab.now()
      yield* sendDelayed(lab, "a0", delay)
      yield* sendKeyed(lab, "a1", "b0")
      yield* lab.start({ concurrency: 10 })
      yield* lab.untilEvents("Succeeded", 3)
      const order = lab.runs.map(({ id }) => id).filter((id, index, all) => all.lastIndexOf(id) === index)
      Check.equal(
        "order of a",
        order.filter((id) => keyOf(id) === "a"),
        ["a0", "a1"]
      )
      // The delay may be over before the others are sent.
      lab.checkTimely("order", order, ["b0", "a0", "a1"], begun)
      Check.isTrue("not early", lab.runs.find(({ id }) => id === "a0")!.at >= begun + delay, lab.runs)
    },
    Needs.has("parkedKeys")
  ),
  test(
    "the delay of a message that waited for an earlier one of its key goes on meanwhile",
    function* (lab) {
      const delay = 4 * lab.unit
      yield* sendKeyed(lab, "a0")
      const begun = lab.now()
      yield* sendDelayed(lab, "a1", delay)
      yield* lab.start({ concurrency: 10 })
      yield* lab.untilEvents("Succeeded", 2)
      Check.isTrue("not early", lab.runs[1]!.at >= begun + delay, lab.runs)
      Check.equal("order", runsOf(lab, "a"), ["a0.1", "a1.1"])
      // A consumer would return an early one.
      Check.equal("deliveries", lab.entriesOf("Delivered").length, 2)
    },
    Needs.has("parkedKeys")
  ),
  test("a consumer that ends returns a message to its place: the later ones of its key wait", function* (lab) {
    yield* sendKeyed(lab, "a0", "a1", "a2")
    const consumer = yield* lab.start({ concurrency: 10 }, () => Effect.never)
    yield* lab.untilRuns(1)
    yield* consumer.drain(0)
    yield* lab.start({ concurrency: 10 })
    yield* lab.untilEvents("Succeeded", 3)
    Check.equal(
      "order",
      lab.runs.map(({ id }) => id),
      ["a0", "a0", "a1", "a2"]
    )
  }),
  test(
    "a message whose connection broke comes before the later ones of its key",
    function* (lab) {
      yield* sendKeyed(lab, "a0", "a1")
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 10 })
      const first = yield* port.next
      yield* lab.harness.cutConnections!
      yield* lab.untilReconnected
      const again = yield* port.next
      Check.equal("again", [first.metadata.id, again.metadata.id, port.waiting()], ["a0", "a0", 0])
      yield* port.settle(again, Settlement.Ack)
      Check.equal("next", (yield* port.next).metadata.id, "a1")
    },
    Needs.boundConnections
  ),
  test(
    "a message whose lease has ended comes before the later ones of its key, and its late ack frees none",
    function* (lab) {
      yield* sendKeyed(lab, "a0", "a1")
      const within = lab.capabilities.lease!.duration + lab.recovery
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1, within })
      const first = yield* port.next
      port.credit(0)
      const other = yield* lab.another
      const elsewhere = yield* Port.open(other.broker, { queue: lab.queue, credit: 10, keep: true, within })
      const again = yield* elsewhere.next
      Check.equal("again", again.metadata.id, first.metadata.id)
      const failure = yield* port.settle(first, Settlement.Ack)
      Check.isTrue("the late ack fails", failure !== undefined, failure)
      yield* lab.quiet()
      Check.equal("held up", elsewhere.waiting(), 0)
      yield* elsewhere.settle(again, Settlement.Ack)
      Check.equal("next", (yield* elsewhere.next).metadata.id, "a1")
    },
    Needs.lease,
    Needs.has("parkedKeys")
  ),
  test(
    "a purge removes the messages that wait for others, and later sends are handled",
    function* (lab) {
      yield* sendKeyed(lab, ...idsOf(["a", "b"], 3))
      yield* sendDelayed(lab, "c0", 60_000)
      yield* sendKeyed(lab, "c1")
      Check.equal("removed", yield* lab.broker.admin.purge(lab.queue), 8)
      yield* lab.untilEmpty
      yield* sendKeyed(lab, "a3", "b3", "c3")
      yield* lab.start({ concurrency: 10 })
      yield* lab.untilEvents("Succeeded", 3)
      Check.equal("runs", lab.runs.map(({ id }) => id).toSorted(), ["a3", "b3", "c3"])
    },
    Needs.has("parkedKeys")
  )
]
