/** The rulers: a real nsqd that is made late, or early, by little is found out on any machine, and the real one passes. */
import { start } from "@requeue/brokers"
import { Cases, Mutant, Mutants, Suite } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import { afterAll, assert, describe, test } from "vitest"
import { layer } from "../real/harness.ts"
import { lateness } from "../world.ts"

const broker = await start("nsq", { flags: { "queue-scan-selection-count": 1000 } })
afterAll(() => broker.dispose())

const way = layer(broker, { by: "address", lateness, queues: 2 })
const { kills } = Mutants.shifted(-20)
const options = { name: "nsq", layer: way, cases: Cases.cases.filter(({ name }) => name === kills) }

describe("nsqd", () => {
  test("that hands over retries late by twice what it may, or early by 20 ms, is killed", async (context) => {
    const { delayResolution } = await Effect.runPromise(
      Effect.provide(
        Effect.map(Broker.Broker, ({ capabilities }) => capabilities),
        way
      )
    )
    // The early one first, as that is told on any machine.
    for (const mutant of [Mutants.shifted(-20), Mutants.shifted(2 * (lateness + delayResolution))]) {
      const verdict = await Effect.runPromise(Mutant.run(mutant, options))
      Mutant.report(context, verdict)
      if (verdict._tag === "Killed") assert.match(String(verdict.error), /late; |early/)
    }
  })

  Suite.register({ describe, test, afterAll }, options)
})
