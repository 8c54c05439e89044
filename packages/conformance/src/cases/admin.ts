/** The operators' view of a queue: counts, peeking and purging. */
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("admin")

const shown = (deliveries: ReadonlyArray<{ readonly metadata: { readonly id: string }; readonly attempts: number }>) =>
  deliveries.map(({ attempts, metadata }) => [metadata.id, attempts])

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "the counts tell ready, delayed and in flight apart",
    function* (lab) {
      yield* lab.send("a", "b", "c", "d", "e")
      yield* lab.sendDelayed("late", 100 * lab.unit)
      yield* lab.start({}, () => Effect.never)
      // The consumer holds two: one runs, the other waits for its turn.
      yield* lab.until("two deliveries", () => lab.entriesOf("Delivered").length === 2)
      yield* lab.quiet(lab.harness.settleTime)
      Check.equal("counts", yield* lab.broker.admin.counts(lab.queue), { ready: 3, inFlight: 2, delayed: 1 })
    },
    Needs.all(Needs.has("exactCounts"), Needs.counts("ready", "inFlight", "delayed"))
  ),
  test("a number that the broker cannot tell is left out, and the others agree with the broker", function* (lab) {
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
    "peeking shows waiting messages, oldest first, and leaves them and their attempts alone",
    function* (lab) {
      yield* lab.send("a", "b", "c")
      yield* lab.untilPending({ ready: 3 })
      Check.equal("two of three", shown(yield* lab.broker.admin.peek(lab.queue, 2)), [
        ["a", 1],
        ["b", 1]
      ])
      Check.equal("again", shown(yield* lab.broker.admin.peek(lab.queue, 10)), [
        ["a", 1],
        ["b", 1],
        ["c", 1]
      ])
      yield* lab.start()
      yield* lab.untilRuns(3)
      Check.equal(
        "attempts",
        lab.runs.map(({ attempts }) => attempts),
        [1, 1, 1]
      )
    },
    Needs.all(Needs.has("peek"), Needs.has("ordered"))
  ),
  test(
    "peeking shows a dead letter with its metadata",
    function* (lab) {
      yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode("{"), {})
      yield* lab.start()
      yield* lab.untilDeadLetters(1)
      const [letter] = yield* lab.broker.admin.peek(lab.dlq, 10)
      Check.equal("reason", letter!.metadata.deadLetter?.reason, "undecodable")
      Check.equal("origin", letter!.metadata.deadLetter?.queue, lab.queue)
      Check.equal("it is still there", (yield* lab.harness.deadLetters(lab.dlq)).length, 1)
    },
    Needs.has("peek")
  ),
  test(
    "where the broker cannot show messages without touching them, it still loses none",
    function* (lab) {
      yield* lab.send("a", "b")
      yield* Effect.exit(lab.broker.admin.peek(lab.queue, 10))
      yield* lab.start()
      yield* lab.until("both come", () => new Set(lab.runs.map(({ id }) => id)).size === 2)
    },
    Needs.lacks("peek")
  ),
  test("a purge removes what waits, and says how much", function* (lab) {
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
    Check.equal("failed settlements", lab.eventsOf("SettleFailed").length, 0)
    yield* lab.untilEmpty
  })
]
