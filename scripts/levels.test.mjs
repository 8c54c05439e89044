import assert from "node:assert/strict"
import { test } from "node:test"
import { check } from "./levels.mjs"

const clock = "const began = performance.now()\n"
const files = {
  "packages/a/test/direct.test.ts": 'import { start } from "@requeue/brokers"',
  "packages/a/test/helped.test.ts": 'import { on } from "./real/server.ts"',
  "packages/a/test/plain.test.ts": 'import { make } from "../src/index.ts"\nimport { assert } from "vitest"',
  "packages/a/test/slow.test.ts": `${clock}assert.isBelow(performance.now() - began, 100)`,
  "packages/a/test/slow2.test.ts": `${clock}const took = performance.now() - began\nassert.isTrue(took < 100)`,
  "packages/a/test/slow3.test.ts": `${clock}expect(performance.now() - began < 100).toBe(true)`,
  "packages/a/test/early.test.ts": `${clock}assert.isAtLeast(performance.now() - began, 100)`,
  "packages/a/test/number.test.ts": `${clock}assert.isBelow(sizes.length, 100)`,
  "packages/a/test/deep/slow.test.ts": `${clock}assert.isBelow(performance.now() - began, 100)`,
  "packages/a/test/deep/server.test.ts": 'import { on } from "../real/server.ts"',
  "packages/a/test/real/server.ts": 'import { start } from "@requeue/brokers"',
  "packages/adapter-nsq/test/real/facts.test.ts": 'import { start } from "@requeue/brokers"',
  "packages/adapter-nsq/test/real/late.test.ts": 'import * as Control from "@requeue/conformance/Control"',
  "packages/a/src/index.ts": 'export const start = () => import("@requeue/brokers")',
  "tools/brokers/test/start.test.ts": 'import { start } from "../src/index.ts"',
  "tools/brokers/test/proxy.test.ts": 'import { proxy } from "../src/proxy.ts"',
  "tools/brokers/src/proxy.ts": ""
}

const cases = [
  ["packages/a/test/direct.test.ts", /starts a server/],
  ["packages/a/test/helped.test.ts", /starts a server/],
  ["packages/a/test/plain.test.ts"],
  ["packages/a/test/slow.test.ts", /:2 asserts an upper bound on real time/],
  ["packages/a/test/slow2.test.ts", /:3 asserts an upper bound on real time/],
  ["packages/a/test/slow3.test.ts", /:2 asserts an upper bound on real time/],
  ["packages/a/test/early.test.ts"],
  ["packages/a/test/number.test.ts"],
  ["packages/a/test/deep/slow.test.ts"],
  ["packages/a/test/deep/server.test.ts"],
  ["packages/a/test/real/server.ts", /name the servers of packages\/a/],
  ["packages/adapter-nsq/test/real/facts.test.ts"],
  ["packages/adapter-nsq/test/real/late.test.ts", /judges lateness/],
  ["tools/brokers/test/start.test.ts", /starts a server/],
  ["tools/brokers/test/proxy.test.ts"]
]

for (const [file, wrong] of cases) {
  test(`${file} ${wrong === undefined ? "is in its place" : `is in the wrong place: ${wrong.source}`}`, () => {
    const lines = check(file, (name) => files[name])
    if (wrong === undefined) assert.deepEqual(lines, [])
    else assert.match(lines.join("\n"), wrong)
  })
}
