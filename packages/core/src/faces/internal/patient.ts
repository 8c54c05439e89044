/** Waiting for a broker that starts after the program, as containers do. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Random from "../../runtime/Random.ts"
import * as Reconnect from "../../runtime/Reconnect.ts"
import * as Delay from "../../message/Delay.ts"
import { Broker } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import * as Log from "../../port/Log.ts"

const pauses: Reconnect.Pauses = { first: 100, max: 2000 }

/** Milliseconds before the first log line, and between two of them. */
const lines = { first: 1000, between: 5000 } as const

/** Monotonic milliseconds. */
const now = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

/** A duration in whole seconds, from one second on. */
const rounded = (millis: number): string =>
  Delay.format(millis < 1000 ? Math.round(millis) : Math.round(millis / 1000) * 1000)

const timedOut = (error: BrokerError, attempts: number, waited: number): BrokerError => {
  const { broker, cause, operation, queue, reason } = error
  const detail = `${error.detail} (${attempts} ${attempts === 1 ? "attempt" : "attempts"} in ${rounded(waited)})`
  const raise = "Raise waitForBroker if the broker takes longer to start"
  const remedy = error.remedy === undefined ? raise : `${error.remedy}${/[.?]$/.test(error.remedy) ? "" : "."} ${raise}`
  return new BrokerError({ broker, cause, detail, operation, queue, reason, remedy })
}

/** Logs from time to time what is waited for; a slow first attempt only later. It never ends, and is interrupted. */
const report = (end: number, last: () => BrokerError | undefined): Effect.Effect<never> => {
  const line = Effect.flatMap(now, (at) => {
    const error = last()
    return Log.warning(`waiting for the broker, for ${rounded(Math.max(0, end - at))} more`, {
      ...(error && { broker: error.broker }),
      errorMessage: error?.message ?? "the first attempt has no answer yet"
    })
  })
  const first = Effect.suspend(() => (last() === undefined ? Effect.void : line))
  const further = Effect.forever(Effect.andThen(Effect.sleep(lines.between), line))
  return Effect.sleep(lines.first).pipe(Effect.andThen(first), Effect.andThen(further))
}

/**
 * Rebuilds a layer while its broker cannot be reached, even if building it opens no connection. The last attempt begins
 * after `wait` milliseconds. An error that another attempt cannot solve, such as a wrong password or an untrusted certificate, ends the wait at once.
 */
export const patient = (layer: Layer.Layer<Broker, unknown>, wait: number): Layer.Layer<Broker, unknown> => {
  if (wait === 0) return layer
  return Layer.effectContext(
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const build = Effect.gen(function* () {
        const own = yield* Scope.fork(scope)
        const reached = Effect.tap(
          Layer.buildWithScope(layer, own),
          (context) => Context.get(context, Broker).reach ?? Effect.void
        )
        const built = yield* Effect.exit(reached)
        if (Exit.isFailure(built)) yield* Scope.close(own, built)
        return yield* built
      })
      const start = yield* now
      let last: BrokerError | undefined
      const attempts = Effect.gen(function* () {
        for (let failures = 1; ; failures++) {
          const built = yield* Effect.result(build)
          if (Result.isSuccess(built)) return built.success
          const error = built.failure
          if (!(error instanceof BrokerError) || !error.isRetryable || error.isMisconfigured)
            return yield* Effect.fail(error)
          last = error
          const waited = (yield* now) - start
          if (waited >= wait) return yield* Effect.fail(timedOut(error, failures, waited))
          yield* Effect.sleep(Math.ceil(Math.min(Reconnect.pause(failures, yield* Random.next, pauses), wait - waited)))
        }
      })
      return yield* Effect.raceFirst(
        attempts,
        report(start + wait, () => last)
      )
    })
  )
}
