/**
 * What the tests of every package have in common.
 *
 * Other packages are tested as their sources, not as an earlier build: the condition is in the `exports` of each, and only tests
 * and editors use it.
 */
import { fileURLToPath } from "node:url"
import { defineConfig, mergeConfig } from "vitest/config"
import { patched } from "./patched.mjs"

const condition = "@requeue/source"

const sources = defineConfig({
  plugins: [patched()],
  ssr: { resolve: { conditions: [condition, "node"] } },
  test: {
    // For modules that Node resolves: an adapter that is chosen by its URL, and programs that tests start.
    execArgv: [`--conditions=${condition}`],
    env: { NODE_OPTIONS: `--conditions=${condition}` },
    // The programs that tests start end with the worker that started them, and property tests draw the same inputs each time.
    setupFiles: ["kept.mjs", "seed.mjs"].map((file) => fileURLToPath(new URL(file, import.meta.url)))
  }
})

/** The settings of a package, with additions. */
export const withSources = (own) => mergeConfig(sources, own)

// Time limits that only end what hangs, even on a slow and busy machine; and one worker for many files, because most of a file's
// time would be the loading of modules.
export default withSources({
  test: { isolate: false, testTimeout: 120_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000 } } }
})
