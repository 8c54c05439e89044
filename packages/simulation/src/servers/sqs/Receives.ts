/**
 * Receives of a simulated server of SQS.
 *
 * | rule | source |
 * | --- | --- |
 * | a receive counts, and hides its messages, even if its client is gone | https://github.com/aws/aws-sdk-js/issues/2350 |
 * | a long poll ends with the first messages that become visible, or empty after its time | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html |
 * | a message that was received as often as the redrive policy allows is moved by the next receive; it keeps its id, its attributes and its count | test_dead_letter_queue_message_attributes of LocalStack |
 * | at the quota of messages in flight, a short poll of a standard queue fails with OverLimit, and others are empty | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html |
 * | a receive of a FIFO queue with the id of another one returns its messages again, with the same handles and new leases, for five minutes; not once one of them was deleted or changed | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html |
 * | a receive of a standard queue may return fewer messages than there are, and in any order | same page |
 * | it may return a message that is in flight | https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/standard-queues-at-least-once-delivery.html |
 * | attributes are returned that the call names, and no others | same page |
 */
import * as Result from "effect/Result"
import type * as Api from "./Api.ts"
import { type AwsError, invalidValue, named } from "./AwsError.ts"
import * as Message from "./Message.ts"
import { type Env, keep, numberOf, type Poll, type Queue, type Receipt, redriveOf } from "./Queue.ts"
import type { Receipts } from "./Receipts.ts"

/** Milliseconds for which a receive can be repeated. */
const window = 300_000

/** Moves messages that were received too often, and returns the next ones. */
const next = (env: Env, queue: Queue, count: number): ReadonlyArray<Message.Message> => {
  const redrive = redriveOf(env, queue)
  for (;;) {
    const found = queue.store.next(count)
    const tooOften = found.filter(({ receives }) => redrive !== undefined && receives >= redrive.after)
    if (redrive === undefined || tooOften.length === 0) return found
    for (const message of tooOften) {
      queue.store.remove(message)
      env.listen({ _tag: "Gone", message, queue: queue.name, why: "backstop", delivery: undefined })
      const moved = { message, source: queue.arn }
      keep(env, redrive.to, message.content, { delay: 0, client: undefined, moved })
    }
  }
}

/** The next messages of a queue, by the rules of standard queues: perhaps few, in disorder, or in flight. */
const chosen = (env: Env, queue: Queue, count: number): ReadonlyArray<Message.Message> => {
  const { happens, host } = env
  if (count <= 0) return []
  const any = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> =>
    all.slice(Math.floor(host.random(`repeat ${queue.name}`) * all.length))
  const repeated = happens("repeat", queue) ? any(queue.store.inFlight()).slice(0, 1) : []
  const most = happens("few", queue) ? 1 : count - repeated.length
  if (!happens("disorder", queue)) return [...repeated, ...next(env, queue, most)]
  const mixed = next(env, queue, Number.POSITIVE_INFINITY).map((message) => ({
    message,
    at: host.random(`disorder ${queue.name}`)
  }))
  return [...repeated, ...mixed.toSorted((one, other) => one.at - other.at).map(({ message }) => message)].slice(
    0,
    count
  )
}

/** Makes the receives. */
export const make = (env: Env, receipts: Receipts) => {
  const { host, settings } = env

  const lease = (queue: Queue, { VisibilityTimeout = numberOf(queue, "VisibilityTimeout") }: Api.Body): number =>
    VisibilityTimeout

  const answerOf = (given: ReadonlyArray<Receipt>, body: Api.Body): Api.Reply =>
    Result.succeed(
      given.length === 0
        ? {}
        : { Messages: given.map(({ handle, message }) => Message.received(message, handle, body)) }
    )

  const room = (queue: Queue): number => settings.inFlight - queue.store.counts().inFlight

  /** Receives what is visible now. */
  const now = (queue: Queue, { body, client }: Api.Call): ReadonlyArray<Receipt> => {
    const count = Math.min(body.MaxNumberOfMessages ?? 1, room(queue))
    const seconds = lease(queue, body)
    const given = chosen(env, queue, count).map((message) => receipts.give(queue, message, seconds, client))
    const { ReceiveRequestAttemptId: id } = body
    if (queue.isFifo && id !== undefined && given.length > 0)
      queue.attempts.set(id, { at: host.now(), receipts: given })
    return given
  }

  /** Repeats a receive by its id; `undefined` if there is none to repeat. */
  const again = (queue: Queue, { body, client }: Api.Call): Api.Reply | undefined => {
    const { ReceiveRequestAttemptId: id = "" } = body
    const before = queue.isFifo ? queue.attempts.get(id) : undefined
    if (before === undefined || host.now() - before.at > window) return undefined
    const held = before.receipts.filter(({ message }) => message.state !== "gone")
    if (held.some(({ isUsed, until }) => !isUsed && until <= host.now())) return undefined
    if (held.length < before.receipts.length || held.some(({ isUsed }) => isUsed)) return Result.fail(notRetryable(id))
    for (const receipt of held) receipts.hide(receipt, lease(queue, body), client)
    return answerOf(held, body)
  }

  const serve = (queue: Queue): void => {
    for (const poll of queue.polls) {
      const given = now(queue, poll.call)
      if (given.length === 0) continue
      poll.cancel()
      queue.polls.delete(poll)
      poll.answer(answerOf(given, poll.call.body))
    }
  }

  const wait = (queue: Queue, call: Api.Call, answer: Poll["answer"], seconds: number): void => {
    const cancel = host.after(seconds * 1000, () => {
      queue.polls.delete(poll)
      answer(answerOf([], call.body))
    })
    const poll = { call, answer, cancel }
    queue.polls.add(poll)
  }

  return {
    /** Gives visible messages to the polls that wait. */
    serve,
    receiveMessage: (queue: Queue, call: Api.Call, answer: Poll["answer"]): void => {
      const repeated = again(queue, call)
      if (repeated !== undefined) return answer(repeated)
      const seconds = call.body.WaitTimeSeconds ?? numberOf(queue, "ReceiveMessageWaitTimeSeconds")
      if (room(queue) <= 0 && seconds === 0 && !queue.isFifo) return answer(Result.fail(named.OverLimit))
      const given = now(queue, call)
      if (given.length > 0 || seconds === 0) answer(answerOf(given, call.body))
      else wait(queue, call, answer, seconds)
    }
  }
}

const notRetryable = (id: string): AwsError =>
  invalidValue(
    "ReceiveRequestAttemptId",
    id,
    "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable."
  )
