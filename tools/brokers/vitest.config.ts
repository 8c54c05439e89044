import { withSources } from "../../scripts/vitest.config.mjs"

// A start may take all of its five minutes, where a machine is slow or busy, and a test may start more than one server.
export default withSources({ test: { testTimeout: 900_000, hookTimeout: 900_000 } })
