/** A consumer that slows down while something that all its messages need is down. */
import { Backoff, BatchPolicy, ConsumerBackoff, Failure, RetryPolicy } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("consumer backoff")

/** A backoff with pauses of 1, 2, 4 and 8 units. */
const policy = (lab: Lab, options: ConsumerBackoff.PauseOptions = {}) =>
  ConsumerBackoff.nsq({ multiplier: lab.unit / 2, maxBackoffDuration: 8 * lab.unit, ...options })

/** A retry policy with many late retries: only the backoff decides when a handler runs. */
const patient = (lab: Lab) => RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant(50 * lab.unit) })

const credits = (lab: Lab) => lab.entriesOf("Credit").map(({ limit }) => limit)
/** The pauses after failing handlers, in units. A broker that does not answer in time causes further pauses. */
const pauses = (lab: Lab) =>
  lab.eventsOf("BackoffEntered").flatMap(({ because, wait }) => (because === "handler" ? [wait / lab.unit] : []))

/** The number of unanswered settlements when credit was last granted. */
const unsettled = ({ log }: Lab): number => {
  const before = log.slice(
    0,
    log.findLastIndex(({ _tag }) => _tag === "Credit")
  )
  const count = (tag: "Settling" | "Settled") => before.filter(({ _tag }) => _tag === tag).length
  return count("Settling") - count("Settled")
}

const hasLeft = (lab: Lab) => lab.eventsOf("BackoffLeft").some(({ because }) => because === "handler")

/** Whether a lease was lost, which counts as a failure. */
const hasLostLease = (lab: Lab): boolean =>
  lab.eventsOf("SettleFailed").some(({ error }) => "reason" in error && error.reason === "LeaseLost")

/** Checks the pauses. Further ones may follow a lost lease. */
const checkPauses = (lab: Lab, expected: ReadonlyArray<number>): void => {
  const seen = pauses(lab)
  Check.equal("pauses", hasLostLease(lab) ? seen.slice(0, expected.length) : seen, expected)
}

const fail = () => Effect.fail(new Error("down"))

/** Checks that each run began as soon as the broker had confirmed the previous settlement, or sooner. */
const checkUnpaused = (lab: Lab): void => {
  for (const [index, { at }] of lab.entriesOf("Settled").entries()) {
    const next = lab.runs[index + 1]
    if (next !== undefined) lab.checkDelay(`run ${index + 2}`, 0, Math.min(at, next.at), next.at)
  }
}

/** Starts a consumer of 20 messages whose runs fail until they have paused it this often. */
const failing = (lab: Lab, failures: number, options: ConsumerBackoff.PauseOptions = {}) =>
  Effect.gen(function* () {
    yield* lab.send(...Array.from({ length: 20 }, (_, index) => `m${index}`))
    return yield* lab.start({ retry: patient(lab), consumerBackoff: policy(lab, options) }, () =>
      pauses(lab).length < failures ? fail() : undefined
    )
  })

/** Runs that fail at each `F` of the text. Checks that the last of them begins the first pause, and the next is the probe. */
const checkFirstPause = (lab: Lab, consumerBackoff: ConsumerBackoff.ConsumerBackoff, outcomes: string) =>
  Effect.gen(function* () {
    yield* lab.send(...Array.from({ length: 2 * outcomes.length }, (_, index) => `m${index}`))
    const pausesBefore: Array<number> = []
    yield* lab.start({ retry: patient(lab), consumerBackoff }, () => {
      const run = pausesBefore.push(pauses(lab).length)
      return outcomes[run - 1] === "F" ? fail() : undefined
    })
    yield* lab.untilRuns(outcomes.length + 1)
    checkPauses(lab, [1])
    if (hasLostLease(lab)) return
    Check.equal(
      "pauses before each run",
      pausesBefore.slice(0, outcomes.length),
      Array.from(outcomes, () => 0)
    )
    const [last, probe] = [lab.runs[outcomes.length - 1]!, lab.runs[outcomes.length]!]
    lab.checkDelay("the pause", lab.unit, last.at, probe.at)
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("off by default: failures slow nothing down", function* (lab) {
    yield* lab.send("a", "b", "c", "d")
    yield* lab.start({ retry: patient(lab) }, fail)
    yield* lab.untilRuns(4)
    checkUnpaused(lab)
    checkPauses(lab, [])
    // A broker that does not answer in time withdraws the credit as well.
    const isSlowed = lab.eventsOf("BackoffEntered").length > 0
    Check.isTrue("credit never falls", isSlowed || !credits(lab).slice(1).includes(0), credits(lab))
  }),
  test("a failure pauses the consumer, then one probe decides", function* (lab) {
    let [atProbe, beside]: [ReadonlyArray<number>, number] = [[], 0]
    yield* lab.send("a", "b", "c", "d", "e")
    yield* lab.start({ retry: patient(lab), consumerBackoff: policy(lab) }, () => {
      if (lab.runs.length === 2) [atProbe, beside] = [credits(lab), unsettled(lab)]
      return lab.runs.length === 1 ? fail() : undefined
    })
    yield* lab.untilRuns(3)
    lab.checkDelay("the pause", lab.unit, lab.runs[0]!.at, lab.runs[1]!.at)
    checkPauses(lab, [1])
    yield* lab.until("the end of the backoff", () => hasLeft(lab))
    // On a machine that is late, the probe may begin before there is credit for it.
    Check.equal("credit in the pause", atProbe.slice(0, 2), [2, 0])
    // A late broker may still hold the settlement of the first message, which occupies a slot.
    Check.isTrue("credit of the probe", Math.max(...atProbe.slice(1)) <= 1 + beside, atProbe)
    yield* lab.until("all the credit", () => credits(lab).at(-1) === 2)
  }),
  test("credit 0 is given before the retry of the message that caused it", function* (lab) {
    yield* failing(lab, 1)
    yield* lab.untilEvents("RetryScheduled", 1)
    const order = lab.log.flatMap(
      (entry): Array<string | number> =>
        entry._tag === "Settling" ? ["retry"] : entry._tag === "Credit" ? [entry.limit] : []
    )
    Check.equal("order", order.slice(0, 3), [2, 0, "retry"])
  }),
  test("the probe is a single message, whatever the concurrency and the batch", function* (lab) {
    yield* lab.send(...Array.from({ length: 30 }, (_, index) => `m${index}`))
    const gate = yield* Deferred.make<void>()
    const batch = BatchPolicy.make({ maxBatchSize: 4, maxBatchTimeout: lab.unit })
    /** The sizes of the batches that begin after the first pause did. */
    const probes: Array<number> = []
    yield* lab.startBatch({ retry: patient(lab), consumerBackoff: policy(lab), batch, concurrency: 3 }, (given) => {
      if (pauses(lab).length === 0) return fail()
      probes.push(given.messages.length)
      return Deferred.await(gate)
    })
    yield* lab.until("the probe", () => probes.length > 0)
    yield* lab.quiet(3 * lab.unit)
    Check.equal("messages in the probe", probes, [1])
    yield* Deferred.succeed(gate, undefined)
    yield* lab.untilEvents("Succeeded", 5)
  }),
  test("a probe that fails doubles the pause, up to the longest", function* (lab) {
    yield* failing(lab, 5, { maxBackoffDuration: 4 * lab.unit })
    yield* lab.until("five pauses", () => pauses(lab).length >= 5)
    checkPauses(lab, [1, 2, 4, 4, 4])
    const [first, second, third] = lab.runs
    lab.checkDelay("the first pause", lab.unit, first!.at, second!.at)
    lab.checkDelay("the second pause", 2 * lab.unit, second!.at, third!.at)
  }),
  test("stepwise recovery comes back one level at a time", function* (lab) {
    yield* failing(lab, 3, { recovery: "stepwise" })
    yield* lab.until("the end of the backoff", () => hasLeft(lab))
    checkPauses(lab, [1, 2, 4, 2, 1])
    for (const [index, units] of [1, 2, 4, 2, 1].entries()) {
      lab.checkDelay(`pause ${index + 1}`, units * lab.unit, lab.runs[index]!.at, lab.runs[index + 1]!.at)
    }
  }),
  test("with resume, a failure after the recovery counts on from the level that is left", function* (lab) {
    let runs = 0
    yield* lab.send(...Array.from({ length: 10 }, (_, index) => `m${index}`))
    // Levels: 1, 2, then the probe succeeds: 1; the next failure pauses for level 2 again.
    const outcomes = [fail, fail, undefined, fail]
    yield* lab.start({ retry: patient(lab), consumerBackoff: policy(lab) }, () => outcomes[runs++]?.())
    yield* lab.until("three pauses", () => pauses(lab).length >= 3)
    checkPauses(lab, [1, 2, 2])
  }),
  test("a success from before the pause does not end it", function* (lab) {
    yield* lab.send("a", "b", "c", "d", "e")
    let [runs, left] = [0, Number.NaN]
    yield* lab.start({ retry: patient(lab), consumerBackoff: policy(lab), concurrency: 2 }, () => {
      runs++
      if (runs === 1) return lab.until("a pause", () => pauses(lab).length > 0)
      if (runs === 2) return fail()
      if (runs === 3) left = lab.eventsOf("BackoffLeft").length
      // The probe runs long enough that a further stale success would be mistaken for the probe's.
      return Effect.sleep(lab.unit)
    })
    yield* lab.untilEvents("Succeeded", 1)
    yield* lab.untilRuns(3)
    Check.equal("the backoff was left before the probe", left, 0)
    // From the run that failed: the credit may be withdrawn later.
    lab.checkDelay("the pause", lab.unit, lab.runs[1]!.at, lab.runs[2]!.at)
  }),
  test("a retry that opts out pauses nothing", function* (lab) {
    yield* lab.send("a", "b", "c")
    const options = { retry: patient(lab), consumerBackoff: policy(lab) }
    yield* lab.start(options, (message) => message.retry({ backoff: false, delay: 50 * lab.unit }))
    yield* lab.untilRuns(3)
    checkUnpaused(lab)
    checkPauses(lab, [])
  }),
  test("a probe that opts out pauses for the same time again, and never hangs", function* (lab) {
    let runs = 0
    yield* lab.send("a", "b", "c", "d")
    yield* lab.start({ retry: patient(lab), consumerBackoff: policy(lab) }, (message) => {
      runs++
      if (runs === 1) return fail()
      return runs === 2 ? message.retry({ backoff: false }) : undefined
    })
    yield* lab.untilEvents("Succeeded", 2)
    checkPauses(lab, [1, 1])
    lab.checkDelay("the second pause", lab.unit, lab.runs[1]!.at, lab.runs[2]!.at)
  }),
  test("a message that is wrong in itself pauses nothing", function* (lab) {
    yield* lab.send("a", "b")
    yield* lab.start({ consumerBackoff: policy(lab) }, () =>
      Effect.fail(new Failure.PermanentError({ message: "bad" }))
    )
    yield* lab.untilDeadLetters(2)
    checkPauses(lab, [])
  }),
  test(
    "backoff survives a new connection: still paused, and then the first credit is 1",
    function* (lab) {
      // Long enough for the retry, the cut and the new connection.
      yield* failing(lab, 1, { multiplier: 10 * lab.unit, maxBackoffDuration: 20 * lab.unit })
      yield* lab.untilEvents("BackoffEntered", 1)
      // Otherwise the cut would hit the retry's copy in flight, and slow the consumer down for a second reason.
      yield* lab.untilEvents("RetryScheduled", 1)
      yield* lab.harness.cutConnections!
      yield* lab.untilReconnected
      yield* lab.until("the probe", () => lab.runs.length > 1)
      lab.checkDelay("the pause", 20 * lab.unit, lab.runs[0]!.at, lab.runs[1]!.at)
      const given = (entries: Lab["log"]) =>
        entries.flatMap((entry) => (entry._tag === "Credit" && entry.limit > 0 ? [entry.limit] : []))
      const paused = lab.log.findIndex((entry) => entry._tag === "Credit" && entry.limit === 0)
      const back = lab.log.findIndex(({ _tag }) => _tag === "Reconnected")
      const early = given(lab.log.slice(paused, back))
      // On a late machine, the pause may be over before the connection is up again.
      lab.checkTimely("credit before the connection was back", early, [], lab.runs[0]!.at)
      if (early.length === 0) Check.equal("first credit", given(lab.log.slice(back))[0], 1)
    },
    Needs.boundConnections
  ),
  test("a longest pause of 0 turns it off", function* (lab) {
    yield* failing(lab, 3, { maxBackoffDuration: 0 })
    yield* lab.untilRuns(5)
    Check.equal("pauses", pauses(lab), [])
    checkUnpaused(lab)
  }),
  test("consecutive: this many failures in a row pause the consumer, and others do not", function* (lab) {
    yield* checkFirstPause(lab, ConsumerBackoff.consecutive({ failures: 3, multiplier: lab.unit / 2 }), "FFSFFSFFF")
  }),
  test("consecutive: a batch that fails as a whole is one failure", function* (lab) {
    yield* lab.send(...Array.from({ length: 20 }, (_, index) => `m${index}`))
    const consumerBackoff = ConsumerBackoff.consecutive({ failures: 2, multiplier: lab.unit / 2 })
    const batch = BatchPolicy.make({ maxBatchSize: 4, maxBatchTimeout: lab.unit })
    const pausesBefore: Array<number> = []
    yield* lab.startBatch({ retry: patient(lab), consumerBackoff, batch }, () => {
      if (pausesBefore.push(pauses(lab).length) <= 2) throw new Error("down")
    })
    yield* lab.until("the probe", () => pausesBefore.length > 2)
    checkPauses(lab, [1])
    if (!hasLostLease(lab)) Check.equal("pauses before each run", pausesBefore.slice(0, 3), [0, 0, 1])
  }),
  test("ratio: a share of failures pauses the consumer, once there are enough attempts", function* (lab) {
    const window = { attempts: 100 }
    const consumerBackoff = ConsumerBackoff.ratio({
      failureRatio: 0.5,
      minAttempts: 6,
      window,
      multiplier: lab.unit / 2
    })
    // 2 of 2 are too few; 6 of 12 are half of a sufficient number.
    yield* checkFirstPause(lab, consumerBackoff, "FFSSSSSSFFFF")
  }),
  test("a message that no handler sees is no probe, and does not end the backoff", function* (lab) {
    yield* lab.send("a")
    for (let index = 0; index < 3; index++) {
      yield* lab.harness.publishRaw(lab.queue, new TextEncoder().encode("{"), {})
    }
    yield* lab.send("b")
    yield* lab.start({ retry: patient(lab), consumerBackoff: policy(lab) }, () =>
      lab.runs.length === 1 ? fail() : undefined
    )
    yield* lab.untilDeadLetters(3)
    yield* lab.untilEvents("Succeeded", 1)
    checkPauses(lab, [1])
    const [first, second] = [lab.runs[0]!.at, lab.runs[1]!.at]
    // The probe may have to wait for the messages that no handler sees.
    const unseen = lab.arrivals().filter(({ at, delivery }) => at < second && !/^[ab]$/.test(delivery.metadata.id))
    const turn = Math.max(first, ...unseen.map(({ at }) => at - lab.unit))
    lab.checkDelay("the pause", lab.unit, first, second, { accepted: turn })
  })
]
