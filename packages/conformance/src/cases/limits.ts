/** The number of deliveries of a message. */
import { Backoff, BatchPolicy, type Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"

const test = Case.inGroup("retry limits")

const fail = () => Effect.fail(new Error("no"))

const attempts = (lab: Lab) => lab.runs.map((run) => run.attempts)

/** Checks that a handler that always fails sees attempts 1 to `runs`, and that the message then becomes a dead letter. */
const exhausts = (lab: Lab, retry: RetryPolicy.RetryPolicy | undefined, runs: number) =>
  Effect.gen(function* () {
    yield* lab.send("a")
    yield* lab.start({ retry }, fail)
    const [letter] = yield* lab.untilDeadLetters(1)
    yield* lab.quiet()
    Check.equal(
      "attempts that the handler saw",
      attempts(lab),
      Array.from({ length: runs }, (_, index) => index + 1)
    )
    Check.equal("reason", letter!.metadata.deadLetter?.reason, "retries-exhausted")
    Check.equal("attempts in the dead letter", letter!.metadata.deadLetter?.attempts, runs)
    yield* lab.untilEmpty
  })

export const cases: ReadonlyArray<Case.Case> = [
  test("maxRetries 0: one delivery, then the dead letters", (lab) =>
    exhausts(lab, RetryPolicy.make({ maxRetries: 0 }), 1)),
  test("maxRetries 1: two deliveries, then the dead letters", (lab) =>
    exhausts(lab, RetryPolicy.make({ maxRetries: 1 }), 2)),
  test("maxRetries 3: attempts 1 to 4, then the dead letters", (lab) =>
    exhausts(lab, RetryPolicy.make({ maxRetries: 3 }), 4)),
  test("maxAttempts is the same limit, counted with the first delivery", (lab) =>
    exhausts(lab, RetryPolicy.make({ maxAttempts: 3 }), 3)),
  test("without a policy there are 3 retries", (lab) => exhausts(lab, undefined, 4)),
  test("delayed retries count as well", (lab) =>
    exhausts(lab, RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(lab.unit) }), 3)),
  test("unlimited retries go on beyond the default limit", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: "unlimited" }) }, (message) =>
      message.attempts < 9 ? fail() : Effect.void
    )
    yield* lab.untilEvents("Succeeded", 1)
    Check.equal("attempts", attempts(lab), [1, 2, 3, 4, 5, 6, 7, 8, 9])
  }),
  test("an explicit retry on the last attempt dead-letters", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1 }) }, (message) => message.retry({ delay: 0 }))
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("attempts", attempts(lab), [1, 2])
    Check.equal("reason", letter!.metadata.deadLetter?.reason, "retries-exhausted")
  }),
  test("retryAll on the last attempt dead-letters every message", function* (lab) {
    yield* lab.send("a", "b")
    yield* lab.startBatch({ retry: RetryPolicy.make({ maxRetries: 0 }) }, (batch) => batch.retryAll({ delay: 0 }))
    const letters = yield* lab.untilDeadLetters(2)
    Check.equal("ids", letters.map(({ metadata }) => metadata.id).toSorted(), ["a", "b"])
    Check.equal("attempts", attempts(lab), [1, 1])
  }),
  test("no retry becomes due after maxAge: the message is too old", function* (lab) {
    const retry = RetryPolicy.make({
      maxRetries: "unlimited",
      maxAge: 4.5 * lab.unit + 2 * lab.slack,
      backoff: Backoff.constant(lab.unit)
    })
    // A message ages while a consumer starts.
    yield* lab.start({ retry }, fail)
    yield* lab.send("a")
    const start = lab.now()
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("reason", letter!.metadata.deadLetter?.reason, "too-old")
    const last = lab.runs.at(-1)!
    lab.checkDelay("the last attempt, once too old", 0, Math.min(last.at, start + retry.maxAge), last.at)
    lab.checkTimely("there were retries before", lab.runs.length >= 2, true, start)
  }),
  test("immediate retries run the handler again in the same delivery", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1, immediate: 2 }) }, fail)
    yield* lab.untilDeadLetters(1)
    Check.equal("attempts", attempts(lab), [1, 1, 1, 2, 2, 2])
    checkKept(lab, "deliveries", lab.entriesOf("Delivered").length, 2, lab.runs[0]!.at)
    Check.equal("reported reruns", lab.eventsOf("AttemptFailed").filter(({ willRerun }) => willRerun).length, 4)
  }),
  test("an immediate retry that succeeds acks", function* (lab) {
    yield* lab.send("a")
    let runs = 0
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 0, immediate: 1 }) }, () =>
      ++runs === 1 ? fail() : Effect.void
    )
    yield* lab.untilEvents("Succeeded", 1)
    yield* lab.untilEmpty
    Check.equal("runs", runs, 2)
  }),
  test("attempts are the message's: another consumer goes on counting", function* (lab) {
    yield* lab.send("a")
    const first: Consumer.Consumer = yield* lab.start({}, (message) => {
      if (message.attempts < 2) return fail()
      // It would return the third delivery, which some brokers count.
      first.pause()
      return message.retry({ delay: 3 * lab.unit })
    })
    yield* lab.untilEvents("RetryScheduled", 2)
    yield* first.drain()
    yield* lab.start({}, fail)
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("attempts", attempts(lab), [1, 2, 3, 4])
    Check.equal("attempts in the dead letter", letter!.metadata.deadLetter?.attempts, 4)
  }),
  test("a message beyond its attempts is run once more, and beyond maxDeliveries it is dead-lettered without a run", function* (lab) {
    // As after crashes: deliveries were counted, though they never ended.
    yield* lab.publish("a", { attempts: 3 })
    yield* lab.publish("b", { attempts: 13 })
    yield* lab.publish("c", { attempts: 14 })
    yield* lab.start({}, fail)
    const letters = yield* lab.untilDeadLetters(3)
    Check.equal("runs", lab.runs.map(({ attempts, id }) => `${id} ${attempts}`).toSorted(), ["a 4", "b 14"])
    Check.equal(
      "reasons",
      letters
        .map(({ metadata: { deadLetter, id } }) => `${id} ${deadLetter?.reason} ${deadLetter?.attempts}`)
        .toSorted(),
      ["a retries-exhausted 4", "b retries-exhausted 14", "c too-many-deliveries 15"]
    )
  }),
  test("with maxDeliveries equal to maxAttempts, no message is run that was delivered as often, seen or unseen", function* (lab) {
    // As after crashes: it is unknown whether a handler has seen them.
    yield* lab.publish("a", { attempts: 1 })
    yield* lab.publish("b", { attempts: 2 })
    yield* lab.start({ retry: RetryPolicy.make({ maxAttempts: 2, maxDeliveries: 2 }) }, fail)
    const letters = yield* lab.untilDeadLetters(2)
    Check.equal(
      "runs",
      lab.runs.map(({ attempts, id }) => `${id} ${attempts}`),
      ["a 2"]
    )
    Check.equal(
      "reasons",
      letters.map(({ metadata: { deadLetter, id } }) => `${id} ${deadLetter?.reason}`).toSorted(),
      ["a retries-exhausted", "b too-many-deliveries"]
    )
    yield* lab.untilEmpty
  }),
  test("messages that may have killed their process run alone, one after another, and hold up no other", function* (lab) {
    let [running, most] = [0, 0]
    const suspects = ["s1", "s2", "s3"]
    const good = ["a", "b", "c", "d", "e", "f"]
    yield* lab.send(...good.slice(0, 3))
    for (const id of suspects) yield* lab.publish(id, { attempts: 4 })
    yield* lab.send(...good.slice(3))
    yield* lab.start({ concurrency: 5 }, ({ id }) =>
      Effect.gen(function* () {
        running++
        if (suspects.includes(id)) most = Math.max(most, running)
        yield* Effect.sleep(lab.unit / 2)
        if (suspects.includes(id)) most = Math.max(most, running)
        running--
      })
    )
    yield* lab.untilEvents("Succeeded", 9)
    Check.equal("handlers running with a suspect, itself included", most, 1)
    Check.equal("runs", lab.runs.map(({ id }) => id).toSorted(), [...good, ...suspects])
    yield* lab.untilEmpty
  }),
  test("an immediate retry of a batch runs only what has no verdict yet", function* (lab) {
    yield* lab.send("a", "b", "c")
    const batch = BatchPolicy.make({ maxBatchSize: 3, maxBatchTimeout: 60_000 })
    let runs = 0
    yield* lab.startBatch({ batch, retry: RetryPolicy.make({ immediate: 1 }) }, ({ messages }) => {
      if (++runs > 1) return undefined
      messages.find(({ id }) => id === "a")?.ack()
      messages.find(({ id }) => id === "b")?.retry({ delay: lab.unit })
      return fail()
    })
    yield* lab.untilEvents("Succeeded", 2)
    const second = lab.runs.filter((run) => run.batch === 1)
    Check.equal(
      "messages of the second run",
      second.map(({ attempts, id }) => [id, attempts]),
      [["c", 1]]
    )
  })
]
