/** Dead letters, as the broker itself stores them. */
import { Backoff, Broker, Codec, type Message, QueueDefinition, RetryPolicy } from "@requeue/core"
import { Metadata, Outgoing } from "@requeue/core/port"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import * as Needs from "../Needs.ts"

const test = Case.inGroup("dead letters")

const boom = () => Effect.fail(new Error("boom"))

/** A trace context with all kinds of characters that its grammar allows. https://www.w3.org/TR/trace-context/ */
const traceContext = {
  traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  tracestate: "rojo=00f067aa0ba902b7,tenant@vendor=a:b;c/d*e_f-g"
}

const pick = ({ headers }: { readonly headers: Message.Headers }) => ({
  traceparent: headers["traceparent"],
  tracestate: headers["tracestate"]
})

const once = RetryPolicy.make({ maxRetries: 0 })

export const cases: ReadonlyArray<Case.Case> = [
  test("a dead letter keeps its body's bytes and its headers", function* (lab) {
    const body = Uint8Array.from({ length: 512 }, (_, index) => (255 - index) & 255)
    const queue = QueueDefinition.make(lab.queue, { codec: Codec.bytes })
    const producer = yield* lab.producer(queue)
    yield* producer.send(body, { headers: { "x-tenant": "ü" } })
    yield* lab.start({ retry: once }, boom, queue)
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.sameBytes("body", letter!.body, body)
    Check.equal("headers", letter!.headers, { "content-type": "application/octet-stream", "x-tenant": "ü" })
  }),
  test("a handler that writes into its message changes neither the next attempt nor the dead letter", function* (lab) {
    const body = new Uint8Array([1, 2, 3])
    // It returns the very bytes that it receives.
    const codec: Codec.Codec<Uint8Array> = { ...Codec.bytes, decode: (bytes) => bytes }
    const queue = QueueDefinition.make(lab.queue, { codec })
    const producer = yield* lab.producer(queue)
    yield* producer.send(body, { headers: { "x-tenant": "a" } })
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(lab.unit) })
    const seen: Array<unknown> = []
    const handler = (message: Message.Message<Uint8Array>) => {
      seen.push([[...message.body], message.headers["x-tenant"]])
      message.body.fill(0)
      // It throws where headers are frozen.
      return Effect.sync(() => Object.assign(message.headers, { "x-tenant": "b" })).pipe(Effect.andThen(boom()))
    }
    yield* lab.start({ retry }, handler, queue)
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("attempts", seen, [
      [[1, 2, 3], "a"],
      [[1, 2, 3], "a"]
    ])
    Check.sameBytes("body", letter!.body, body)
    Check.equal("headers", letter!.headers, { "content-type": "application/octet-stream", "x-tenant": "a" })
  }),
  test("a dead letter has origin, id, attempts, times, reason and error", function* (lab) {
    const sent = lab.now()
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1 }) }, () => Effect.fail(new TypeError("no such user")))
    const [letter] = yield* lab.untilDeadLetters(1)
    const { deadLetter, firstPublished, id, redrives } = letter!.metadata
    Check.equal("id", id, "a")
    Check.equal("redrives", redrives, 0)
    const { at, error, ...rest } = Check.present("the dead letter's own metadata", deadLetter)
    Check.equal("dead letter", rest, { queue: lab.queue, attempts: 2, reason: "retries-exhausted" })
    Check.equal("error", [error.name, error.message], ["TypeError", "no such user"])
    Check.isTrue("times in order", sent <= firstPublished && firstPublished <= at && at <= lab.now(), {
      sent,
      firstPublished,
      at
    })
    yield* lab.untilEmpty
  }),
  test(
    "the history has the failed attempts before the last one",
    function* (lab) {
      yield* lab.send("a")
      yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 2 }) }, (message) =>
        message.attempts === 2 ? message.retry({ delay: lab.unit }) : boom()
      )
      const [letter] = yield* lab.untilDeadLetters(1)
      const { history } = letter!.metadata
      Check.equal(
        "attempts",
        history.map(({ attempt }) => attempt),
        [1, 2]
      )
      Check.equal(
        "errors",
        history.map(({ error }) => error),
        ["Error: boom", "retry()"]
      )
      Check.equal(
        "delays",
        history.map(({ delay }) => delay),
        [0, lab.unit]
      )
      Check.isTrue("times in order", history[0]!.at <= history[1]!.at)
    },
    Needs.has("historyOnRetry")
  ),
  test(
    "the history keeps the last ten attempts",
    function* (lab) {
      yield* lab.send("a")
      yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 13 }) }, boom)
      const [letter] = yield* lab.untilDeadLetters(1)
      const attempts = letter!.metadata.history.map(({ attempt }) => attempt)
      Check.equal("attempts", attempts, [4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
    },
    Needs.has("historyOnRetry")
  ),
  test(
    "where retries leave no history, the dead letter still has the last error and all attempts",
    function* (lab) {
      yield* lab.send("a")
      yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 5 }) }, boom)
      const [letter] = yield* lab.untilDeadLetters(1)
      Check.equal("attempts", letter!.metadata.deadLetter?.attempts, 6)
      Check.equal("error", letter!.metadata.deadLetter?.error.message, "boom")
    },
    Needs.lacks("historyOnRetry")
  ),
  test("long errors are cut: the metadata stays within its budget", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 12 }) }, () => Effect.fail(new Error("é".repeat(20_000))))
    const [letter] = yield* lab.untilDeadLetters(1)
    const size = new TextEncoder().encode(Metadata.encode(letter!.metadata)).length
    Check.isTrue(`metadata of at most ${Metadata.budget} bytes`, size <= Metadata.budget, size)
    Check.equal("attempts", letter!.metadata.deadLetter?.attempts, 13)
  }),
  test("when a dead-lettering is reported, the dead letter is in its queue", function* (lab) {
    yield* lab.send("a")
    yield* lab.start({ retry: once }, boom)
    yield* lab.until("the settlement", () => lab.entriesOf("Settled").length > 0)
    yield* lab.quiet(lab.harness.settleTime)
    Check.equal("dead letters", (yield* lab.harness.deadLetters(lab.dlq)).length, 1)
  }),
  test("a dead-letter queue is a queue like any other, and its letters can be sent back to work", function* (lab) {
    yield* lab.send("a")
    const consumer = yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1 }) }, boom)
    yield* lab.untilDeadLetters(1)
    yield* consumer.drain()
    const sub = yield* lab.start({}, () => {}, lab.dlq)
    const letter = (yield* lab.untilRuns(3))[2]!
    Check.equal("the letter's own attempts", [letter.id, letter.body, letter.attempts], ["a", "a", 1])
    yield* sub.drain()
    const delivered = lab.entriesOf("Delivered").at(-1)!.delivery
    yield* lab.broker.publish([Outgoing.redrive(delivered, lab.queue)])
    yield* lab.start()
    const again = (yield* lab.untilRuns(4))[3]!
    Check.equal("redriven", [again.id, again.body, again.attempts], ["a", "a", 1])
    const { deadLetter, firstPublished, redrives } = lab.entriesOf("Delivered").at(-1)!.delivery.metadata
    Check.equal("metadata", [redrives, deadLetter, firstPublished], [1, undefined, delivered.metadata.firstPublished])
  }),
  test("a dead letter that another tool moved back to its queue is redriven, and counted as such", function* (lab) {
    const sent = Outgoing.make(
      { queue: lab.queue, id: "a", body: Codec.json.encode("a"), headers: {}, delay: 0 },
      lab.now()
    )
    const error = { name: "Error", message: "boom" }
    const deadLetter = { queue: lab.queue, attempts: 4, reason: "retries-exhausted", at: lab.now(), error } as const
    yield* lab.broker.publish([{ ...sent, metadata: { ...sent.metadata, deadLetter } }])
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 1 }) }, (message) =>
      message.attempts === 1 ? message.retry({ delay: lab.unit }) : boom()
    )
    const [letter] = yield* lab.untilDeadLetters(1)
    const { metadata } = letter!
    Check.equal("redrives", metadata.redrives, 1)
    Check.equal("attempts since then", metadata.deadLetter?.attempts, 2)
  }),
  test("trace context survives retries, the dead letter and a redrive", function* (lab) {
    const producer = yield* lab.producer()
    yield* producer.send("a", { headers: traceContext })
    yield* lab.start({ retry: RetryPolicy.make({ maxRetries: 2 }) }, (message) =>
      message.attempts === 2 ? message.retry({ delay: lab.unit }) : boom()
    )
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("the dead letter's", pick(letter!), traceContext)
    const letters = yield* Effect.provideService(DeadLetters.make(lab.dlq), Broker.Broker, lab.broker)
    yield* letters.redrive()
    const runs = yield* lab.untilRuns(4)
    Check.equal("attempts", runs.map(({ attempts }) => attempts).slice(0, 4), [1, 2, 3, 1])
    for (const run of runs) Check.equal(`of attempt ${run.attempts}`, pick(run), traceContext)
  })
]
