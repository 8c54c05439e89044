/** `requeue send`: the place of a message among others. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it, onTestFinished } from "vitest"
import { requeue } from "./requeue.ts"

it("requeue send gives a message its key and its fairBy", async () => {
  const cwd = await mkdtemp(join(tmpdir(), "requeue-cli-"))
  onTestFinished(() => rm(cwd, { recursive: true }))
  const file = join(cwd, "queue.db")
  const send = (...args: ReadonlyArray<string>) =>
    requeue(["send", "--url", `sqlite:${file}`, "-q", "jobs", "{}", ...args], { cwd })
  for (const args of [[], ["--key", "k", "--fair-by", "tenant"]]) {
    const { code, stderr } = await send(...args)
    assert.strictEqual(code, 0, stderr)
  }
  const db = new DatabaseSync(file)
  onTestFinished(() => db.close())
  const rows = db.prepare("SELECT key, fair_by FROM requeue_message ORDER BY seq").all()
  assert.deepStrictEqual(
    rows.map((row) => ({ ...row })),
    [
      { key: null, fair_by: null },
      { key: "k", fair_by: "tenant" }
    ]
  )
  const { code, stderr } = await send("--fair-by", "x".repeat(201))
  assert.strictEqual(code, 2)
  assert.include(stderr, "fairBy: must have 1 to 200 characters, got 201")
})
