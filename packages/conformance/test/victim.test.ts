/** A correct broker of leases, in a file that processes share, passes all that applies to it. */
import { afterAll, describe, test } from "vitest"
import * as Suite from "../src/Suite.ts"
import { layer } from "./victim/harness.ts"

Suite.register({ describe, test, afterAll }, { name: "file", layer, virtualTime: true })
