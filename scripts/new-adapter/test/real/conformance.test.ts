import { Suite } from "@requeue/conformance"
import { afterAll, describe, test } from "vitest"
import { layer } from "./harness.ts"

Suite.register({ describe, test, afterAll }, { name: "acme", layer })
