/**
 * `npm test`: runs the tests of every package, and closes with a line that counts them all. What follows the
 * command goes to turbo, for example `npm test -- --filter=@requeue/core`.
 */
import { measureAlone } from "./measure-alone.mjs"
import { failedLines, forget, results, show, sum } from "./results.mjs"
import { explain, run } from "./run.mjs"

// What could not be measured the last time is measured again, and not taken from the cache.
const before = sum(results().flatMap(({ counts }) => counts ?? []))
const force = before.notMeasurable > 0 ? ["--force"] : []
forget()

const started = performance.now()
const turbo = ["turbo", "run", "test", "--continue=dependencies-successful", ...force, ...process.argv.slice(2)]
const result = run(turbo, { stdio: "inherit" })
if (result.status !== 0) explain(result)

measureAlone()
const after = results()
for (const line of failedLines(after)) console.log(line)
const all = sum(after.flatMap(({ counts }) => counts ?? []))
// A package that was killed has left no report.
const untold = result.status !== 0 && all.failed === 0 ? 1 : 0
const seconds = Math.round((performance.now() - started) / 1000)
console.log(`\n${show({ ...all, failed: all.failed + untold })}, in ${Math.floor(seconds / 60)} min ${seconds % 60} s`)
process.exitCode = all.failed > 0 ? 1 : (result.status ?? 1)
