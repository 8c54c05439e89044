/**
 * A burst must not make V8 allocate the objects of all later messages in the old generation, see `ShortList` in core.
 */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, test } from "vitest"

test("no literal that messages need is tenured after a burst of sends", async () => {
  const program = fileURLToPath(new URL("burst.ts", import.meta.url))
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--conditions=@requeue/source", "--trace-pretenuring", "--trace-pretenuring-statistics", program],
    { maxBuffer: 64 * 1024 * 1024 }
  )
  const decisions = stdout.split("\n").filter((line) => line.includes("AllocationSite"))
  assert.isNotEmpty(decisions)
  const tenured = decisions.filter((line) => line.endsWith("=> tenure"))
  assert.isEmpty(tenured)
})
