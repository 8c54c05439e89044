/**
 * What the tests of every package have in common.
 *
 * Other packages are tested as their sources, and not as what was built of them some time ago: the condition stands in
 * the `exports` of each, and is used by nothing but tests and editors.
 */
import { fileURLToPath } from "node:url"
import { defineConfig, mergeConfig } from "vitest/config"
import { patched } from "./patched.mjs"

const condition = "@requeue/source"

const sources = defineConfig({
  plugins: [patched()],
  ssr: { resolve: { conditions: [condition, "node"] } },
  test: {
    // For what Node resolves itself: an adapter that is chosen by its URL, and programs that tests start.
    execArgv: [`--conditions=${condition}`],
    env: { NODE_OPTIONS: `--conditions=${condition}` },
    // The programs that tests start end with the worker that started them.
    setupFiles: [fileURLToPath(new URL("kept.mjs", import.meta.url))]
  }
})

/** The settings of a package with some of its own. */
export const withSources = (own) => mergeConfig(sources, own)

// Time limits that only end what hangs, on a machine that is slow and busy as well; and one worker for many files, because
// most of a file's time would be the loading of modules.
export default withSources({
  test: { isolate: false, testTimeout: 120_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000 } } }
})
