/** Session after session of one queue, each on a channel of its own, with the credit that was given last. */
import { type Broker, BrokerError, Log, Random, Reconnect, Timers, Trouble } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { pauses } from "../connect/connection.ts"
import { request } from "../connect/request.ts"
import type { Declarer } from "../declare/declare.ts"
import { afterDeletion } from "../declare/afterDeletion.ts"
import { timeoutRemedy } from "../toBrokerError.ts"
import * as Opening from "./opening.ts"
import type { Received } from "./receipt.ts"
import * as Session from "./session.ts"
import * as TakenBack from "./takenBack.ts"

/** Milliseconds that the end of a subscription waits for the server's answer: whoever drains is waiting too. */
const closeTimeout = 1000

/** A session that lived for so many milliseconds is replaced without a pause. */
const healthy = 1000

/** Pauses where the server refuses, which lasts until somebody does something. */
const refusedPauses: Reconnect.Pauses = { first: 250, max: 5000 }

/** The pause between two looks after what was declared. Many processes do not look at the same moment. */
const refreshPause = Effect.flatMap(Random.next, (random) => Effect.sleep(25_000 + 10_000 * random))

/** Whether the error may be that of something that was deleted. */
const isMissing = ({ operation, reason }: BrokerError.BrokerError): boolean =>
  reason === "QueueMissing" || operation === Session.cancelledOperation

/** The error of a consumer that was cancelled though its queue is there. */
const timedOut = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "consume",
    queue,
    reason: "LeaseLost",
    detail:
      "the server has taken messages back: a handler was longer than its consumer timeout, or the queue was made again",
    remedy: timeoutRemedy
  })

/** The error of a consumer whose channel is gone with its connection. */
const lost = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "consume",
    queue,
    reason: "ConnectionLost",
    detail: "the channel is gone with its connection, and another one is to be opened"
  })

/** The reason why the server has cancelled a consumer, which it does not tell. */
const explained = (
  error: BrokerError.BrokerError,
  queue: string,
  { onChannel }: Pick<Declarer, "onChannel">
): Effect.Effect<BrokerError.BrokerError> =>
  error.operation !== Session.cancelledOperation
    ? Effect.succeed(error)
    : Effect.match(
        // The server may cancel a consumer before its queue is gone.
        Effect.andThen(
          afterDeletion,
          onChannel("inspect", queue, (channel) => channel.checkQueue(queue))
        ),
        { onSuccess: () => timedOut(queue), onFailure: (found) => (isMissing(found) ? found : error) }
      )

/** Tries once more: of a connection whose loss nobody had noticed, the first request finds out. */
export const foundOut = <A>(
  open: Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.retry(open, { times: 1, while: ({ reason }) => reason === "ConnectionLost" })

/** Runs what is done from time to time, and logs a failure that is another one than the last. It is no trouble. */
const noted = (queue: string, line: string, run: Effect.Effect<void, BrokerError.BrokerError>): Effect.Effect<void> => {
  let last: string | undefined
  return Effect.matchEffect(run, {
    onSuccess: () => Effect.sync(() => (last = undefined)),
    onFailure: ({ message }) => {
      if (last === message) return Effect.void
      last = message
      return Log.warning(line, { queue, errorMessage: message })
    }
  })
}

/**
 * Consumes a queue for as long as the scope lives. Fails when the first session cannot be opened on a connection that
 * lives; later ones are tried until they succeed.
 *
 * Long, because all of it changes one state: the session of the moment.
 */
export const make = (
  options: {
    readonly first: Opening.Target
    /** Finds out again what the queue is, once it may be another one. */
    readonly again: Effect.Effect<Opening.Target, BrokerError.BrokerError>
    /** Looks after what may have changed while the queue is consumed. */
    readonly look: Effect.Effect<void, BrokerError.BrokerError>
    /** Whether a message that comes out of a delay may still have to wait. */
    readonly keepsNotBefore: boolean
    readonly onDelivery: (delivery: Received) => void
    readonly onReconnect: () => void
  },
  dependencies: Opening.Dependencies
): Effect.Effect<Pick<Broker.Subscription, "credit" | "trouble">, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { connection, declarer, fork, now, settings } = dependencies
    const { again, first, look } = options
    const { name: queue } = first.found
    const timers = yield* Timers.make
    const after = (millis: number, run: () => void) => void timers.after(millis, run)
    const trouble = Trouble.track(queue, now)
    const takenBack = TakenBack.make()
    let limit = 0
    let session: Session.Session | undefined
    let planned = first
    /** Why no session is open; `undefined` while one is. */
    let closed: Trouble.Trouble | undefined
    /** Whether an object that was declared may be gone. */
    let isStale = false
    /** Why an object that is missing cannot be declared again: without it, retries may not come back. */
    let lacking: Trouble.Trouble | undefined

    const opening = { ...dependencies, ...options, after, queue, takenBack, onConsuming: () => fork(trouble.over) }
    const open = (target: Effect.Effect<Opening.Target, BrokerError.BrokerError>, declare: Declarer["renew"]) =>
      Effect.flatMap(target, (found) => {
        planned = found
        return Opening.open(found, declare, opening)
      })

    /** Opens the next session. Failures in a row make the pause before it longer. */
    const reopen = (failures: number, error: BrokerError.BrokerError | undefined): Effect.Effect<Session.Session> =>
      Effect.gen(function* () {
        // Nobody else may ever make again what somebody has deleted.
        if (error !== undefined && isMissing(error)) isStale = true
        if (error !== undefined) yield* trouble.tell(error)
        const isRefused = error !== undefined && !error.isRetryable
        if (isRefused) yield* afterDeletion
        const random = yield* Random.next
        yield* Effect.sleep(Reconnect.pause(failures, random, isRefused ? refusedPauses : pauses(settings)))
        yield* connection.live
        const opened = yield* Effect.result(open(again, isStale ? declarer.renew : declarer.ensure))
        if (Result.isFailure(opened)) return yield* reopen(failures + 1, opened.failure)
        isStale = false
        return opened.success
      })

    const keep = Effect.gen(function* () {
      /** In a row: sessions that did not last, as where the server refuses the consumer. */
      let failures = 0
      while (true) {
        const born = now()
        const error = yield* Deferred.await(session!.gone)
        closed = { since: now(), error: error ?? lost(queue) }
        failures = now() - born < healthy ? failures + 1 : 0
        session = yield* reopen(failures, error && (yield* explained(error, queue, declarer)))
        closed = undefined
        options.onReconnect()
        // Else it is over when the server has accepted the consumer.
        if (limit === 0) yield* trouble.over
        session.credit.set(limit)
      }
    })

    /**
     * Declares again what was deleted. The server reports neither an exchange behind a delay queue, nor a binding, nor a level in the
     * middle: messages go aside, or wait.
     */
    const redeclared = Effect.gen(function* () {
      const { error, missing } = yield* declarer.refresh(planned, queue)
      // What may not be declared may well be there.
      lacking = error === undefined || missing.length === 0 ? undefined : { since: lacking?.since ?? now(), error }
      if (error !== undefined) return yield* error
      const objects = missing.map(({ _tag, name }) => `${_tag.toLowerCase()} ${name}`).join(", ")
      if (objects !== "") yield* Log.warning("declared deleted objects again", { queue, objects })
    })
    const refresh = Effect.andThen(
      noted(queue, "cannot be declared again", redeclared),
      noted(queue, "cannot be looked at", look)
    )
    const refreshed = Effect.suspend(() => (session?.isOpen() === true ? refresh : Effect.void))

    session = yield* foundOut(open(Effect.succeed(first), declarer.ensure))
    const close = Effect.suspend(() =>
      session?.isOpen() === true
        ? Effect.ignore(request({ operation: "unsubscribe", queue }, closeTimeout, session.close))
        : Effect.void
    )
    yield* Effect.addFinalizer(() => close)
    yield* Effect.forkScoped(keep)
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(refreshPause, refreshed)))

    return {
      trouble: () => trouble.current() ?? closed ?? lacking,
      credit: (wanted) => {
        limit = wanted
        session?.credit.set(wanted)
      }
    }
  })
