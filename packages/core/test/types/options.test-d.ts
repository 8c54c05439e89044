/**
 * A type test: every object of options takes what it documents, and refuses what is misspelt or has another form.
 * Nothing here runs; `npm run check -- types` compiles it.
 */
import { Backoff, BatchPolicy, Consumer, ConsumerBackoff, Producer, Puller, RetryPolicy } from "@requeue/core"
import {
  connect,
  constant,
  deadLetterBudget,
  describe,
  exponential,
  linear,
  queue,
  type Requeue,
  retryPolicy,
  sequence,
  switchAfter,
  text
} from "@requeue/core/promise"

declare const requeue: Requeue
const handler = (): void => {}
const once = constant("1 second")

/** Every option by its name, so that what is refused below is refused for its spelling. */
export const accepted = [
  () => connect("memory:", { logLevel: "Debug", telemetry: undefined }),
  () => connect({ url: new URL("memory:") }),
  () => connect("memory:", { logger: console }),
  () => connect("memory:", { logger: Math.random() > 0.5 ? "json" : undefined }),
  () => connect("memory:", { logger: false }),
  () => queue("lines", { codec: text, delay: "1 second" }),
  () => requeue.send("orders", {}, { delay: "1 minute", headers: { trace: "1" }, id: "7" }),
  () => requeue.sendBatch("orders", [{ body: {}, delay: 0, headers: {}, id: "7" }], { delay: "1 minute" }),
  () =>
    requeue.consume(
      "orders",
      {
        retry: {
          maxRetries: "unlimited",
          maxAge: "1 day",
          immediate: 2,
          backoff: switchAfter(3, linear("10 seconds"), sequence(["1 minute", "5 minutes"])),
          classify: { permanent: ["Bad"], drop: [], uncounted: [], with: () => "retry-uncounted" },
          deadLetter: { queue: "dead", routes: { "too-old": "late" }, redact: (error) => error }
        },
        retryDelay: "5 seconds",
        batch: { maxBatchSize: 5, maxBatchTimeout: "1 second" },
        concurrency: 10,
        handlerTimeout: "unlimited",
        consumerBackoff: { multiplier: 1000, maxBackoffDuration: 0, strategy: "full-jitter", recovery: "stepwise" },
        deadLetterBudget: deadLetterBudget({ max: 10, perSuccess: 0.5 }),
        drainTimeout: { seconds: 20 },
        onLimit: "clamp",
        stackTraces: false,
        onEvent: (event) => console.log(event._tag)
      },
      handler
    ),
  () => requeue.consume("orders", { retry: retryPolicy({ maxAttempts: 3, deadLetter: "discard" }) }, handler),
  () => requeue.consume("orders", { consumerBackoff: true }, handler),
  () => requeue.consume("orders", { consumerBackoff: { form: "nsq", recovery: "stepwise" } }, handler),
  () => requeue.consume("orders", { consumerBackoff: { form: "consecutive", failures: 10 } }, handler),
  () => requeue.consume("orders", { consumerBackoff: { failures: 10 } }, handler),
  () => requeue.consume("orders", { consumerBackoff: { form: "ratio", window: { attempts: 100 } } }, handler),
  () => requeue.consume("orders", { consumerBackoff: ConsumerBackoff.ratio({ window: "1 minute" }) }, handler),
  () => requeue.consume("orders", { retry: undefined, batch: undefined, consumerBackoff: undefined }, handler),
  () => requeue.puller("orders", { lease: "1 minute", maxOpen: 3, retry: { maxRetries: 3 } }),
  () => exponential("1 second", { factor: 3, max: "1 hour", jitter: { proportional: 0.1 } }),
  () => Producer.make("orders", { publishTimeout: "5 seconds", maxPending: 10 })
]

export const connecting = [
  // @ts-expect-error it is called logLevel
  () => connect("memory:", { loglevel: "Debug" }),
  // @ts-expect-error levels begin with a capital
  () => connect("memory:", { logLevel: "debug" }),
  // @ts-expect-error true is no logger
  () => connect("memory:", { logger: true }),
  // @ts-expect-error nor is the function that makes one
  () => connect("memory:", { logger: () => console }),
  // @ts-expect-error nor what has no method for errors
  () => connect("memory:", { logger: { info: () => {}, warn: () => {} } }),
  // @ts-expect-error the broker is a URL, or an object with one
  () => connect({ uri: "memory:" }),
  // @ts-expect-error the broker must be named
  () => connect(),
  // @ts-expect-error it is called codec
  () => queue("lines", { codecs: text })
]

export const sending = [
  // @ts-expect-error it is called delay
  () => requeue.send("orders", {}, { delaySeconds: 2 }),
  // @ts-expect-error the delay is an option
  () => requeue.send("orders", {}, "2 seconds"),
  // @ts-expect-error a unit is one that is known
  () => requeue.send("orders", {}, { delay: "5 secs" }),
  // @ts-expect-error headers are text
  () => requeue.send("orders", {}, { headers: { attempt: 1 } }),
  // @ts-expect-error it is called delay
  () => requeue.sendBatch("orders", [{ body: {}, dealy: 2 }]),
  // @ts-expect-error it is called delay
  () => requeue.sendBatch("orders", [{ body: {} }], { dealy: 2 }),
  // @ts-expect-error it is called maxPending
  () => Producer.make("orders", { maxPendin: 10 })
]

export const consuming = [
  // @ts-expect-error options come before the handler
  () => requeue.consume("orders", handler),
  // @ts-expect-error it is called concurrency
  () => requeue.consume("orders", { concurency: 3 }, handler),
  // @ts-expect-error the timeout is a duration
  () => requeue.consume("orders", { handlerTimeout: "forever" }, handler),
  // @ts-expect-error it is "clamp"
  () => requeue.consume("orders", { onLimit: "clam" }, handler),
  // @ts-expect-error a dead letter is kept in a queue, or discarded
  () => requeue.consume("orders", { retry: { maxRetries: 1, deadLetter: { queue: "x", discard: true } } }, handler),
  // @ts-expect-error a budget is made by deadLetterBudget
  () => requeue.consume("orders", { deadLetterBudget: 5 }, handler),
  // @ts-expect-error it is "Received"
  () => requeue.consume("orders", { onEvent: (event) => event._tag === "Recieved" }, handler),
  // @ts-expect-error it is called concurrency
  () => requeue.consumeBatch("orders", { concurency: 3 }, handler),
  // @ts-expect-error it is called concurrency
  () => Consumer.start("orders", { concurency: 3 }, handler),
  // @ts-expect-error with Effect, policies are made by RetryPolicy.make
  () => Consumer.start("orders", { retry: { maxRetries: 3 } }, handler)
]

export const pulling = [
  // @ts-expect-error it is called lease
  () => requeue.puller("orders", { leas: "1 minute" }),
  // @ts-expect-error a puller has no handlers, so maxOpen
  () => requeue.puller("orders", { concurrency: 3 }),
  // @ts-expect-error it is called lease
  () => Puller.make("orders", { leas: "1 minute" }),
  // @ts-expect-error it is called wait
  async () => (await requeue.puller("orders")).pull({ timeout: 5 })
]

export const retrying = [
  // @ts-expect-error it is called maxRetries
  () => requeue.consume("orders", { retry: { maxRetry: 3 } }, handler),
  // @ts-expect-error the limit is given once
  () => requeue.consume("orders", { retry: { maxRetries: 3, maxAttempts: 4 } }, handler),
  // @ts-expect-error it is "unlimited"
  () => requeue.consume("orders", { retry: { maxRetries: "unlimted" } }, handler),
  // @ts-expect-error a policy is an object
  () => requeue.consume("orders", { retry: 5 }, handler),
  // @ts-expect-error a policy is an object
  () => requeue.consume("orders", { retry: false }, handler),
  // @ts-expect-error it is called permanent
  () => requeue.consume("orders", { retry: { classify: { permanant: ["Bad"] } } }, handler),
  // @ts-expect-error it is "dead-letter"
  () => requeue.consume("orders", { retry: { classify: { with: () => "deadletter" } } }, handler),
  // @ts-expect-error discard is a word in a queue name's place
  () => requeue.consume("orders", { retry: { deadLetter: false } }, handler),
  // @ts-expect-error it is called routes
  () => requeue.consume("orders", { retry: { deadLetter: { routs: {} } } }, handler),
  // @ts-expect-error it is called permanent
  () => requeue.consume("orders", { retry: { deadLetter: { routes: { permanant: "dead" } } } }, handler),
  // @ts-expect-error it is called backoff
  () => retryPolicy({ backof: once }),
  // @ts-expect-error it is called backoff
  () => RetryPolicy.make({ backof: once }),
  // @ts-expect-error it is called backoff
  () => describe({ backof: once })
]

export const backingOff = [
  // @ts-expect-error a backoff is made by one of the functions
  () => retryPolicy({ backoff: "exponential" }),
  // @ts-expect-error a number is no backoff
  () => retryPolicy({ backoff: 1000 }),
  // @ts-expect-error it is called max
  () => exponential("1 second", { maximum: "1 hour" }),
  // @ts-expect-error a unit is one that is known
  () => exponential("1 sec"),
  // @ts-expect-error it is "full"
  () => exponential("1 second", { jitter: "ful" }),
  // @ts-expect-error it is called proportional
  () => exponential("1 second", { jitter: { proportion: 0.1 } }),
  // @ts-expect-error only an exponential backoff has a factor
  () => linear("1 second", { factor: 3 }),
  // @ts-expect-error it is called max
  () => Backoff.constant("1 second", { maximum: "1 hour" }),
  // @ts-expect-error delays are durations
  () => sequence(["1 minute", "soon"])
]

export const batching = [
  // @ts-expect-error it is called maxBatchSize
  () => requeue.consumeBatch("orders", { batch: { maxBatchSzie: 5 } }, handler),
  // @ts-expect-error a batch policy is an object
  () => requeue.consumeBatch("orders", { batch: 5 }, handler),
  // @ts-expect-error it is called maxBatchTimeout
  () => BatchPolicy.make({ maxBatchTimout: 5 })
]

export const slowingDown = [
  // @ts-expect-error it is called multiplier
  () => requeue.consume("orders", { consumerBackoff: { multiplyer: 1000 } }, handler),
  // @ts-expect-error it is "full-jitter"
  () => requeue.consume("orders", { consumerBackoff: { strategy: "full" } }, handler),
  // @ts-expect-error true, or an object
  () => requeue.consume("orders", { consumerBackoff: "exponential" }, handler),
  // @ts-expect-error only ratio has it
  () => requeue.consume("orders", { consumerBackoff: { minAttempts: 5 } }, handler),
  // @ts-expect-error only consecutive has it
  () => ConsumerBackoff.make({ form: "nsq", failures: 5 }),
  // @ts-expect-error it is called maxBackoffDuration
  () => ConsumerBackoff.make({ maxBackoff: 1000 }),
  // @ts-expect-error it is called perSuccess
  () => deadLetterBudget({ max: 10, perSucess: 0.5 })
]

/** A misspelt option here would redrive or remove everything. */
export const lookingAfterDeadLetters = []
