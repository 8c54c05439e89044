import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { SqliteOptions } from "../src/index.ts"

const decoded = (url: string, others: SqliteOptions.Options = {}) =>
  Result.getOrThrow(SqliteOptions.decode({ url, ...others }))

describe("options", () => {
  it("have defaults", () =>
    assert.deepStrictEqual(Result.getOrThrow(SqliteOptions.decode()), {
      path: ":memory:",
      durability: "full",
      lease: 30_000,
      timeout: 10_000
    }))

  it("come from the query as well, and code beats the query", () =>
    assert.deepInclude(decoded("sqlite:./q.db?durability=off&timeout=5s&lease=1m", { timeout: 700 }), {
      durability: "off",
      timeout: 700,
      lease: 60_000
    }))

  it.each([
    ["sqlite:queue.db", "queue.db"],
    ["sqlite:./queue.db", "./queue.db"],
    ["sqlite:../../queue.db", "../../queue.db"],
    ["sqlite:/data/queue.db", "/data/queue.db"],
    ["sqlite:///data/queue.db", "/data/queue.db"],
    ["sqlite:./my%20queue%23.db", "./my queue#.db"]
  ])("read the path of %s", (url, path) => assert.strictEqual(decoded(url).path, path))

  it.each([
    ["nonsense", "url"],
    ["http://h", "url"],
    ["sqlite:", "url"],
    ["sqlite:./folder/", "url"],
    ["sqlite://queue.db", "url"],
    ["sqlite:./q.db?nonsense=1", "url"],
    ["sqlite:./q.db?durability=some", "durability"],
    ["sqlite:./q.db?timeout=1", "timeout"],
    ["sqlite:./q.db?lease=13h", "lease"]
  ])("refuse %s", (url, field) => {
    const refused = SqliteOptions.decode({ url })
    assert.strictEqual(Result.isFailure(refused) ? refused.failure.field : undefined, field)
  })
})
