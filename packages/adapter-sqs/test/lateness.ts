/** How late what a test saw was, against controls on the same broker; measured again where those were too late. */
import { Control, Lateness, Measured } from "@requeue/conformance"
import type { Broker, Service } from "@requeue/core/Broker"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { assert } from "vitest"
import type { SqsOptions } from "../src/index.ts"
import { on, queueName } from "./world.ts"

/** Something that was asked for at one time and came at another, in milliseconds since the epoch. */
export interface Came extends Omit<Lateness.Reading, "control"> {
  readonly from: number
  readonly at: number
}

/** Of all readings, only this share may be late. */
const check = (readings: ReadonlyArray<Lateness.Reading>, share: number) => {
  const those = (verdict: Lateness.Verdict) => readings.filter((reading) => Lateness.judge(reading) === verdict)
  const [late, unclear, most] = [those("Late"), those("NotMeasurable"), Math.floor(share * readings.length)]
  if (late.length > most) return Lateness.check(late)
  return late.length + unclear.length > most ? Lateness.check(unclear) : Effect.void
}

/** Runs a measurement on a broker. Early fails at once; of what came, only this share may be late. */
export const measured = async (
  context: Measured.TestContext,
  options: SqsOptions.Options,
  measure: (broker: Service) => Effect.Effect<ReadonlyArray<Came>, unknown, Broker | Scope.Scope>,
  share = 0
): Promise<void> => {
  const measurement = Effect.gen(function* () {
    const readings = yield* Effect.promise(() =>
      on(options, (broker) =>
        Effect.gen(function* () {
          const control = yield* Control.make(broker, queueName("control"))
          const judged = Effect.map(measure(broker), (all) => {
            for (const { late, what } of all) assert.isAtLeast(late, 0, `${what} is early`)
            return all
          })
          return yield* Effect.flatMap(judged, (all) =>
            Effect.forEach(
              all,
              ({ at, from, ...reading }) =>
                Effect.map(control.lateness(from, at), (late): Lateness.Reading => ({ ...reading, control: late })),
              { concurrency: "unbounded" }
            )
          )
        })
      )
    )
    yield* check(readings, share)
    return readings
  })
  const { reason, times } = await Effect.runPromise(Measured.run(measurement))
  Measured.report(context, times, reason?.message)
}
