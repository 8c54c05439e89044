/** The operators' view of the backlog and of delayed messages. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { Backlog } from "@requeue/core/port"
import { DelayedMessages } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("backlog")

const fields: ReadonlyArray<Backlog.Field> = [
  "ready",
  "inFlight",
  "delayed",
  "backoff",
  "undelivered",
  "oldest",
  "consumers"
]

const standard = RetryPolicy.make()

const backlogOf = (lab: Lab, retry = standard) => Backlog.of(lab.broker, { queue: lab.queue, retry })

/** The delayed messages of the case's queue. Their calls fail only if the broker's do. */
const delayedOf = (lab: Lab) => lab.onBroker(DelayedMessages.make(lab.queue))

const runIds = (lab: Lab) => lab.runs.map(({ id }) => id).toSorted()

export const cases: ReadonlyArray<Case.Case> = [
  test("a backlog reports waiting messages, and for each missing number the reason", function* (lab) {
    yield* lab.send("a", "b")
    yield* lab.untilPending({ ready: 2 })
    const backlog = yield* backlogOf(lab)
    for (const field of fields)
      Check.isTrue(
        `${field} is told, or there is a reason`,
        backlog[field] !== undefined || (backlog.remarks[field] ?? "") !== "",
        backlog
      )
    if (backlog.ready !== undefined) Check.equal("ready", backlog.ready, 2)
    const { backoff, delayed } = backlog
    if (backoff === undefined || delayed === undefined) return
    const due = backoff.reduce((sum, { count }) => sum + count, 0)
    Check.equal("the messages of all times together", due, delayed)
  }),
  test("a backlog reports a message in backoff: as delayed, or as in flight where the broker hides it", function* (lab) {
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(100 * lab.unit) })
    yield* lab.send("a")
    yield* lab.start({ retry }, () => Effect.fail(new Error("no")))
    yield* lab.untilEvents("RetryScheduled", 1)
    yield* lab.quiet(lab.harness.settleTime)
    const { delayed, inFlight } = yield* backlogOf(lab, retry)
    if (delayed === undefined) return
    Check.isTrue("it is somewhere", delayed + (inFlight ?? 0) >= 1, { delayed, inFlight })
  }),
  test(
    "delayed messages are listed, the soonest first, and each comes at its time all the same, as its first attempt",
    function* (lab) {
      const near = 100 * lab.unit
      const far = 110 * lab.unit
      const begun = lab.now()
      yield* lab.sendDelayed("near", near)
      yield* lab.sendDelayed("far", far)
      yield* lab.quiet(lab.harness.settleTime)
      const { count, list } = yield* delayedOf(lab)
      const listed = yield* list()
      Check.equal(
        "listed",
        listed.messages.map(({ attempts, id }) => [id, attempts]),
        [
          ["near", 1],
          ["far", 1]
        ]
      )
      for (const [at, delay] of [near, far].entries()) {
        const due = listed.messages[at]!.due ?? Number.NaN
        Check.isTrue("it is due by then", due >= begun + delay && due <= lab.now() + delay, { due, begun, delay })
      }
      const { selected } = yield* count({ filter: ({ id }) => id === "far" })
      Check.equal("counted", selected, 1)
      const retry = RetryPolicy.make({ maxRetries: 0, maxDeliveries: 1 })
      yield* lab.start({ retry })
      yield* lab.untilRuns(2)
      yield* lab.quiet()
      const runs = lab.runs.map(({ attempts, id }) => `${id} ${attempts}`)
      Check.equal("runs", runs.toSorted(), ["far 1", "near 1"])
      lab.checkTimely("their order", runs, ["near 1", "far 1"], begun)
      const delays: Readonly<Record<string, number>> = { near, far }
      for (const { at, id } of lab.runs) Check.isTrue(`${id} is not early`, at >= begun + delays[id]!, lab.runs)
    },
    Needs.delayedMessages
  ),
  test(
    "a message in backoff is listed with its error, and is gone when it is removed",
    function* (lab) {
      const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(1000 * lab.unit) })
      yield* lab.send("a", "b")
      yield* lab.start({ retry, concurrency: 2 }, ({ id }) => Effect.fail(new Error(`no ${id}`)))
      yield* lab.untilEvents("RetryScheduled", 2)
      yield* lab.quiet(lab.harness.settleTime)
      const { list, purge } = yield* lab.onBroker(DelayedMessages.make(lab.queue, { retry }))
      const listed = yield* list({ filter: ({ history }) => history.at(-1)?.error.includes("no b") === true })
      Check.equal(
        "listed",
        listed.messages.map(({ attempts, id }) => [id, attempts]),
        [["b", 2]]
      )
      Check.equal("removed", (yield* purge({ filter: ({ id }) => id === "b" })).removed, 1)
      Check.equal(
        "left",
        (yield* list()).messages.map(({ id }) => id),
        ["a"]
      )
      yield* purge({ all: true })
    },
    Needs.delayedMessages
  ),
  test(
    "delayed messages that a filter selects are removed, and no others",
    function* (lab) {
      for (const id of ["a", "b", "c"]) yield* lab.sendDelayed(id, 1000 * lab.unit)
      yield* lab.quiet(lab.harness.settleTime)
      const { count, list, purge } = yield* delayedOf(lab)
      const filter = ({ id }: { readonly id: string }) => id === "b"
      Check.equal("in a dry run", (yield* purge({ filter, dryRun: true })).removed, 1)
      Check.equal("removed", (yield* purge({ filter })).removed, 1)
      Check.equal("left", (yield* list()).messages.map(({ id }) => id).toSorted(), ["a", "c"])
      Check.equal("all", (yield* purge({ all: true })).removed, 2)
      Check.equal("none is left", (yield* count()).selected, 0)
    },
    Needs.delayedMessages
  ),
  test(
    "removals while messages become due lose none that stays, and double none",
    function* (lab) {
      const ids = Array.from({ length: 20 }, (_, index) => `m${index}`)
      for (const [index, id] of ids.entries()) yield* lab.sendDelayed(id, (2 + (index % 5)) * lab.unit)
      yield* lab.start({ concurrency: 20 })
      const { purge } = yield* delayedOf(lab)
      const isOdd = ({ id }: { readonly id: string }) => Number(id.slice(1)) % 2 === 1
      let removed = 0
      for (const end = lab.now() + 8 * lab.unit; lab.now() < end; yield* Effect.sleep(lab.unit))
        removed += (yield* purge({ filter: isOdd })).removed
      yield* lab.until("what stays", () => lab.runs.length + removed >= ids.length)
      yield* lab.quiet()
      Check.equal("removed and run", lab.runs.length + removed, ids.length)
      Check.equal("each once", new Set(runIds(lab)).size, lab.runs.length)
      Check.equal("the even ones", lab.runs.filter((run) => !isOdd(run)).length, ids.length / 2)
    },
    Needs.delayedMessages
  ),
  test(
    "where the broker cannot show delayed messages, that is told, and they come at their time",
    function* (lab) {
      const delay = 4 * lab.unit
      yield* lab.sendDelayed("a", delay)
      const { list, purge } = yield* delayedOf(lab)
      Check.equal("a list", (yield* Effect.flip(list())).reason, "Unsupported")
      Check.equal("a removal", (yield* Effect.flip(purge({ all: true }))).reason, "Unsupported")
      yield* lab.start()
      yield* lab.untilRuns(1)
    },
    Needs.noDelayedMessages
  )
]
