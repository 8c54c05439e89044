/** The delays of retries: which one applies, and that it is kept. */
import { Backoff, type Consumer, Delay, Failure, type Handler, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("retry delays")

/** The delay of each source, in units: all differ, and a source with precedence is shorter. */
const units = { explicit: 1, error: 2, policy: 3, consumer: 4 } as const

/** Retries one message with delays from these sources; returns the delay that was used, in units. */
const asked = (
  lab: Lab,
  given: ReadonlyArray<keyof typeof units | "zero">,
  call: (batch: Handler.Batch<unknown>, delay: number) => void
) =>
  Effect.gen(function* () {
    const has = (source: (typeof given)[number]) => given.includes(source)
    const options: Consumer.Options = {
      retry: RetryPolicy.make(has("policy") ? { backoff: Backoff.constant(units.policy * lab.unit) } : {}),
      retryDelay: has("consumer") ? units.consumer * lab.unit : undefined
    }
    yield* lab.send("a")
    yield* lab.startBatch({ ...options, batch: one }, (batch) => {
      if (batch.messages[0]!.attempts > 1) return undefined
      if (has("explicit") || has("zero")) call(batch, has("zero") ? 0 : units.explicit * lab.unit)
      const retryAfter = (units.error * lab.unit) / 1000
      return Effect.fail(has("error") ? new Failure.RetryLaterError({ message: "later", retryAfter }) : new Error("no"))
    })
    yield* lab.untilRuns(2)
    const { at, settlement } = lab.entriesOf("Settling")[0]!
    const delay = settlement._tag === "Retry" ? settlement.delay : Number.NaN
    lab.checkDelay("the retry", delay, at, lab.runs[1]!.at)
    return delay / lab.unit
  })

const one = { maxBatchSize: 1, maxBatchTimeout: 0 }

const onMessage = (batch: Handler.Batch<unknown>, delay: number) => batch.messages[0]!.retry({ delay })
const onBatch = (batch: Handler.Batch<unknown>, delay: number) => batch.retryAll({ delay })

const source = (
  name: string,
  given: Parameters<typeof asked>[1],
  expected: number,
  call: typeof onMessage = onMessage
): Case.Case =>
  test(name, function* (lab) {
    Check.equal("units of delay", yield* asked(lab, given, call), expected)
  })

export const cases: ReadonlyArray<Case.Case> = [
  source(
    "a message's own delay beats the error's, the policy's and the consumer's",
    ["explicit", "error", "policy", "consumer"],
    1
  ),
  source(
    "retryAll's delay beats the error's, the policy's and the consumer's",
    ["explicit", "error", "policy", "consumer"],
    1,
    onBatch
  ),
  source("an error's retryAfter beats the policy's and the consumer's delay", ["error", "policy", "consumer"], 2),
  source("the policy's backoff beats the consumer's delay", ["policy", "consumer"], 3),
  source("the consumer's delay is used when there is no other", ["consumer"], 4),
  source("without any delay the retry comes at once", [], 0),
  source("an explicit delay of 0 beats all others", ["zero", "error", "policy", "consumer"], 0),
  source("an explicit delay of 0 on the batch beats all others", ["zero", "error", "policy", "consumer"], 0, onBatch),
  test("retryAfter may be a date", function* (lab) {
    // A date has whole seconds, so the delay may be off by one second.
    const due = Math.ceil(lab.now() / 1000) * 1000 + 2000
    yield* lab.send("a")
    yield* lab.start({}, (message) =>
      message.attempts === 1
        ? Effect.fail(new Failure.RetryLaterError({ message: "later", retryAfter: new Date(due).toUTCString() }))
        : Effect.void
    )
    const [, second] = yield* lab.untilRuns(2)
    const { at } = lab.entriesOf("Settling")[0]!
    lab.checkDelay("the retry", Math.max(0, due - at), at, second!.at)
  }),
  test("a backoff grows with the message's attempts", function* (lab) {
    yield* lab.send("a")
    const retry = RetryPolicy.make({ backoff: Backoff.linear(lab.unit) })
    yield* lab.start({ retry }, () => Effect.fail(new Error("no")))
    yield* lab.untilRuns(4)
    for (const attempt of [1, 2, 3]) {
      const { at, settlement } = lab.entriesOf("Settling").find(({ delivery }) => delivery.attempts === attempt)!
      const delay = attempt * lab.unit
      Check.equal("delay", settlement._tag === "Retry" && settlement.delay, delay)
      lab.checkDelay(`retry ${attempt}`, delay, at, lab.runs[attempt]!.at)
    }
  }),
  test("retries with shorter delays overtake those with longer ones", function* (lab) {
    yield* lab.send("d4", "d1", "d3", "d2")
    yield* lab.start({}, (message) => {
      if (message.attempts === 1) message.retry({ delay: Number(message.id.slice(1)) * lab.unit })
    })
    yield* lab.untilRuns(8)
    const again = lab.runs.filter(({ attempts }) => attempts === 2)
    const due = new Map<string, number>()
    for (const { at, delivery, settlement } of lab.entriesOf("Settling")) {
      if (settlement._tag === "Retry") due.set(delivery.metadata.id, at + settlement.delay)
    }
    // On a slow machine, the first retry may be requested so long before the others that it is due before theirs.
    const late = again.flatMap(({ id }, index) =>
      again
        .slice(0, index)
        .flatMap((before) => (due.get(before.id)! > due.get(id)! + lab.unit / 2 ? [[before.id, id]] : []))
    )
    lab.checkTimely("retries that came after later ones", late, [], lab.runs[0]!.at)
    for (const { at, delivery, settlement } of lab.entriesOf("Settling")) {
      const run = again.find(({ id }) => id === delivery.metadata.id)!
      if (settlement._tag === "Retry") lab.checkDelay(run.id, settlement.delay, at, run.at)
    }
  }),
  test("of many retries at a time, none is early and none is late", function* (lab) {
    const ids = Array.from({ length: 20 }, (_, index) => `m${index}`)
    yield* lab.send(...ids)
    yield* lab.start({ concurrency: ids.length }, (message) => {
      if (message.attempts === 1)
        message.retry({ delay: lab.unit + Math.round((ids.indexOf(message.id) * lab.unit) / 10) })
    })
    const again = () => lab.runs.filter(({ attempts }) => attempts > 1)
    yield* lab.until("all of them again", () => again().length === ids.length)
    for (const { at, delivery, settlement } of lab.entriesOf("Settling")) {
      const { id } = delivery.metadata
      if (settlement._tag !== "Retry") continue
      lab.checkDelay(id, settlement.delay, at, again().find((run) => run.id === id)!.at)
    }
  }),
  test("a delayed retry does not hold up what is not delayed", function* (lab) {
    yield* lab.send("slow")
    yield* lab.start({}, (message) => {
      if (message.id === "slow" && message.attempts === 1) message.retry({ delay: 5 * lab.unit })
    })
    yield* lab.untilEvents("RetryScheduled", 1)
    const sent = lab.now()
    yield* lab.send("a", "b")
    for (const id of ["a", "b"]) {
      yield* lab.until(`a run of ${id}`, () => lab.runs.some((run) => run.id === id))
      lab.checkDelay(id, 0, sent, lab.runs.find((run) => run.id === id)!.at, {
        accepted: lab.entriesOf("Published").at(-1)!.at
      })
    }
  }),
  test("an invalid delay is refused where it is given", function* (lab) {
    const refused: Array<unknown> = []
    yield* lab.send("a")
    yield* lab.start({}, (message) => {
      for (const delay of [-1, Number.NaN, Number.POSITIVE_INFINITY, 24 * 60 * 60 * 1000 + 1]) {
        try {
          message.retry({ delay })
        } catch (error) {
          refused.push(error)
        }
      }
    })
    yield* lab.untilEvents("Succeeded", 1)
    Check.equal(
      "refusals",
      refused.map((error) => error instanceof Delay.InvalidDelay),
      [true, true, true, true]
    )
    yield* lab.untilEmpty
  }),
  test(
    "a retry may be 24 hours away",
    function* (lab) {
      yield* lab.send("a")
      yield* lab.start({}, (message) => message.retry({ delay: "24 hours" }))
      yield* lab.untilEvents("RetryScheduled", 1)
      yield* lab.untilPending({ delayed: 1, inFlight: 0, ready: 0 })
      yield* lab.quiet()
      Check.equal("runs", lab.runs.length, 1)
    },
    Needs.longRetries
  ),
  test(
    "a policy beyond the broker's longest delay keeps the consumer from starting",
    function* (lab) {
      const retry = RetryPolicy.make({ backoff: Backoff.constant("24 hours") })
      const error = yield* Effect.flip(lab.start({ retry }))
      Check.equal("error", [error._tag, "field" in error && error.field], ["ConfigurationError", "retry.backoff"])
    },
    Needs.limitedRetries
  )
]
