/** The adapter, broken in one place at a time: the named case fails, and passes on the adapter as it is. */
import { start } from "@requeue/brokers"
import { Mutant } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { afterAll, describe, test, type TestContext, vi } from "vitest"
import { layer } from "../real/harness.ts"
import { afterCrash, patches } from "./mutants.ts"

const broken = async (patch: Mutant.Patch): Promise<{ readonly layer: typeof layer }> =>
  import(/* @vite-ignore */ `../real/harness.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`)

// Some cases kill it.
vi.stubEnv("REQUEUE_POSTGRES_URL", "")
const [many, one] = [await start("postgres"), await start("postgres")]
afterAll(() => Promise.all([many.dispose(), one.dispose()]))

const lease = 8000

const isKilled =
  (server: typeof many) =>
  async (patch: Mutant.Patch, context: TestContext): Promise<void> => {
    const { layer: patched } = await broken(patch)
    const layers = { sound: layer(server, { lease }), broken: patched(server, { lease }) }
    Mutant.report(context, await Effect.runPromise(Mutant.runPatched(patch, { name: "postgres", ...layers })))
  }

describe.concurrent("every patch of this adapter is found by the case that it names", () => {
  test.concurrent.for(patches)("$name: $kills", isKilled(many))
})

describe("every patch of what a crash shows is found", () => {
  test.for(afterCrash)("$name: $kills", isKilled(one))
})
