/**
 * Publishes with confirmation, on a connection of its own: a server that blocks publishers stops reading from their
 * connections, and acknowledgements must not wait behind that.
 */
import { BrokerError, Deadlines, Delay, Timers } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Publication } from "../client.ts"
import * as Confirms from "./confirms.ts"
import type { Link } from "../connect/connection.ts"
import { timedOut } from "../connect/request.ts"

/** Bytes that may be unconfirmed before the next waits: a slow connection must carry them within `publishTimeout`. */
const mostBytes = 16 * 1024 * 1024

export interface Publisher {
  /**
   * Publishes when there is room among the unconfirmed, and a connection that takes publishes. With both, the wait for
   * the connection and the wait for the confirmation are limited, each by `publishTimeout`.
   */
  readonly submit: (publication: Publication, answer: Confirms.Answer) => Submission
  /** Nobody hears the answer any more; what has not been written never is. */
  readonly withdraw: (submission: Submission) => void
}

/** A publication, until its answer. */
export interface Submission {
  readonly publication: Publication
  readonly deadline: Deadlines.Deadline
  answer: Confirms.Answer
  /** Where it has been written. */
  channel: Confirms.Confirms | undefined
  isAnswered: boolean
}

export const make = (link: Link, settings: Settings): Effect.Effect<Publisher, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { maxUnconfirmed, publishTimeout, requestTimeout } = settings
    const scope = yield* Effect.scope
    const run = Effect.runForkWith(yield* Effect.context())
    const deadlines = Deadlines.make(yield* Timers.make, publishTimeout)
    /** For these there is no room. */
    const waiting = new Set<Submission>()
    /** For these there is room, and no connection that takes publishes. */
    const parked = new Set<Submission>()
    let admitted = 0
    let bytes = 0
    let current: Confirms.Confirms | undefined
    let isAdmitting = false
    let isOpening = false
    let isClosed = false

    const usable = (): Confirms.Confirms | undefined =>
      current?.isOpen() === true && link.current() === current.live && current.live.blockedBy() === undefined
        ? current
        : undefined

    const hasRoom = (): boolean => admitted < maxUnconfirmed && bytes < mostBytes

    const answer = (submission: Submission, error: BrokerError.BrokerError | undefined): void => {
      if (submission.isAnswered) return
      submission.isAnswered = true
      deadlines.end(submission.deadline)
      parked.delete(submission)
      admitted--
      bytes -= submission.publication.content.length
      submission.answer(error)
      if (waiting.size > 0) admit()
    }

    /** What cannot be written is answered at once, and gets here again: the loop below goes on for it. */
    const admit = (): void => {
      if (isAdmitting) return
      isAdmitting = true
      for (const submission of waiting) {
        if (!hasRoom()) break
        waiting.delete(submission)
        begin(submission)
      }
      isAdmitting = false
    }

    const begin = (submission: Submission): void => {
      admitted++
      bytes += submission.publication.content.length
      deadlines.start(submission.deadline)
      // Those that were here before go first.
      const channel = parked.size === 0 ? usable() : undefined
      if (channel !== undefined) return write(channel, submission)
      parked.add(submission)
      if (isOpening) return
      isOpening = true
      run(Effect.forkIn(opening, scope))
    }

    const write = (channel: Confirms.Confirms, submission: Submission): void => {
      submission.channel = channel
      channel.write(submission.publication, (error) => answer(submission, error))
    }

    /** The wait for the confirmation begins. */
    const unpark = (channel: Confirms.Confirms, submission: Submission): void => {
      parked.delete(submission)
      deadlines.end(submission.deadline)
      deadlines.start(submission.deadline)
      write(channel, submission)
    }

    const ready = Effect.gen(function* () {
      const live = yield* link.live
      yield* live.unblocked.await
      if (usable() === undefined) current = yield* Confirms.open(live, requestTimeout)
    })

    const opening = Effect.gen(function* () {
      while (parked.size > 0) {
        const opened = yield* Effect.result(ready)
        const [channel, those] = [usable(), [...parked]]
        // Who gets room by the failure of these has another try.
        if (Result.isFailure(opened)) for (const submission of those) answer(submission, opened.failure)
        else if (channel !== undefined) for (const submission of parked) unpark(channel, submission)
      }
      isOpening = false
    })

    const late = (submission: Submission): void => {
      const { channel, publication } = submission
      const reason = (channel?.live ?? link.current())?.blockedBy()
      channel?.abandon()
      if (reason !== undefined) answer(submission, blocked(publication.queue, reason))
      else if (channel === undefined) answer(submission, notReady(publication.queue, publishTimeout))
      else answer(submission, timedOut({ operation: "publish", queue: publication.queue }, publishTimeout))
    }

    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosed = true
        for (const some of [parked, waiting]) {
          for (const submission of some) {
            some.delete(submission)
            submission.answer(closed(submission.publication.queue))
          }
        }
      })
    )

    return {
      submit: (publication, hear) => {
        const submission: Submission = {
          publication,
          deadline: Deadlines.deadline(() => late(submission)),
          answer: hear,
          channel: undefined,
          isAnswered: false
        }
        if (isClosed) hear(closed(publication.queue))
        else if (waiting.size === 0 && hasRoom()) begin(submission)
        else waiting.add(submission)
        return submission
      },
      withdraw: (submission) => {
        submission.answer = () => {}
        if (!waiting.delete(submission) && submission.channel === undefined) answer(submission, undefined)
      }
    }
  })

const blocked = (queue: string, reason: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Throttled",
    detail: `the server blocks publishers: ${reason}`,
    remedy: "Look at the server's alarms for memory and disk"
  })

const unreachable = (queue: string, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "rabbitmq", operation: "publish", queue, reason: "ConnectionFailed", detail })

const notReady = (queue: string, millis: number): BrokerError.BrokerError =>
  unreachable(queue, `no connection within ${Delay.format(millis)}`)

const closed = (queue: string): BrokerError.BrokerError => unreachable(queue, "the broker was closed")
