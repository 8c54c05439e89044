import { withSources } from "../../scripts/vitest.config.mjs"

// Long enough for Maven's first download, and for Alloy on a machine that is slow and busy.
export default withSources({ test: { testTimeout: 900_000, hookTimeout: 900_000 } })
