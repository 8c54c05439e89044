/** Commands of dead letters that need no letters. */
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "vitest"
import { requeue } from "./requeue.ts"

it("a dry run of an import that stops names no line to go on with", async () => {
  const metadata = { v: 1, id: "order-1", a: 3, t0: 1_700_000_000_000 }
  const line = JSON.stringify({ queue: "orders.dlq", body: "{}", headers: {}, metadata })
  const file = join(mkdtempSync(join(tmpdir(), "requeue-")), "bad.jsonl")
  writeFileSync(file, [...Array.from({ length: 3 }, () => line), "{}"].join("\n"))
  const args = ["dead-letters", "import", file, "--url", "memory:", "--create"]
  const dry = await requeue([...args, "--dry-run"])
  assert.strictEqual(dry.code, 1)
  assert.match(
    dry.stdout,
    /^orders\.dlq: would import 3\nline 4: .*\nNothing was imported\. Fix line 4, or remove it, and run the same command again\n$/
  )
  const dryJson = JSON.parse((await requeue([...args, "--dry-run", "--json"])).stdout) as { readonly next: number }
  assert.strictEqual(dryJson.next, 1)
  const done = await requeue(args)
  assert.include(done.stdout, "Lines before 4 are imported. Give --from-line 4 to go on")
})

it("an import to a broker without fair shares names the first line with fairBy, and the reason", async () => {
  const metadata = { v: 1, id: "order-1", a: 3, t0: 1_700_000_000_000 }
  const line = (more: object) => JSON.stringify({ queue: "orders.dlq", body: "{}", headers: {}, metadata, ...more })
  const file = join(mkdtempSync(join(tmpdir(), "requeue-")), "tenants.jsonl")
  writeFileSync(file, [line({}), line({ fairBy: "acme" })].join("\n"))
  const { code, stdout } = await requeue([
    "dead-letters",
    "import",
    file,
    "--url",
    "sqs://eu-west-1",
    "--create",
    "--dry-run"
  ])
  assert.strictEqual(code, 1)
  assert.match(
    stdout,
    /^orders\.dlq: would import 1\nline 2: sqs: publish on queue orders\.dlq: Unsupported: SQS itself divides/
  )
})

it.each(["list", "group", "peek", "export", "purge --all --yes", "redrive --yes", "park --yes"])(
  "%s refuses --queue and --dlq together",
  async (command) => {
    const args = ["dead-letters", ...command.split(" "), "--url", "memory:", "-q", "orders", "--dlq", "orders.dlq"]
    const { code, stderr } = await requeue(args)
    assert.strictEqual(code, 2)
    assert.include(stderr, "--queue and --dlq do not go together")
  }
)
