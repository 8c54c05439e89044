/** Lines of the log that commands write, by their format. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { MemoryBroker } from "@requeue/adapter-memory"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { requeue } from "./requeue.ts"

/** An adapter that logs a line when it connects, with the address that it was given. */
const adapter = {
  schemes: ["logs"],
  layer: (url: string) =>
    Layer.provideMerge(
      MemoryBroker.layer(),
      Layer.effectDiscard(Effect.annotateLogs(Effect.logWarning(`slow: ${url}`), { queue: "orders" }))
    )
}

const cwd = mkdtempSync(join(tmpdir(), "requeue-log-"))
const shared = globalThis as { loggingAdapter?: unknown }

beforeAll(() => {
  shared.loggingAdapter = adapter
  const broker = "{ url: 'logs://ann:s3cret@host', adapter: globalThis.loggingAdapter }"
  writeFileSync(
    join(cwd, "requeue.config.mjs"),
    `export default { brokers: { main: ${broker} }, queues: { orders: {} } }`
  )
})
afterAll(() => {
  delete shared.loggingAdapter
  rmSync(cwd, { recursive: true })
})

/** The line that the adapter logs. */
const logged = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { stderr } = await requeue(["status", "--queue", "orders", ...args], { cwd })
  const line = stderr.split("\n").find((each) => each.includes("slow: "))
  assert.isDefined(line, stderr)
  return line
}

const withTime = ({ timestamp, ...line }: Readonly<Record<string, unknown>>) => {
  assert.isNotNaN(Date.parse(String(timestamp)))
  return line
}

const expected = { level: "warn", message: "slow: logs://ann:s3cret@host", queue: "orders" }

describe("lines of the log", () => {
  it.each([["--log-format=json"], ["--log-format", "json"]])("are JSON objects with %s", async (...args) => {
    const line = await logged(...args)
    assert.deepStrictEqual(withTime(JSON.parse(line)), expected)
  })

  it("are under one key with --json, whatever their format", async () => {
    for (const args of [["--json"], ["--json", "--log-format=json"]]) {
      const line = await logged(...args)
      assert.deepStrictEqual(withTime(JSON.parse(line).log), expected)
    }
  })

  it("are text by default", async () => {
    for (const args of [[], ["--log-format", "text"]]) {
      const line = await logged(...args)
      assert.match(line, /WARN .*slow: /)
    }
  })

  it("have no other format", async () => {
    const { code, stderr } = await requeue(["status", "--queue", "orders", "--log-format", "xml"], { cwd })
    assert.strictEqual(code, 2)
    assert.match(stderr, /^requeue: .*log-format.*"text" \| "json"/)
  })
})
