/** The operators' view of a queue: counts, peeking and purging. */
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("admin")

const shown = (deliveries: ReadonlyArray<{ readonly metadata: { readonly id: string }; readonly attempts: number }>) =>
  deliveries.map(({ attempts, metadata }) => [metadata.id, attempts])

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "the counts tell ready, delayed and in flight apart",
    function* (lab) {
      yield* lab.send("a", "b", "c", "d", "e")
      yield* lab.sendDelayed("late", 1000 * lab.unit)
      yield* lab.start({}, () => Effect.never)
      // The consumer holds two: one runs, the other waits for its turn.
      yield* lab.until("two deliveries", () => lab.entriesOf("Delivered").length >= 2)
      const wanted = { ready: 3, inFlight: 2, delayed: 1 }
      const counted = Effect.map(lab.broker.admin.counts(lab.queue), (counts) =>
        Check.difference("counts", counts, wanted) === undefined ? true : undefined
      )
      yield* Wait.found("the counts", counted)
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
  test(
    "a look shows all that waits, page by page, and gives it back when it ends",
    function* (lab) {
      const { look } = lab.broker.admin
      const ids = Array.from({ length: 250 }, (_, n) => String(n))
      yield* lab.send(...ids)
      yield* lab.untilPending({ ready: ids.length })
      const seen = yield* Effect.scoped(
        Effect.gen(function* () {
          const { next } = yield* look!(lab.queue, 240)
          const found: Array<string> = []
          for (let page = yield* next; page.length > 0; page = yield* next)
            found.push(...page.map(({ metadata }) => metadata.id))
          return found
        })
      )
      Check.equal("240 of 250", seen.length, 240)
      Check.equal("each once", new Set(seen).size, 240)
      if (lab.capabilities.ordered) Check.equal("the oldest first", seen, ids.slice(0, 240))
      yield* lab.untilPending({ ready: ids.length })
      yield* lab.start()
      yield* lab.until("all come", () => new Set(lab.runs.map(({ id }) => id)).size === ids.length)
    },
    Needs.has("looks")
  ),
  test(
    "a look that is left in the middle gives all back, and to look again shows them again",
    function* (lab) {
      yield* lab.send("a", "b", "c", "d", "e")
      yield* lab.untilPending({ ready: 5 })
      const first = Effect.scoped(Effect.flatMap(lab.broker.admin.look!(lab.queue, 100), ({ next }) => next))
      Check.isTrue("a page", (yield* first).length > 0)
      yield* lab.untilPending({ ready: 5 })
      Check.isTrue("a page again", (yield* first).length > 0)
      yield* lab.untilPending({ ready: 5 })
      yield* lab.start()
      yield* lab.until("all come", () => new Set(lab.runs.map(({ id }) => id)).size === 5)
    },
    Needs.has("looks")
  ),
  test(
    "a look that is interrupted while it asks for more gives all back",
    function* (lab) {
      const ids = Array.from({ length: 250 }, (_, n) => String(n))
      yield* lab.send(...ids)
      yield* lab.untilPending({ ready: ids.length })
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { next } = yield* lab.broker.admin.look!(lab.queue, ids.length)
          Check.isTrue("a page", (yield* next).length > 0)
          const another = yield* Effect.forkChild(next, { startImmediately: true })
          yield* Effect.yieldNow
          yield* Fiber.interrupt(another)
        })
      )
      yield* lab.untilPending({ ready: ids.length, inFlight: 0 })
    },
    Needs.has("looks")
  ),
  test(
    "a queue that is missing is told as missing, and is not made by looking at it",
    function* (lab) {
      const { admin } = lab.broker
      const nowhere = `${lab.queue}-nowhere`
      const isMissing = Effect.map(admin.counts(nowhere), (counts) => counts.isMissing === true)
      Check.isTrue("missing", yield* isMissing)
      yield* Effect.exit(admin.peek(nowhere, 10))
      if (admin.look !== undefined) {
        const seen = yield* Effect.scoped(Effect.flatMap(admin.look(nowhere, 10), ({ next }) => next))
        Check.equal("seen", seen.length, 0)
      }
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
