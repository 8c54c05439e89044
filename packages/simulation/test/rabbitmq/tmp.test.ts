import { test } from "vitest"
import { Cases, Suite } from "@requeue/conformance"
import * as Effect from "effect/Effect"
import { layer } from "./harness.ts"
test("x", async () => {
  const names = (process.env.CASE ?? "").split("|")
  const ledger = await Effect.runPromise(Suite.run({ name: "t", layer: layer(), virtualTime: true, logs: true, cases: Cases.cases.filter(({name}) => names.includes(name)) }))
  process.stderr.write(JSON.stringify(ledger.lines.map(({outcome}) => outcome)).slice(0, 2000) + "\n")
})
