import assert from "node:assert/strict"
import { test } from "node:test"
import { check, imports } from "./arrows.mjs"

const cases = [
  ["packages/core/src/policy/RetryPolicy.ts", 'import * as Delay from "../message/Delay.ts"', null],
  [
    "packages/core/src/message/Delay.ts",
    'import type { RetryPolicy } from "../policy/RetryPolicy.ts"',
    "message may not import policy"
  ],
  [
    "packages/core/src/policy/RetryPolicy.ts",
    'export * from "../consume/Consumer.ts"',
    "policy may not import consume"
  ],
  [
    "packages/core/src/port/Broker.ts",
    'type T = import("../consume/internal/settler.ts").T',
    "port may not import consume"
  ],
  ["packages/core/src/consume/internal/settler.ts", 'import "../../port/Broker.ts"', null],
  ["packages/core/src/consume/Consumer.ts", 'import * as settler from "./internal/settler.ts"', null],
  ["packages/core/src/promise.ts", 'export * from "./faces/Requeue.ts"', null],
  ["packages/core/src/faces/Requeue.ts", 'import {\n  x\n} from "../promise.ts"', "faces may not import the entries"],
  ["packages/core/src/nowhere/Nameless.ts", "", "give its folder a sentence"],
  ["packages/adapter-nsq/src/internal/cellar/x.ts", "", "give its folder a sentence"],
  ["packages/adapter-nsq/src/internal/consume/x.ts", "", null],
  ["packages/adapter-nsq/src/internal/names.ts", "", null],
  ["packages/core/src/message/Delay.ts", 'import * as Memory from "@requeue/adapter-memory"', "may not"],
  ["packages/core/src/message/Delay.ts", 'import { Effect } from "effect"', "may not"],
  ["packages/core/src/message/Delay.ts", 'import * as fs from "node:fs"', "may not"],
  ["packages/core/test/Delay.test.ts", 'import { Delay } from "@requeue/core"', null],
  ["packages/core/test/Delay.test.ts", 'import { it } from "@effect/vitest"', null],
  ["packages/conformance/src/Suite.ts", 'import type { Broker } from "@requeue/core"', null],
  ["packages/conformance/src/Suite.ts", 'import { it } from "vitest"', "may not"],
  ["packages/adapter-nsq/src/Nsq.ts", 'import { Broker } from "@requeue/core/port"', null],
  ["packages/adapter-nsq/src/Nsq.ts", 'import * as Broker from "@requeue/core/port/Broker"', "by its entries"],
  ["packages/adapter-nsq/src/Nsq.ts", 'import { suite } from "@requeue/conformance"', "may not"],
  ["packages/adapter-nsq/test/Nsq.test.ts", 'import { suite } from "@requeue/conformance"', null],
  ["packages/adapter-nsq/src/Nsq.ts", 'import * as Sqs from "@requeue/adapter-sqs"', "may not"],
  ["packages/adapter-nsq/test/Nsq.test.ts", 'import * as Sqs from "@requeue/adapter-sqs"', "may not"],
  ["packages/adapter-nsq/test/Nsq.test.ts", 'import * as Nsq from "@requeue/adapter-nsq/Nsq"', null],
  [
    "packages/adapter-nsq/src/Nsq.ts",
    'import * as x from "../../core/src/message/Delay.ts"',
    "stays inside its package"
  ],
  ["packages/adapter-nsq/src/Nsq.ts", 'import type * as Driver from "some-driver"', "only internal/client.ts"],
  ["packages/adapter-nsq/src/internal/client.ts", 'import * as Driver from "some-driver"', null],
  ["packages/adapter-nsq/src/internal/client.ts", 'import * as Sqs from "@requeue/adapter-sqs"', "may not"],
  ["apps/example/src/main.ts", 'import * as Nsq from "@requeue/adapter-nsq"', null],
  ["apps/example/src/main.ts", 'import { x } from "@requeue/core/consume/internal/settler"', "their own package"]
]

for (const [file, source, expected] of cases) {
  test(`${file}: ${source.replaceAll("\n", " ")}`, () => {
    const lines = check(file, source)
    if (expected === null) assert.deepEqual(lines, [])
    else assert.match(lines.join("\n"), new RegExp(expected))
  })
}

test("comments are no imports, and strings are no comments", () => {
  const source =
    '/** import { a } from "a" */ const glob = "x/*" // from "b"\nimport { c } from "c"\nconst url = "amqp://h"; import("d")'
  assert.deepEqual(imports(source), ["c", "d"])
})
