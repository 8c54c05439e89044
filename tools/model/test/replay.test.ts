/** The engine does what the model does, in every trace that is committed. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fixture from "../src/fixture.ts"
import { replay } from "../src/replay.ts"

describe("the engine does what the model does in", () => {
  for (const trace of Fixture.read()) {
    it.effect(trace.name, () => Effect.map(replay(trace), (difference) => assert.isUndefined(difference)))
  }
})
