/** Consumes one queue in consecutive sessions, each on a new channel and with the latest credit. */
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

/** Milliseconds that closing a subscription waits for the server's answer, because a drain waits for it. */
const closeTimeout = 1000

/** A session that lived for at least this many milliseconds is replaced without a pause. */
const healthy = 1000

/** Pauses after a rejection by the server, which lasts until an operator fixes the cause. */
const refusedPauses: Reconnect.Pauses = { first: 250, max: 5000 }

/**
 * The pause between checks of the declared objects. It is random, so many processes do not check at the same moment.
 */
const refreshPause = Effect.flatMap(Random.next, (random) => Effect.sleep(25_000 + 10_000 * random))

/** Whether the error may come from a deleted object. */
const isMissing = ({ operation, reason }: BrokerError.BrokerError): boolean =>
  reason === "QueueMissing" || operation === Session.cancelledOperation

/** The error of a consumer that was cancelled although its queue exists. */
const timedOut = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "consume",
    queue,
    reason: "LeaseLost",
    detail:
      "the server took messages back: a handler exceeded the server's consumer timeout, or the queue was recreated",
    remedy: timeoutRemedy
  })

/** The error of a consumer whose connection was lost. */
const lost = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "consume",
    queue,
    reason: "ConnectionLost",
    detail: "the connection was lost; the consumer starts again once it is reopened"
  })

/** Finds out why the server cancelled a consumer, because the server does not report the reason. */
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

/** Tries once more, because the first request on a lost connection may be what detects the loss. */
export const foundOut = <A>(
  open: Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.retry(open, { times: 1, while: ({ reason }) => reason === "ConnectionLost" })

/** Runs a periodic check. Logs a failure unless it equals the last one. A failure does not count as trouble. */
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
 * Consumes a queue until the scope closes. Fails if the first session cannot be opened on a live connection. Later
 * sessions are retried until they open.
 *
 * Long, because all of it changes one state: the current session.
 */
export const make = (
  options: {
    readonly first: Opening.Target
    /** Inspects the queue again, which may have changed. */
    readonly again: Effect.Effect<Opening.Target, BrokerError.BrokerError>
    /** Checks what may have changed while the queue is consumed. */
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
    /** Why no session is open; `undefined` while one is open. */
    let closed: Trouble.Trouble | undefined
    /** Whether a declared object may be gone. */
    let isStale = false
    /** Why a missing object cannot be redeclared. Without the object, retries may not be delivered. */
    let lacking: Trouble.Trouble | undefined

    const opening = { ...dependencies, ...options, after, queue, takenBack, onConsuming: () => fork(trouble.over) }
    const open = (target: Effect.Effect<Opening.Target, BrokerError.BrokerError>, declare: Declarer["renew"]) =>
      Effect.flatMap(target, (found) => {
        planned = found
        return Opening.open(found, declare, opening)
      })

    /** Opens the next session. Each failure in a row makes the next pause longer. */
    const reopen = (failures: number, error: BrokerError.BrokerError | undefined): Effect.Effect<Session.Session> =>
      Effect.gen(function* () {
        // No other process may ever redeclare a deleted object.
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
      /** Consecutive sessions that did not last, for example because the server rejects the consumer. */
      let failures = 0
      while (true) {
        const born = now()
        const error = yield* Deferred.await(session!.gone)
        closed = { since: now(), error: error ?? lost(queue) }
        failures = now() - born < healthy ? failures + 1 : 0
        session = yield* reopen(failures, error && (yield* explained(error, queue, declarer)))
        closed = undefined
        options.onReconnect()
        // With credit, trouble is over only when the server has accepted the consumer.
        if (limit === 0) yield* trouble.over
        session.credit.set(limit)
      }
    })

    /**
     * Redeclares deleted objects. The server does not report a missing exchange after a delay queue, a missing binding
     * or a missing level in between: messages would be diverted, or would wait.
     */
    const redeclared = Effect.gen(function* () {
      const { error, missing } = yield* declarer.refresh(planned, queue)
      // An object that must not be declared may still exist.
      lacking = error === undefined || missing.length === 0 ? undefined : { since: lacking?.since ?? now(), error }
      if (error !== undefined) return yield* error
      const objects = missing.map(({ _tag, name }) => `${_tag.toLowerCase()} ${name}`).join(", ")
      if (objects !== "") yield* Log.warning("declared deleted objects again", { queue, objects })
    })
    const refresh = Effect.andThen(
      noted(queue, "deleted objects of the queue could not be declared again", redeclared),
      noted(queue, "the queue could not be inspected", look)
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
