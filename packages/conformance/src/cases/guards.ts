/** Calls on dead letters that name a queue without any: they must not touch live messages. */
import { BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"
import * as Workload from "../Workload.ts"

const test = Case.inGroup("redriving")

/** Returns the reason of the broker's error that an effect fails with; other results pass. */
const reasonOf = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<unknown> =>
  Effect.match(effect, {
    onSuccess: (answer) => answer,
    onFailure: (error) => (error instanceof BrokerError.BrokerError ? error.reason : error)
  })

/** A message that looks like a dead letter of a queue. */
const letterOf = (lab: Lab, into: string, id: string, origin: string) => {
  const { metadata, ...message } = Workload.outgoing(into, id, { now: lab.now() })
  const error = { name: "Error", message: "boom" }
  const deadLetter = { queue: origin, attempts: 1, reason: "permanent", at: lab.now(), error } as const
  return { ...message, metadata: { ...metadata, deadLetter } }
}

export const cases: ReadonlyArray<Case.Case> = [
  test("a live queue is not taken for a dead-letter queue, unless its name confirms it", function* (lab) {
    yield* lab.send("a", "b")
    yield* lab.untilPending({ ready: 2 })
    const live = yield* lab.lettersIn(lab.queue)
    const aside = `${lab.queue}.parked`
    Check.equal("purge of all", yield* reasonOf(live.purge({ all: true })), "QueueMismatch")
    Check.equal("purge of some", yield* reasonOf(live.purge({ filter: () => true })), "QueueMismatch")
    Check.equal("redrive", yield* reasonOf(live.redrive({ to: lab.dlq })), "QueueMismatch")
    Check.equal("park", yield* reasonOf(live.park({ to: aside })), "QueueMismatch")
    const [letter] = yield* live.list({ limit: 1 })
    Check.equal("edit", yield* reasonOf(live.edit(letter!, { to: lab.dlq, body: new Uint8Array() })), "QueueMismatch")
    yield* lab.untilPending({ ready: 2, inFlight: 0 })
    Check.equal("purge by its name", yield* live.purge({ filter: () => true, force: lab.queue }), 2)
    yield* lab.untilPending({ ready: 0, inFlight: 0 })
  }),
  test(
    "a queue that only a letter names is not made by a redrive, nor by its dry run",
    function* (lab) {
      const ghost = `${lab.queue}-ghost`
      yield* lab.broker.publish([letterOf(lab, lab.dlq, "a", ghost)])
      yield* lab.untilPending({ ready: 1 }, lab.dlq)
      const letters = yield* lab.letters
      const planned = yield* letters.redrive({ dryRun: true, origin: ghost })
      Check.equal("planned", [planned.redriven, planned.refused], [0, 1])
      yield* lab.untilPending({ ready: 1, inFlight: 0 }, lab.dlq)
      const report = yield* letters.redrive({ origin: ghost })
      Check.equal("redriven", [report.redriven, report.refused], [0, 1])
      Check.isTrue("still missing", (yield* lab.broker.admin.counts(ghost)).isMissing === true)
      yield* lab.untilPending({ ready: 1, inFlight: 0 }, lab.dlq)
    },
    Needs.has("tellsMissing")
  ),
  test(
    "a message that may make no queue goes to none that is missing",
    function* (lab) {
      const ghost = `${lab.queue}-ghost`
      const message = { ...Workload.outgoing(ghost, "a", { now: lab.now() }), create: false }
      const reason = yield* reasonOf(lab.broker.publish([message]))
      Check.isTrue("refused", reason === "QueueMissing" || reason === "Unroutable", reason)
      Check.isTrue("still missing", (yield* lab.broker.admin.counts(ghost)).isMissing === true)
      yield* lab.send("there")
      const one = { ...Workload.outgoing(lab.queue, "b", { now: lab.now() }), create: false }
      yield* lab.broker.publish([one])
      yield* lab.untilPending({ ready: 2 })
    },
    Needs.has("tellsMissing")
  ),
  test(
    "letters go to no queue that is deleted once some have gone there, unless it may be made",
    function* (lab) {
      yield* lab.send("there")
      yield* lab.untilPending({ ready: 1 })
      yield* lab.broker.publish(["a", "b", "c"].map((id) => letterOf(lab, lab.dlq, id, lab.queue)))
      yield* lab.untilPending({ ready: 3 }, lab.dlq)
      const letters = yield* lab.letters
      const first = yield* letters.redrive({ limit: 1 })
      Check.equal("before", [first.redriven, first.refused], [1, 0])
      yield* lab.harness.deleteQueue!(lab.queue)
      const isMissing = Effect.map(
        lab.broker.admin.counts(lab.queue),
        (counts) => counts.isMissing === true || undefined
      )
      yield* Wait.found("the end of the queue", isMissing, { within: lab.recovery, every: lab.unit })
      const message = { ...Workload.outgoing(lab.queue, "d", { now: lab.now() }), create: false }
      const reason = yield* reasonOf(lab.broker.publish([message]))
      Check.isTrue("refused", reason === "QueueMissing" || reason === "Unroutable", reason)
      Check.isTrue("still missing", (yield* lab.broker.admin.counts(lab.queue)).isMissing === true)
      yield* lab.untilPending({ ready: 2, inFlight: 0 }, lab.dlq)
    },
    (abilities) => Needs.deleteQueue(abilities) ?? Needs.has("tellsMissing")(abilities)
  ),
  test("no letter goes to a queue because the letter names it", function* (lab) {
    const other = `${lab.queue}-other`
    yield* lab.send("live")
    yield* lab.broker.publish([letterOf(lab, other, "there", other)])
    yield* lab.broker.publish([letterOf(lab, lab.dlq, "forged", other)])
    yield* lab.broker.publish([letterOf(lab, lab.dlq, "own", lab.queue)])
    yield* lab.untilPending({ ready: 1 }, other)
    yield* lab.untilPending({ ready: 2 }, lab.dlq)
    const letters = yield* lab.letters
    const report = yield* letters.redrive()
    Check.equal("redriven and refused", [report.redriven, report.refused], [1, 1])
    Check.equal("why", report.failures[0]?.error?.reason, "QueueMismatch")
    yield* lab.untilPending({ ready: 1, inFlight: 0 }, lab.dlq)
    yield* lab.untilPending({ ready: 1, inFlight: 0 }, other)
    Check.equal("by its name", (yield* letters.redrive({ origin: other })).redriven, 1)
    yield* lab.untilPending({ ready: 2, inFlight: 0 }, other)
  }),
  test("the letters themselves make any queue a dead-letter queue", function* (lab) {
    const graves = `${lab.queue}-graves`
    yield* lab.broker.publish([letterOf(lab, graves, "a", lab.queue)])
    yield* lab.untilPending({ ready: 1 }, graves)
    const letters = yield* lab.lettersIn(graves)
    Check.equal("purged", yield* letters.purge({ filter: () => true }), 1)
  }),
  test("a live queue that begins with twelve dead letters is not taken for a dead-letter queue", function* (lab) {
    for (let n = 0; n < 12; n++)
      yield* lab.broker.publish([letterOf(lab, lab.queue, `forged-${n}`, `${lab.queue}-other`)])
    yield* lab.send("a")
    yield* lab.untilPending({ ready: 13 })
    const live = yield* lab.lettersIn(lab.queue)
    Check.equal("purge", yield* reasonOf(live.purge({ filter: () => true })), "QueueMismatch")
    yield* lab.untilPending({ ready: 13, inFlight: 0 })
  }),
  test("a queue that was found for one queue and holds letters of two is refused, unless an origin or its name is given", function* (lab) {
    const graves = `${lab.queue}-graves`
    const other = `${lab.queue}-other`
    yield* lab.broker.publish([letterOf(lab, graves, "a", lab.queue)])
    yield* lab.broker.publish([letterOf(lab, graves, "b", other)])
    yield* lab.broker.publish([letterOf(lab, graves, "c", other)])
    yield* lab.untilPending({ ready: 3 }, graves)
    const letters = yield* lab.lettersFoundIn(graves)
    const foreign = (yield* letters.list()).find(({ origin }) => origin?.queue === other)
    Check.equal("purge of all", yield* reasonOf(letters.purge({ all: true })), "QueueMismatch")
    Check.equal("purge of some", yield* reasonOf(letters.purge({ filter: () => true })), "QueueMismatch")
    Check.equal("redrive", yield* reasonOf(letters.redrive({ to: lab.queue })), "QueueMismatch")
    Check.equal("park", yield* reasonOf(letters.park({ to: lab.dlq })), "QueueMismatch")
    const body = new Uint8Array()
    Check.equal("edit", yield* reasonOf(letters.edit(foreign!, { to: lab.dlq, body })), "QueueMismatch")
    yield* lab.untilPending({ ready: 3, inFlight: 0 }, graves)
    Check.equal("purge of an origin", yield* letters.purge({ all: true, origin: lab.queue }), 1)
    yield* lab.untilPending({ ready: 2, inFlight: 0 }, graves)
    Check.equal("purge by its name", yield* letters.purge({ filter: () => true, force: graves }), 2)
    yield* lab.untilPending({ ready: 0, inFlight: 0 }, graves)
  }),
  test(
    "dead letters of a queue that is missing are an error",
    function* (lab) {
      const letters = yield* lab.lettersIn(`${lab.queue}-nowhere.dlq`)
      Check.equal("count", yield* reasonOf(letters.count), "QueueMissing")
      Check.equal("list", yield* reasonOf(letters.list()), "QueueMissing")
      Check.equal("group", yield* reasonOf(letters.group()), "QueueMissing")
      Check.equal("redrive", yield* reasonOf(letters.redrive({ to: lab.queue })), "QueueMissing")
      Check.equal("purge", yield* reasonOf(letters.purge({ all: true })), "QueueMissing")
      Check.isTrue("it is still missing", !(yield* letters.exists))
    },
    Needs.has("tellsMissing")
  )
]
