import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { variants } from "./harness.ts"

for (const [name, layer] of Object.entries(variants)) {
  Suite.register({ describe, test, afterAll }, { name, layer, virtualTime: true })
}
