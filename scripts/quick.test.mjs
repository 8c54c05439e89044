import assert from "node:assert/strict"
import { test } from "node:test"
import settings, { needsServer } from "./quick.config.mjs"

const files = {
  "packages/a/test/direct.test.ts": 'import { start } from "@requeue/brokers"',
  "packages/a/test/server.ts": 'import { start } from "@requeue/brokers"',
  "packages/a/test/world.ts": 'import { server } from "./server.ts"',
  "packages/a/test/deep/helped.test.ts": 'import { on } from "../world.ts"',
  "packages/a/test/plain.test.ts": 'import { make } from "../src/index.ts"\nimport { assert } from "vitest"',
  "packages/a/src/index.ts": 'export const start = () => import("@requeue/brokers")',
  "tools/brokers/test/start.test.ts": 'import { start } from "../src/index.ts"',
  "tools/brokers/test/proxy.test.ts": 'import { proxy } from "../src/proxy.ts"',
  "tools/brokers/src/proxy.ts": ""
}

const cases = [
  ["packages/a/test/direct.test.ts", true],
  ["packages/a/test/deep/helped.test.ts", true],
  ["packages/a/test/plain.test.ts", false],
  ["tools/brokers/test/start.test.ts", true],
  ["tools/brokers/test/proxy.test.ts", false]
]

for (const [file, expected] of cases) {
  test(`${file} ${expected ? "needs a server" : "needs none"}`, () => {
    assert.equal(
      needsServer(file, (name) => files[name]),
      expected
    )
  })
}

test("every package has tests that need no server", () => {
  const names = settings.test.projects.map((project) => project.test.name)
  for (const name of ["core", "adapter-nsq", "adapter-rabbitmq", "adapter-sqs", "cli", "example"]) {
    assert.ok(names.includes(name), name)
  }
})
