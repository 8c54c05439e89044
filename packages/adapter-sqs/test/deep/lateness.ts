/** How late what a test saw was, against controls on the same broker; measured again where those were too late. */
import { Control, Measured } from "@requeue/conformance"
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SqsOptions } from "../../src/index.ts"
import { queueName, running } from "../real/world.ts"

/** A test that runs a measurement on a broker. Early fails at once; of what came, only this share may be late. */
export const measured = (
  context: Measured.TestContext,
  options: SqsOptions.Options,
  measure: (
    broker: Broker.Service
  ) => Effect.Effect<ReadonlyArray<Control.Arrival>, unknown, Broker.Broker | Scope.Scope>,
  share = 0
): Promise<void> =>
  Measured.inTest(
    context,
    running(options, (broker) =>
      Effect.gen(function* () {
        const control = yield* Control.make(broker, queueName("control"))
        yield* Control.check(control, yield* measure(broker), share)
      })
    )
  )
