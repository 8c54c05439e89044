import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./conformanceLayer.ts"
import { variants } from "./conformanceOptions.ts"

for (const [name, options] of Object.entries(variants)) {
  Suite.register({ describe, test, afterAll }, { name, layer: layer(options), virtualTime: true })
}
