import { withSources } from "../../scripts/vitest.config.mjs"

// One file after the other in one process: they share a server (see test/brokers.ts). What takes time in a file, its pages
// or its tests, runs side by side. The deadlines are for what hangs: nothing is waited for as long on any machine.
export default withSources({
  test: { isolate: false, fileParallelism: false, maxConcurrency: 8, testTimeout: 300_000, hookTimeout: 300_000 }
})
