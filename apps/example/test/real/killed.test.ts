/** A run on a file is killed twice, and started again: the books include what the killed runs published and delivered. */
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { start } from "./program.ts"

test("on SQLite the books balance after two kills", async () => {
  const folder = mkdtempSync(join(tmpdir(), "requeue-demo-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, "dispatcher.db")
  const run = () => start("--json", "--url", `sqlite:${file}?lease=2s`, "--count", "400", "--seed", "7")
  for (const sign of [/delivered [1-9]/, /subscribers have recovered/]) {
    const killed = run()
    await killed.says(sign)
    killed.child.kill("SIGKILL")
    expect(await killed.ended()).toEqual({ code: null, signal: "SIGKILL" })
  }
  const other = start("--url", `sqlite:${file}`, "--count", "500", "--seed", "7")
  expect(await other.ended()).toEqual({ code: 2, signal: null })
  expect(other.output.stderr).toContain("continue it with --seed 7 --count 400")
  const last = run()
  expect(await last.ended()).toEqual({ code: 0, signal: null })
  const report = last.report()
  expect(report).toMatchObject({ balanced: true, early: 0, published: 400, stopped: null })
  expect(report.continues).toMatchObject({ published: 400 })
  expect(report.continues!.delivered).toBeGreaterThan(0)
  expect(report.redrive ?? report).toMatchObject({ balanced: true, delivered: 400, deadLettered: 0 })
  expect(existsSync(`${file}.journal`)).toBe(false)
})
