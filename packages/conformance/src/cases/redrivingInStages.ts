/** Redrives in stages: they watch for returning letters, stop automatically, and report what became of each letter. */
import { Backoff, Codec, type Event, RetryPolicy } from "@requeue/core"
import type { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import { bury, left } from "./redriving.ts"

const test = Case.inGroup("redriving in stages")

const ids = ["m0", "m1", "m2", "m3", "m4", "m5"]

const boom = () => Effect.fail(new Error("boom"))

/** No case waits for this long: each ends when it has seen what it needs. */
const wait = "1 hour"

/** The counts of waiting letters that this broker can count. */
const told = ({ capabilities: { boundsDelayed, counts } }: Lab, count: number): number | undefined =>
  counts.ready && counts.inFlight && (counts.delayed || boundsDelayed === true) ? count : undefined

const figures = ({ cameBack, published, queued, stoppedBy, unseen }: DeadLetters.RedriveReport) => ({
  published,
  cameBack,
  unseen,
  queued,
  stoppedBy
})

/** Letters that were there; `undefined` if the broker cannot count. */
const queued = ({ capabilities: { counts } }: Lab, count: number) => (counts.ready ? count : undefined)

export const cases: ReadonlyArray<Case.Case> = [
  test("a redrive that fixes nothing stops automatically, and its figures are those of the broker", function* (lab) {
    yield* bury(lab, ids)
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, boom)
    const letters = yield* lab.letters
    const report = yield* letters.redrive({ stages: [2, 3], stopAt: 0.4, wait })
    Check.equal("report", figures(report), {
      published: 2,
      cameBack: 2,
      unseen: 0,
      queued: queued(lab, 4),
      stoppedBy: "stop-at"
    })
    Check.equal("succeeded and waiting", [report.succeeded, report.waiting], [0, 0])
    const stage = { size: 2, published: 2, succeeded: 0, cameBack: 2, waiting: 0, unseen: 0 }
    Check.equal("stages", report.stages, [stage])
    yield* lab.untilPending({ ready: ids.length, inFlight: 0 }, lab.dlq)
    Check.equal("left", yield* left(lab), ids)
    Check.equal("runs", lab.runs.length, 2)
  }),
  test("a letter that comes back is recognised through its retries, and the same redrive continues without it", function* (lab) {
    yield* bury(lab, ids)
    const events: Array<Event.Event> = []
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(lab.unit) })
    yield* lab.start({ retry, onEvent: (event) => void events.push(event) }, boom)
    const letters = yield* lab.letters
    const options = { stages: [2], stopAt: 1, wait } as const
    const { operation, ...first } = yield* letters.redrive(options)
    Check.equal("report", figures({ operation, ...first }), {
      published: 6,
      cameBack: 6,
      unseen: 0,
      queued: queued(lab, 0),
      stoppedBy: undefined
    })
    Check.equal(
      "operations of events",
      new Set(events.map((event) => ("operation" in event ? event.operation : undefined))),
      new Set([operation])
    )
    yield* lab.untilPending({ ready: ids.length, inFlight: 0 }, lab.dlq)
    const again = yield* lab.harness.deadLetters(lab.dlq)
    Check.equal(
      "redrives",
      again.map(({ metadata }) => metadata.redrives),
      ids.map(() => 1)
    )
    const second = yield* letters.redrive({ ...options, operation })
    Check.equal("of the same redrive", [second.published, second.repeated], [0, ids.length])
    yield* lab.untilPending({ ready: ids.length, inFlight: 0 }, lab.dlq)
    const third = yield* letters.redrive(options)
    Check.equal("of another one", [third.published, third.cameBack], [6, 6])
  }),
  test("a redrive that is aborted while it waits says where every letter is", function* (lab) {
    yield* bury(lab, ids)
    const letters = yield* lab.letters
    const stop = new AbortController()
    const [report] = yield* Effect.all(
      [
        letters.redrive({ stages: [2], wait, signal: stop.signal }),
        Effect.andThen(
          lab.untilPending({ ready: 2 }),
          Effect.sync(() => stop.abort())
        )
      ],
      { concurrency: "unbounded" }
    )
    Check.equal("report", figures(report), {
      published: 2,
      cameBack: 0,
      unseen: 0,
      queued: queued(lab, 4),
      stoppedBy: "abort"
    })
    Check.equal("succeeded and waiting", [report.succeeded, report.waiting], [told(lab, 0), told(lab, 2)])
    yield* lab.untilPending({ ready: 4, inFlight: 0 }, lab.dlq)
  }),
  test(
    "letters that arrive during a redrive in stages are left for the next one, and no success is reported early",
    function* (lab) {
      yield* bury(lab, ids)
      const fresh = ["n0", "n1", "n2", "n3"]
      let [begun, done, early] = [false, 0, 0]
      yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, ({ id }) =>
        Effect.gen(function* () {
          if (fresh.includes(id)) return yield* boom()
          if (!begun) {
            begun = true
            yield* lab.send(...fresh)
          }
          yield* Effect.sleep(lab.unit)
          done++
        })
      )
      const letters = yield* lab.letters
      const onProgress = ({ succeeded = 0 }: DeadLetters.RedriveReport) => void (succeeded > done && early++)
      // If the broker does not count delayed retries, each stage waits for this long.
      const longest = told(lab, 0) === 0 ? wait : "15 seconds"
      const report = yield* letters.redrive({ stages: [1, 2], wait: longest, onProgress })
      Check.equal("report", figures(report), {
        published: ids.length,
        cameBack: 0,
        unseen: 0,
        queued: 0,
        stoppedBy: undefined
      })
      Check.equal("reported too early", early, 0)
      yield* lab.untilPending({ ready: fresh.length, inFlight: 0 }, lab.dlq)
      Check.equal("left", yield* left(lab), fresh)
    },
    Needs.counts("ready")
  ),
  test(
    "letters go to no queue that is missing, unless it may be made",
    function* (lab) {
      yield* bury(lab, ["m0", "m1"])
      const nowhere = `${lab.queue}-nowhere`
      const letters = yield* lab.letters
      const refused = yield* letters.redrive({ to: nowhere, create: false })
      Check.equal("refused", [refused.published, refused.refused], [0, 2])
      Check.equal("reasons", new Set(refused.failures.map(({ error }) => error?.reason)), new Set(["QueueMissing"]))
      Check.isTrue("still missing", (yield* lab.broker.admin.counts(nowhere)).isMissing === true)
      yield* lab.untilPending({ ready: 2, inFlight: 0 }, lab.dlq)
      yield* lab.start()
      const there = yield* letters.redrive({ to: lab.queue, create: false })
      Check.equal("to one that is there", [there.published, there.refused], [2, 0])
    },
    Needs.has("tellsMissing")
  ),
  test("a letter that waits for its retry has not succeeded, and another one that was acked has", function* (lab) {
    yield* bury(lab, ["m0", "m1"])
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant("2 minutes") }) }, ({ id }) =>
      id === "m0" ? boom() : Effect.void
    )
    const letters = yield* lab.letters
    // Counts that are not exact must be the same for ten seconds. Both runs must have begun by then.
    const report = yield* letters.redrive({ stages: [2], wait: "30 seconds" })
    Check.equal("report", figures(report), {
      published: 2,
      cameBack: 0,
      unseen: 0,
      queued: queued(lab, 0),
      stoppedBy: undefined
    })
    Check.equal("succeeded and waiting", [report.succeeded, report.waiting], [told(lab, 1), told(lab, 1)])
  }),
  test("an edited letter stays until its copy has succeeded, and differs from a copy that comes back", function* (lab) {
    yield* bury(lab, ["m0", "m1"])
    const runs: Array<unknown> = []
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0 }) }, ({ body, id }) => {
      runs.push([id, body])
      return body === "mended" ? Effect.void : boom()
    })
    const letters = yield* lab.letters
    const found = yield* letters.list({ filter: ({ metadata }) => metadata.id === "m1" })
    const letter = Check.present("the letter", found[0])
    const worse = yield* letters.edit(letter, { body: Codec.json.encode("worse"), wait })
    Check.equal("of a copy that comes back", [worse.outcome, worse.isRemoved], ["came-back", false])
    yield* lab.untilPending({ ready: 3, inFlight: 0 }, lab.dlq)
    Check.equal("left", yield* left(lab), ["m0", "m1", "m1"])
    // If the broker does not count delayed retries, the copy's success stays unknown.
    const isTold = told(lab, 0) === 0
    const mended = yield* letters.edit(letter, { body: Codec.json.encode("mended"), wait: isTold ? wait : 1000 })
    Check.equal(
      "of a copy that succeeds",
      [mended.outcome, mended.isRemoved],
      isTold ? ["succeeded", true] : ["unknown", false]
    )
    yield* lab.untilPending({ ready: isTold ? 2 : 3, inFlight: 0 }, lab.dlq)
    Check.equal("runs", runs, [
      ["m1", "worse"],
      ["m1", "mended"]
    ])
    const bodies = (yield* lab.harness.deadLetters(lab.dlq)).map(({ body }) => String(Codec.json.decode(body, {})))
    Check.equal("bodies", bodies.toSorted(), isTold ? ["m0", "worse"] : ["m0", "m1", "worse"])
  })
]
