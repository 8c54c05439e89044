/** Consumers that do the wrong thing with a good broker. */
import { Codec, type Consumer, ConsumerBackoff, type Handler, QueueDefinition, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { rewired } from "../internal/rewired.ts"
import type { Mutant } from "../Mutant.ts"

/** Changes the options of every consumer. */
const options = (name: string, kills: string, change: (options: Consumer.Options) => Consumer.Options): Mutant => ({
  name,
  kills,
  subject: (subject) => ({
    ...subject,
    start: (queue, given, handler) => subject.start(queue, change(given), handler),
    startBatch: (queue, given, handler) => subject.startBatch(queue, change(given), handler)
  })
})

/** Changes the batches that handlers receive, or what handlers return. */
const handled = (
  name: string,
  kills: string,
  change: <A, R>(batch: Handler.Batch<A>, run: (batch: Handler.Batch<A>) => Handler.Result<R>) => Handler.Result<R>
): Mutant => ({
  name,
  kills,
  subject: (subject) => ({
    ...subject,
    startBatch: (queue, given, handler) =>
      subject.startBatch(queue, given, (batch, context) => change(batch, (seen) => handler(seen, context)))
  })
})

const policy = (given: Consumer.Options, change: Partial<RetryPolicy.RetryPolicy>): Consumer.Options => ({
  ...given,
  retry: { ...(given.retry ?? RetryPolicy.make()), ...change }
})

/** Changes the consumer backoff of every consumer that has one. */
const backoff = (
  name: string,
  kills: string,
  change: (given: ConsumerBackoff.ConsumerBackoff) => ConsumerBackoff.ConsumerBackoff
): Mutant =>
  options(name, kills, (given) =>
    given.consumerBackoff === undefined ? given : { ...given, consumerBackoff: change(given.consumerBackoff) }
  )

export const mutants: ReadonlyArray<Mutant> = [
  handled("runs acked messages again", "A.ack, handler throws", (batch, run) =>
    run(rewired(batch, () => ({ ack: () => {} })))
  ),
  handled("lets the last call decide", "A.ack, retryAll(9), handler returns", (batch, run) => {
    const calls: Array<() => void> = []
    const later = rewired(
      batch,
      (message) => ({
        ack: () => calls.push(() => message.ack()),
        retry: (given) => calls.push(() => message.retry(given))
      }),
      { ackAll: () => calls.push(() => batch.ackAll()), retryAll: (given) => calls.push(() => batch.retryAll(given)) }
    )
    try {
      return run(later)
    } finally {
      for (const call of calls.toReversed()) call()
    }
  }),
  handled("lets the batch beat the message", "A.retry(5), retryAll(9), handler returns", (batch, run) =>
    run(rewired(batch, (message) => ({ retry: () => message.retry() })))
  ),
  handled("takes a failed batch for a good one", "no calls, handler throws", (batch, run) => {
    try {
      return run(batch)
    } catch {
      return undefined
    }
  }),
  handled("hands over empty batches", "a batch is never larger than maxBatchSize, and never empty", (batch, run) => {
    run({ ...batch, messages: [] })
    return run(batch)
  }),
  options("takes one message too many into a batch", "a full batch is handed over at once", (given) =>
    given.batch === undefined
      ? given
      : { ...given, batch: { ...given.batch, maxBatchSize: given.batch.maxBatchSize + 1 } }
  ),
  options("ignores concurrency", "no more than concurrency batches are in progress", (given) => ({
    ...given,
    concurrency: 10
  })),
  options(
    "never times out",
    "a handler that takes too long is interrupted, and its attempt counts as failed",
    (given) => ({
      ...given,
      handlerTimeout: "unlimited"
    })
  ),
  options("has no consumer backoff", "a probe that fails doubles the pause, up to the longest", (given) => ({
    ...given,
    consumerBackoff: ConsumerBackoff.off
  })),
  options("always backs off", "off by default: failures slow nothing down", (given) => ({
    ...given,
    consumerBackoff: given.consumerBackoff ?? ConsumerBackoff.nsq()
  })),
  backoff("resumes at once where it should step", "stepwise recovery comes back one level at a time", (given) => ({
    ...given,
    recovery: "resume"
  })),
  backoff(
    "pauses with every failure where it should wait for some in a row",
    "consecutive: this many failures in a row pause the consumer, and others do not",
    (given) => (given.form === "consecutive" ? { ...given, failures: 1 } : given)
  ),
  backoff(
    "waits for one failure too many in a row",
    "consecutive: this many failures in a row pause the consumer, and others do not",
    (given) => (given.form === "consecutive" ? { ...given, failures: given.failures + 1 } : given)
  ),
  handled(
    "counts each message of a batch that fails as a whole",
    "consecutive: a batch that fails as a whole is one failure",
    (batch, run) => {
      try {
        return run(batch)
      } catch (error) {
        for (const message of batch.messages) message.fail(error)
        return undefined
      }
    }
  ),
  backoff(
    "needs no number of attempts for its share of failures",
    "ratio: a share of failures pauses the consumer, once there are enough attempts",
    (given) => (given.form === "ratio" ? { ...given, minAttempts: 1 } : given)
  ),
  backoff(
    "takes any share of failures for enough",
    "ratio: a share of failures pauses the consumer, once there are enough attempts",
    (given) => (given.form === "ratio" ? { ...given, failureRatio: 0.1 } : given)
  ),
  options("retries once too often", "maxAttempts is the same limit, counted with the first delivery", (given) =>
    policy(given, { maxAttempts: (given.retry ?? RetryPolicy.make()).maxAttempts + 1 })
  ),
  options("ignores maxAge", "no retry becomes due after maxAge: the message is too old", (given) =>
    policy(given, { maxAge: Number.POSITIVE_INFINITY, maxAttempts: 8 })
  ),
  options(
    "runs nothing again in the same delivery",
    "immediate retries run the handler again in the same delivery",
    (given) => policy(given, { immediate: 0 })
  ),
  options("takes nothing out of errors", "what the policy takes out of errors is nowhere in the message", (given) =>
    policy(given, { deadLetter: { ...(given.retry ?? RetryPolicy.make()).deadLetter, redact: undefined } })
  ),
  options("keeps no stack traces", "a dead letter keeps the stack trace of its last error, redacted", (given) => ({
    ...given,
    stackTraces: false
  })),
  options("redacts no stack traces", "a dead letter keeps the stack trace of its last error, redacted", (given) => {
    const { deadLetter } = given.retry ?? RetryPolicy.make()
    const { redact = (error) => error } = deadLetter
    return policy(given, {
      deadLetter: { ...deadLetter, redact: (error) => ({ ...redact(error), stack: error.stack }) }
    })
  }),
  options("knows one dead-letter queue only", "reasons go to the queues that the policy names for them", (given) =>
    policy(given, { deadLetter: { ...(given.retry ?? RetryPolicy.make()).deadLetter, routes: {} } })
  ),
  options("ignores the policy's backoff", "the policy's backoff beats the consumer's delay", (given) =>
    policy(given, { backoff: undefined })
  ),
  {
    name: "runs handlers on bodies that cannot be decoded",
    kills: "an undecodable body is dead-lettered at once with its bytes; no handler sees it",
    subject: (subject) => ({
      ...subject,
      start: (queue, given, handler) => {
        const decode = (bytes: Uint8Array): any => new TextDecoder().decode(bytes) // not the type that handlers expect
        const lenient = { ...Codec.json, decode }
        const name = QueueDefinition.from(queue).name
        return subject.start(QueueDefinition.make(name, { codec: lenient }), given, handler)
      }
    })
  },
  options(
    "cuts what the broker cannot do down to what it can, unasked",
    "a policy beyond the broker's longest delay keeps the consumer from starting",
    (given) => ({ ...given, onLimit: "clamp" })
  ),
  options("always lets a batch wait", "without prefetch, no more is in flight than handlers work on", (given) => ({
    ...given,
    prefetch: undefined
  })),
  options(
    "always lets one message wait",
    "without prefetch, no message waits behind a slow one while another consumer is idle",
    (given) => ({ ...given, prefetch: 1 })
  ),
  options(
    "lets nothing wait unless it is told",
    "by default, one batch waits in addition to those in progress",
    (given) => ({ prefetch: 0, ...given })
  ),
  options(
    "runs messages beyond maxDeliveries",
    "with maxDeliveries equal to maxAttempts, no message is run that was delivered as often, seen or unseen",
    (given) => policy(given, { maxDeliveries: 12 })
  ),
  options("ignores the rate limit", "no more handler runs begin in any window than the limit allows", (given) => ({
    ...given,
    rateLimit: undefined
  })),
  options("counts each message of a batch as a run of the limit", "a batch is one run of the limit", (given) =>
    given.rateLimit === undefined || given.batch === undefined
      ? given
      : { ...given, rateLimit: { ...given.rateLimit, max: given.rateLimit.max * given.batch.maxBatchSize } }
  ),
  options(
    "does not count immediate retries as runs of the limit",
    "an immediate retry is a run of the limit; without room for it, the failure counts",
    (given) =>
      given.rateLimit === undefined || !given.retry?.immediate
        ? given
        : { ...given, rateLimit: { ...given.rateLimit, max: given.rateLimit.max * (given.retry.immediate + 1) } }
  ),
  {
    name: "holds the messages that the rate limit does not let begin",
    kills: "while the limit holds, the broker keeps the messages for other consumers",
    subject: (subject) => ({
      ...subject,
      start: (queue, { rateLimit, ...given }, handler) => {
        let left = rateLimit?.max ?? Number.POSITIVE_INFINITY
        return subject.start(queue, given, (message, context) =>
          left-- > 0 ? handler(message, context) : Effect.never
        )
      }
    })
  },
  options(
    "knows no suspects",
    "messages that may have killed their process run alone, one after another, and hold up no other",
    (given) => policy(given, { maxAttempts: 100 })
  )
]
