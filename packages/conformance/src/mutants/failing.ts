/** Consumers that misread a handler that reports a message as failed. */
import type { Handler } from "@requeue/core"
import { rewired, rewiredMessage } from "../internal/rewired.ts"
import type { Mutant } from "../Mutant.ts"

/** Does something else when a handler calls `fail`. */
const failing = (
  name: string,
  kills: string,
  fail: (message: Handler.Received<unknown>, error: unknown, given: Handler.RetryOptions | undefined) => void
): Mutant => {
  const methods = (message: Handler.Received<unknown>) => ({
    fail: (error: unknown, given?: Handler.RetryOptions) => fail(message, error, given)
  })
  return {
    name,
    kills,
    subject: (subject) => ({
      ...subject,
      start: (queue, options, handler) =>
        subject.start(queue, options, (message, context) => handler(rewiredMessage(message, methods), context)),
      startBatch: (queue, options, handler) =>
        subject.startBatch(queue, options, (batch, context) => handler(rewired(batch, methods), context))
    })
  }
}

const another = () => new Error("another one")

export const mutants: ReadonlyArray<Mutant> = [
  failing("takes a failure for an ack", "A.fail, handler returns", (message) => message.ack()),
  failing("forgets the delay of a failure", "A.fail(5), retryAll(9), handler returns", (message, error) =>
    message.fail(error)
  ),
  failing(
    "takes a failure for a retry",
    "fails with a permanent error: that message is dead-lettered at once with it, and no other",
    (message, _, given) => message.retry(given)
  ),
  failing(
    "lets retryAll beat the error of a failure",
    "fails with a permanent error and a delay, also before retryAll: the error decides",
    (message, _, given) => message.fail(another(), given)
  ),
  failing(
    "does not look for a time in the error of a failure",
    "fails with a retryAfter: it sets the delay, unless the call has one",
    (message, _, given) => message.fail(another(), given)
  ),
  failing(
    "hides the error of a failure",
    "fails on the last attempt: the dead letter has the error, and the handler's own end adds no other",
    (message, _, given) => message.fail(another(), given)
  ),
  failing(
    "lets the handler's error be that of every message",
    "fails, and the handler throws: each message is reported with its own error",
    () => {}
  ),
  failing(
    "counts no failures of single messages",
    "fails: it counts towards consumer backoff as a handler's failure does",
    (message, error, given) => message.fail(error, { ...given, backoff: false })
  ),
  failing(
    "takes every failure for a sign of trouble",
    "fails with a permanent error: it pauses nothing",
    (message, _, given) => message.fail(another(), given)
  ),
  failing(
    "counts failures that are not to be counted",
    "fails, and opts out of consumer backoff: it pauses nothing",
    (message, error, given) => message.fail(error, { ...given, backoff: true })
  )
]
