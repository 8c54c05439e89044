import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./conformanceLayer.ts"

Suite.register({ describe, test, afterAll }, { name: "memory", layer: layer(), virtualTime: true })
