import { longestFirst } from "../../scripts/longest-first.mjs"
import { withSources } from "../../scripts/vitest.config.mjs"

// Files side by side, and more of them than processors: most of their time, they wait. What they say of lateness they
// judge against controls, and every file has its own servers (see test/deep/server.ts).
// They start their own nsqd, whatever the environment names: several at once, with flags, and to be killed.
export default withSources({
  test: {
    isolate: false,
    maxWorkers: 3,
    sequence: longestFirst("conformanceLookup", "conformance", "mutants", "delays"),
    maxConcurrency: 8,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    env: { REQUEUE_NSQ_URL: "" }
  }
})
