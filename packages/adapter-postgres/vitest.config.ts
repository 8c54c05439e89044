import { withSources } from "../../scripts/vitest.config.mjs"

export default withSources({ test: { testTimeout: 300_000, hookTimeout: 300_000 } })
