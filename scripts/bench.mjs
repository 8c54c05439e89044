/** Builds what the benchmarks need, quietly, then runs them on the workspace's Node with the given arguments. */
import { join } from "node:path"
import { explain, run } from "./run.mjs"
import { root } from "./workspace.mjs"

const build = run(["turbo", "run", "build", "--filter=./benchmarks..."])
if (build.status !== 0) {
  explain(build)
  process.exit(1)
}
const kept = ["--import", import.meta.resolve("./kept.mjs")]
const bench = run(["node", ...kept, join(root, "benchmarks", "dist", "cli.js"), ...process.argv.slice(2)], {
  stdio: "inherit",
  // Start-up is measured as users have it, without a compile cache.
  env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" }
})
process.exitCode = bench.status ?? 1
