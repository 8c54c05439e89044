import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as AdapterOptions from "../src/AdapterOptions.ts"
import { OptionKind } from "@requeue/core/port"
import * as OptionTree from "../src/OptionTree.ts"

const secret = "hunter2"

const decode = AdapterOptions.decoder("acme", {
  timeout: OptionKind.whole(1, 9),
  copies: OptionKind.oneOf([1, 2]),
  mode: OptionKind.oneOf(["fast", "slow"]),
  name: OptionKind.nonEmpty,
  code: OptionKind.matching("three letters", /^[a-z]{3}$/),
  hosts: OptionTree.list(OptionKind.text),
  queues: OptionTree.record(
    OptionTree.struct({
      type: OptionKind.text,
      ways: OptionTree.optional(OptionTree.list(OptionTree.struct({ key: OptionKind.text })))
    })
  )
})

const own = "must be a plain property"
const see = "See the options table of the adapter for acme"

describe("options of an adapter", () => {
  it("are given, the later the stronger, and undefined counts as missing", () => {
    const given = { copies: 2, hosts: ["a"], queues: { a: { type: "t", ways: [{ key: "k" }] }, b: { type: "t" } } }
    const own = { timeout: 2, mode: "fast", copies: undefined }
    assert.deepStrictEqual(Result.getOrThrow(decode({ timeout: 1, ...given }, own)) as unknown, {
      ...given,
      timeout: 2,
      mode: "fast"
    })
  })

  it.each<readonly [object, string, string, string]>([
    [{ timeout: 10 }, "timeout", "must be a whole number from 1 to 9, got 10", see],
    [{ timeout: null }, "timeout", "must be a whole number from 1 to 9, got null", see],
    [{ copies: 3 }, "copies", "must be one of 1, 2, got 3", see],
    [{ mode: "fats" }, "mode", 'must be one of "fast", "slow", got a text', 'Did you mean "fast"?'],
    [{ name: "" }, "name", 'must be text that is not empty, got ""', see],
    [{ code: secret }, "code", "must be three letters, got a text", see],
    [{ timeot: 1 }, "timeot", "unknown option", "Did you mean timeout?"],
    [
      { logLevel: "Info" },
      "logLevel",
      "unknown option",
      "Move it to the options of connect: connect(broker, { logLevel: … })"
    ],
    [
      Object.create({ timeout: 1 }),
      "timeout",
      `${own}, got an inherited property`,
      "Write { timeout: options.timeout }"
    ],
    [
      {
        get timeout() {
          return 1
        }
      },
      "timeout",
      `${own}, got a getter`,
      "Write { timeout: options.timeout }"
    ],
    [
      { queues: { a: Object.create({ type: "t" }) } },
      "queues.a.type",
      `${own}, got an inherited property`,
      "Write { type: options.type }"
    ],
    [{ constructor: 1 }, "constructor", "unknown option", "Allowed: timeout, copies, mode, name, code, hosts, queues"],
    [{ hosts: secret }, "hosts", "must be an array, got a text", see],
    [{ hosts: ["a", 5] }, "hosts[1]", "must be text, got 5", see],
    [{ queues: [] }, "queues", "must be an object, got an array", see],
    [{ queues: { "": { type: "t" } } }, "queues.", "must be under a name that is not empty", see],
    [{ queues: { a: true } }, "queues.a", "must be an object with type, ways, got true", see],
    [{ queues: { a: {} } }, "queues.a.type", "must be text", see],
    [{ queues: { a: { type: "t", wais: [] } } }, "queues.a.wais", "unknown option", "Did you mean ways?"],
    [
      { queues: { a: { type: "t", ways: [{ key: secret, kay: 1 }] } } },
      "queues.a.ways[0].kay",
      "unknown option",
      "Did you mean key?"
    ],
    [
      { queues: { a: { type: "t", ways: [{ key: [secret] }] } } },
      "queues.a.ways[0].key",
      "must be text, got an array",
      see
    ]
  ])("refuse %j", (options, field, detail, remedy) => {
    const refused = Result.getOrThrow(Result.flip(decode(options)))
    assert.deepInclude(refused, { field, detail, remedy, broker: "acme" })
    assert.notInclude(refused.message, secret)
  })
})

it("a compound kind holds for the values in which there is no problem", () => {
  const kind = OptionTree.list(OptionTree.struct({ port: OptionTree.optional(OptionKind.whole(1)) }))
  const values: ReadonlyArray<readonly [unknown, boolean]> = [
    [[], true],
    [[{ port: 1 }, {}, { port: undefined }], true],
    [[{ port: 0 }], false],
    [[{ prot: 1 }], false],
    [{}, false],
    [null, false]
  ]
  for (const [value, isRight] of values) {
    assert.strictEqual(kind.holds(value), isRight)
    assert.strictEqual(OptionTree.problem(value, kind) === undefined, isRight)
  }
})
