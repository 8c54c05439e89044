/** What V8 keeps until its next full collection, although nothing refers to it any more. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, test } from "vitest"

/** Returns what a program prints in an engine with these flags. */
const run = async (program: URL, ...flags: ReadonlyArray<string>): Promise<string> => {
  const args = ["--conditions=@requeue/source", ...flags, fileURLToPath(program)]
  return (await promisify(execFile)(process.execPath, args, { maxBuffer: 64 * 1024 * 1024 })).stdout
}

// See `ShortList` in core.
test("no literal that messages need is tenured after a burst of sends", async () => {
  const stdout = await run(
    new URL("burst.ts", import.meta.url),
    "--trace-pretenuring",
    "--trace-pretenuring-statistics"
  )
  const decisions = stdout.split("\n").filter((line) => line.includes("AllocationSite"))
  assert.isNotEmpty(decisions)
  const tenured = decisions.filter((line) => line.endsWith("=> tenure"))
  assert.isEmpty(tenured)
})

// See `StackTrace` in core.
test("the errors of failed messages are freed with the young objects", async () => {
  const lines = (await run(new URL("failing.ts", import.meta.url), "--expose-gc")).trim().split("\n")
  assert.isBelow(Number(lines.at(-1)), 2)
})
