import { longestFirst } from "../../scripts/longest-first.mjs"
import { withSources } from "../../scripts/vitest.config.mjs"

// Nearly all of their time, tests wait for SQS's whole seconds, so many do that side by side. What is late by a machine
// that has too much to do is told by controls; the timeouts only end what hangs.
export default withSources({
  test: {
    maxWorkers: 2,
    sequence: longestFirst("conformanceElasticmq", "conformance"),
    maxConcurrency: 8,
    testTimeout: 300_000,
    hookTimeout: 300_000
  }
})
