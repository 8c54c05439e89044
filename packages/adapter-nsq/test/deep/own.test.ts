/** Cases of what only NSQ has; and the adapter, broken in one place at a time, fails the case that the mutant names. */
import { assert, describe, test } from "vitest"
import { ownPatches } from "./mutants.ts"
import { cases, type OwnCase } from "./ownCases.ts"
import { server } from "./server.ts"

const two = await server({ nodes: 2 })

/** Milliseconds after which a case on a broken adapter has failed: on a sound one, none takes half as long. */
const longest = 20_000

const tooLong = async (): Promise<"failed"> =>
  new Promise((resolve) => setTimeout(() => resolve("failed"), longest).unref())

describe.concurrent("NSQ's own", () => {
  test.each(cases.map((each) => [each.name, each] as const))("%s", (_, { run }) => run(two))
})

describe.concurrent("every patch of this adapter is found by its own case that it names", () => {
  test.each(ownPatches.map((patch) => [patch.name, patch] as const))("%s", async (_, patch) => {
    const patched: { readonly cases: ReadonlyArray<OwnCase> } = await import(
      /* @vite-ignore */ `./ownCases.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    const { run } = patched.cases.find(({ name }) => name === patch.kills)!
    const ran = run(two).then(
      () => "passed",
      () => "failed"
    )
    assert.strictEqual(await Promise.race([ran, tooLong()]), "failed")
  })
})
