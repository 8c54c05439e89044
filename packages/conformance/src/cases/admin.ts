/** The operators' view of a queue: counts and purges. */
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("admin")

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "the counts distinguish ready, delayed and in flight",
    function* (lab) {
      yield* lab.send("a", "b", "c", "d", "e")
      yield* lab.sendDelayed("late", 1000 * lab.unit)
      yield* lab.start({}, () => Effect.never)
      // The consumer holds two: one runs, the other waits.
      yield* lab.until("two deliveries", () => lab.entriesOf("Delivered").length >= 2)
      const wanted = { ready: 3, inFlight: 2, delayed: 1 }
      const counted = Effect.map(lab.broker.admin.counts(lab.queue), (counts) =>
        Check.difference("counts", counts, wanted) === undefined ? true : undefined
      )
      yield* Wait.found("the counts", counted)
    },
    Needs.all(Needs.has("exactCounts"), Needs.counts("ready", "inFlight", "delayed"))
  ),
  test("a number that the broker cannot count is left out, and the others agree with the broker", function* (lab) {
    yield* lab.send("a", "b")
    yield* lab.untilPending({ ready: 2 })
    const { counts } = lab.capabilities
    const told = yield* lab.broker.admin.counts(lab.queue)
    for (const number of ["ready", "inFlight", "delayed"] as const) {
      Check.equal(`${number} is told`, told[number] !== undefined, counts[number])
    }
    if (counts.ready) Check.equal("ready", told.ready, 2)
  }),
  test(
    "a queue that is missing is reported as missing, and counting does not create it",
    function* (lab) {
      const { admin } = lab.broker
      const nowhere = `${lab.queue}-nowhere`
      const isMissing = Effect.map(admin.counts(nowhere), (counts) => counts.isMissing === true)
      Check.isTrue("missing", yield* isMissing)
      Check.equal("purged", yield* admin.purge(nowhere), 0)
      const letters = yield* DeadLetters.make(nowhere)
      yield* Effect.exit(letters.redrive({ dryRun: true, to: lab.queue }))
      yield* Effect.exit(letters.redrive({ to: lab.queue, force: nowhere }))
      yield* Effect.exit(letters.purge({ filter: () => true, dryRun: true }))
      Check.isTrue("still missing", yield* isMissing)
      yield* lab.send("a")
      yield* lab.untilPending({ ready: 1 })
      Check.isTrue("one that is there is not", (yield* admin.counts(lab.queue)).isMissing !== true)
    },
    Needs.has("tellsMissing")
  ),
  test("a purge removes waiting messages, and returns their number", function* (lab) {
    yield* lab.send("a", "b", "c")
    yield* lab.untilPending({ ready: 3 })
    const purged = yield* lab.broker.admin.purge(lab.queue)
    if (lab.capabilities.exactCounts) Check.equal("purged", purged, 3)
    yield* lab.untilEmpty
    yield* lab.start()
    yield* lab.quiet()
    Check.equal("runs", lab.runs.length, 0)
  }),
  test(
    "a purge counts a delayed message if it removes it; if not, that comes at its time",
    function* (lab) {
      const delay = 6 * lab.unit
      yield* lab.send("a", "b", "c")
      yield* lab.untilPending({ ready: 3 })
      yield* lab.sendDelayed("late", delay)
      const purged = yield* lab.broker.admin.purge(lab.queue)
      Check.isTrue("purged", purged === 3 || purged === 4, purged)
      yield* lab.start()
      yield* lab.untilRuns(4 - purged)
      yield* lab.quiet(delay + lab.slack + lab.harness.settleTime)
      Check.equal(
        "runs",
        lab.runs.map(({ id }) => id),
        purged === 4 ? [] : ["late"]
      )
    },
    Needs.has("exactCounts")
  ),
  test("a purge leaves alone what a consumer has", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({}, () => Effect.sleep(3 * lab.unit))
    yield* lab.untilRuns(1)
    yield* lab.broker.admin.purge(lab.queue)
    yield* lab.untilEvents("Succeeded", 1)
    checkKept(lab, "failed settlements", lab.eventsOf("SettleFailed").length, 0, lab.runs[0]!.at)
    yield* lab.untilEmpty
  })
]
