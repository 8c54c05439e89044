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

/** Monotonic milliseconds. */
const now = Effect.map(Clock.Clock, (clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1e6)

const givenUp = (error: BrokerError, attempts: number, waited: number): BrokerError => {
  const { broker, cause, detail, operation, queue, reason, remedy } = error
  const tried = `${detail} (${attempts} attempts in ${Delay.format(waited)})`
  return new BrokerError({ broker, cause, detail: tried, operation, queue, reason, remedy })
}

/**
 * Rebuilds a layer while its broker cannot be reached, even if building it opens no connection. The last attempt begins
 * after `wait` milliseconds. An error that another attempt cannot solve, such as a wrong password, ends the wait at once.
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
      for (let failures = 1; ; failures++) {
        const built = yield* Effect.result(build)
        if (Result.isSuccess(built)) return built.success
        const error = built.failure
        if (!(error instanceof BrokerError) || !error.isRetryable) return yield* Effect.fail(error)
        const waited = (yield* now) - start
        if (waited >= wait) return yield* Effect.fail(givenUp(error, failures, waited))
        const left = wait - waited
        if (Reconnect.isTold(failures - 1)) {
          yield* Log.warning(`waiting for the broker, for ${Delay.format(left)} at most`, {
            broker: error.broker,
            errorMessage: error.message
          })
        }
        yield* Effect.sleep(Math.ceil(Math.min(Reconnect.pause(failures, yield* Random.next, pauses), left)))
      }
    })
  )
}
