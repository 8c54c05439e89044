import { longestFirst } from "../../scripts/longest-first.mjs"
import { withSources } from "../../scripts/vitest.config.mjs"

// Two files side by side, and the files of a worker in one process, where they share a server (see test/real/brokers.ts). What
// takes time in a file, its pages or its tests, runs side by side as well. The deadlines are for what hangs: nothing is
// waited for as long on any machine.
export default withSources({
  test: {
    isolate: false,
    maxWorkers: 2,
    sequence: longestFirst("sessions", "brokenFix", "operator", "interruption", "looks"),
    maxConcurrency: 8,
    testTimeout: 300_000,
    hookTimeout: 300_000
  }
})
