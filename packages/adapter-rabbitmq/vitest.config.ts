import { longestFirst } from "../../scripts/longest-first.mjs"
import { withSources } from "../../scripts/vitest.config.mjs"

// Files side by side, and the files of a worker in one process, where they share a server (see test/real/server.ts). They
// mostly wait; what is late is judged beside controls of the same moment. The times are there to end what hangs.
export default withSources({
  test: {
    isolate: false,
    maxWorkers: 2,
    sequence: longestFirst("conformance", "healing", "clean", "mutants", "delays", "faults", "neighbours", "elsewhere"),
    maxConcurrency: 8,
    testTimeout: 600_000,
    hookTimeout: 300_000
  }
})
