/**
 * The settings of vitest for all packages in one run: the projects `virtual` and `real` are the levels that `npm test`
 * runs. One project for all packages, so a worker loads each module once.
 */
import { longestFirst } from "./longest-first.mjs"
import { globs } from "./levels.mjs"
import { withSources } from "./vitest.config.mjs"
import { root } from "./workspace.mjs"

const level = (name, own) => withSources({ root, test: { name, include: globs[name], isolate: false, ...own } })

export default {
  test: {
    // The output of passing tests is for `npm run test:package`.
    silent: "passed-only",
    // Also outside of CI: it would hide the other tests of its file.
    allowOnly: false,
    slowTestThreshold: 20_000,
    // Vitest reserves a core for itself, though it needs little.
    maxWorkers: "100%",
    sequence: longestFirst("journey", "conformance", "check", "mutants"),
    projects: [
      level("virtual", {
        exclude: [...globs.real, ...globs.deep, "**/node_modules/**"],
        env: { REQUEUE_NO_SERVERS: "1" },
        testTimeout: 120_000,
        hookTimeout: 120_000
      }),
      level("real", {
        // The cases of a suite spend nearly all of their time waiting.
        maxConcurrency: 16,
        testTimeout: 600_000,
        hookTimeout: 600_000,
        expect: { poll: { timeout: 120_000 } }
      })
    ]
  }
}
