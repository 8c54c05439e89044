import { Cases, Suite, WithStore } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { lessDurable, variants } from "./harness.ts"

const runner = { describe, test, afterAll }

for (const [name, layer] of Object.entries(variants)) {
  Suite.register(runner, { name, layer, virtualTime: true })
}

Suite.register(runner, {
  name: "sqlite with a store in another file",
  layer: WithStore.layer(variants.sqlite!, WithStore.tested(variants.sqlite!)),
  cases: WithStore.cases,
  virtualTime: true
})

const cases = Cases.cases.filter(({ group }) => group === "durability")
for (const [name, layer] of Object.entries(lessDurable)) {
  Suite.register(runner, { name, layer, cases, virtualTime: true })
}
