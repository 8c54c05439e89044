/** The file broker, broken below the port in one place at a time: the named case fails, and passes on the broker as it is. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Mutant from "../src/Mutant.ts"
import type { layer } from "./victim/harness.ts"
import { type Patch, patches } from "./victim/mutants.ts"

const broken = async (patch: Patch): Promise<{ readonly layer: typeof layer }> =>
  import(/* @vite-ignore */ `./victim/harness.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

describe("every patch of the file broker is found by the case that it names", () => {
  it.live.each(patches)("$name: $kills", (patch) =>
    Effect.gen(function* () {
      const { layer } = yield* Effect.promise(() => broken(patch))
      const { _tag, ...rest } = yield* Mutant.run(patch, { name: "file", layer, virtualTime: true })
      assert.strictEqual(_tag, "Killed", JSON.stringify(rest))
    })
  )
})
