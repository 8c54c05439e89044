/**
 * `npm test`: builds, runs the tests of every package, and closes with a line that counts them all. What follows the
 * command goes to turbo, for example `npm test -- --filter=@requeue/core`.
 */
import { results, show, sum } from "./results.mjs"
import { explain, run } from "./run.mjs"

const turbo = ["turbo", "run", "build", "test", "--continue=dependencies-successful", ...process.argv.slice(2)]
const started = performance.now()
const result = run(turbo, { stdio: "inherit" })
if (result.status !== 0) explain(result)

const counted = results().flatMap(({ counts }) => counts ?? [])
const seconds = Math.round((performance.now() - started) / 1000)
console.log(`\n${show(sum(counted))}, in ${Math.floor(seconds / 60)} min ${seconds % 60} s`)
process.exitCode = result.status ?? 1
