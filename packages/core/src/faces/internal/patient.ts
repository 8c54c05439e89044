/** Waiting for a broker that starts after the program, as containers do. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Random from "../../runtime/Random.ts"
import * as Reconnect from "../../runtime/Reconnect.ts"
import * as Delay from "../../message/Delay.ts"
import { Broker } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import * as Log from "../../port/Log.ts"
import * as HeldLog from "./heldLog.ts"

const pauses: Reconnect.Pauses = { first: 100, max: 2000 }

/** Milliseconds between two log lines. */
const betweenLines = 5000

/** Monotonic milliseconds. */
const now = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

/** A duration in whole seconds, from one second on. */
const rounded = (millis: number): string =>
  Delay.format(millis < 1000 ? Math.round(millis) : Math.round(millis / 1000) * 1000)

/** The error of a broker that has not answered the only attempt. */
const silent = (broker: string): BrokerError =>
  new BrokerError({
    broker,
    operation: "connect",
    reason: "ConnectionFailed",
    detail: "no answer",
    remedy: "Check the host and port of the URL"
  })

const timedOut = (error: BrokerError, attempts: number, wait: number): BrokerError => {
  const { broker, cause, operation, queue, reason } = error
  const detail = `${error.detail} (${attempts} ${attempts === 1 ? "attempt" : "attempts"} in ${rounded(wait)})`
  const raise = "Raise waitForBroker if the broker takes longer to start"
  const remedy = error.remedy === undefined ? raise : `${error.remedy}${/[.?]$/.test(error.remedy) ? "" : "."} ${raise}`
  return new BrokerError({ broker, cause, detail, operation, queue, reason, remedy })
}

/** Logs what is waited for when the first attempt has failed or is slow, and then from time to time. It never ends, and is interrupted. */
const report = (end: number, failed: Deferred.Deferred<void>, last: () => BrokerError | undefined) => {
  const line = Effect.flatMap(now, (at) => {
    const error = last()
    return Log.warning(`waiting for the broker, for ${rounded(Math.max(0, end - at))} more`, {
      ...(error && { broker: error.broker }),
      errorMessage: error?.message ?? "the first attempt has no answer yet"
    })
  })
  const pause = Effect.sleep(betweenLines)
  return Effect.andThen(Effect.raceFirst(Deferred.await(failed), pause), Effect.forever(Effect.andThen(line, pause)))
}

/** Runs an effect that need not end when it is interrupted: connecting often cannot be. */
const leaving = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDetach(effect), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe()))
  )

/**
 * Rebuilds a layer while its broker cannot be reached, even if building it opens no connection, for `wait` milliseconds. An
 * error that another attempt cannot solve, such as a wrong password or an untrusted certificate, ends the wait at once.
 * `broker` is the name of one that has not answered.
 */
export const patient = (
  layer: Layer.Layer<Broker, unknown>,
  wait: number,
  broker: string
): Layer.Layer<Broker, unknown> => {
  if (wait === 0) return layer
  return Layer.effectContext(
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const held = HeldLog.make(yield* References.CurrentLoggers)
      const build = Effect.gen(function* () {
        const own = yield* Scope.fork(scope)
        const reached = Effect.tap(
          Layer.buildWithScope(layer, own),
          (context) => Context.get(context, Broker).reach ?? Effect.void
        )
        const built = yield* Effect.exit(reached)
        if (Exit.isFailure(built)) yield* Scope.close(own, built)
        return yield* built
      }).pipe(Effect.provideService(References.CurrentLoggers, held.loggers), leaving)
      const start = yield* now
      const failed = Deferred.makeUnsafe<void>()
      let last: BrokerError | undefined
      let attempts = 0
      const trying = Effect.gen(function* () {
        while (true) {
          attempts++
          held.drop()
          const built = yield* Effect.result(build)
          if (Result.isSuccess(built)) return built.success
          const error = built.failure
          if (!(error instanceof BrokerError) || !error.isRetryable || error.isMisconfigured)
            return yield* Effect.fail(error)
          last = error
          Deferred.doneUnsafe(failed, Exit.void)
          // Closer together at the end, so that the last one has time for an answer.
          const half = Math.max((start + wait - (yield* now)) / 2, pauses.first)
          yield* Effect.sleep(Math.ceil(Math.min(Reconnect.pause(attempts, yield* Random.next, pauses), half)))
        }
      })
      const orElse = () => Effect.fail(timedOut(last ?? silent(broker), attempts, wait))
      return yield* Effect.raceFirst(
        Effect.timeoutOrElse(trying, { duration: wait, orElse }),
        report(start + wait, failed, () => last)
      ).pipe(Effect.ensuring(Effect.sync(held.release)))
    })
  )
}
