/** Cases of what only NSQ has; and the adapter, broken in one place at a time, fails the case that the mutant names. */
import type { NsqBroker } from "@requeue/adapter-nsq"
import { describe, expect, test } from "vitest"
import { run } from "./Bench.ts"
import { ownPatches, planted } from "./mutants.ts"
import * as Connections from "./connectionCases.ts"
import * as Lookups from "./lookupCases.ts"
import * as Modes from "./modeCases.ts"
import * as Own from "./ownCases.ts"
import * as Planted from "./plantedCases.ts"
import * as Traps from "./trapCases.ts"

const cases = [...Own.cases, ...Connections.cases, ...Lookups.cases, ...Planted.cases, ...Traps.cases, ...Modes.cases]

describe("NSQ's own", () => {
  test.each(cases.map((each) => [each.name, each] as const))("%s", (_, each) => run(each))
})

describe("every patch of this adapter is found by its own case that it names", () => {
  test.each([...ownPatches, ...planted].map((patch) => [patch.name, patch] as const))("%s", async (_, patch) => {
    const adapter: { readonly NsqBroker: typeof NsqBroker } = await import(
      /* @vite-ignore */ `@requeue/adapter-nsq?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    const [found, ...others] = cases.filter(({ name }) => name === patch.kills)
    expect([patch.kills, found?.name, others.length]).toEqual([patch.kills, patch.kills, 0])
    const end = run(found!, adapter.NsqBroker.make).then(
      () => "survived",
      () => "died"
    )
    await expect(end).resolves.toBe("died")
  })
})
