import { Backoff } from "@requeue/core"
import { assert, describe, it } from "vitest"
import * as Schema from "effect/Schema"
import * as PolicyConfig from "../src/PolicyConfig.ts"

const decode = Schema.decodeUnknownSync(PolicyConfig.Backoff)

describe("a backoff decodes to what its constructor makes", () => {
  const { constant, exponential, linear, sequence, switchAfter } = Backoff
  const spread = { max: "5 minutes", jitter: "full" } as const
  const proportional = { jitter: { proportional: 0.1 } }
  const cases: ReadonlyArray<readonly [string, Backoff.Backoff]> = [
    ['{"type":"constant","delay":"10 seconds"}', constant("10 seconds")],
    ['{"type":"constant","delay":0,"max":"5 minutes","jitter":"full"}', constant(0, spread)],
    ['{"type":"linear","step":90000,"max":"15 minutes"}', linear("90 seconds", { max: "15 minutes" })],
    ['{"type":"exponential","base":"1 second"}', exponential("1 second")],
    ['{"type":"exponential","base":1000,"factor":1.5,"max":9000}', exponential(1000, { factor: 1.5, max: 9000 })],
    ['{"type":"sequence","delays":["5 seconds",6],"jitter":{"proportional":0.1}}', sequence([5000, 6], proportional)],
    [
      '{"type":"switch","after":6,"first":{"type":"constant","delay":10},"next":{"type":"linear","step":5}}',
      switchAfter(6, constant(10), linear(5))
    ],
    [
      `{"type":"switch","after":1,"first":{"type":"constant","delay":1},"next":
        {"type":"switch","after":2,"first":{"type":"constant","delay":2},"next":{"type":"constant","delay":3}}}`,
      switchAfter(1, constant(1), switchAfter(2, constant(2), constant(3)))
    ]
  ]
  it.each(cases)("%s", (json, expected) => assert.deepStrictEqual(decode(JSON.parse(json)), expected))
})

describe("an error names its path and the constraint", () => {
  const one = '{"type":"constant","delay":1}'
  const cases: ReadonlyArray<readonly [json: string, path: string, message: string]> = [
    [
      '{"type":"constant","delay":"soon"}',
      '["delay"]',
      'constant: delay: must be a duration from 0ms to 1d, got "soon"'
    ],
    ['{"type":"constant","delay":1,"max":-1}', '["max"]', "constant: max: must be a duration"],
    ['{"type":"constant","delay":true}', '["delay"]', "Expected"],
    ['{"type":"constant","delay":1,"base":1}', '["base"]', "unknown key; known are type, delay, max, jitter"],
    [
      '{"type":"constant","delay":1,"jitter":{"proportional":2}}',
      '["jitter"]["proportional"]',
      "must be a number from 0 to 1, got 2"
    ],
    ['{"type":"constant","delay":1,"jitter":"wild"}', '["jitter"]', '"none" | "full"'],
    ['{"type":"linear"}', '["step"]', "Missing key"],
    ['{"type":"exponential","base":1,"factor":0.5}', '["factor"]', "exponential: factor must be a finite number >= 1"],
    ['{"type":"sequence","delays":[1,"25 hours"]}', '["delays"][1]', "sequence: delays[1]: must be"],
    ['{"type":"sequence","delays":[]}', '["delays"]', "sequence: delays must not be empty"],
    [`{"type":"switch","after":0,"first":${one},"next":${one}}`, '["after"]', "switchAfter: after must be"],
    [
      `{"type":"switch","after":1,"first":${one},"next":{"type":"linear","step":-1}}`,
      '["next"]["step"]',
      "linear: step"
    ],
    [
      '{"type":"random"}',
      "",
      "a backoff must be an object whose type is constant, linear, exponential, sequence or switch"
    ],
    ["5", "", "a backoff must be an object whose type is constant"]
  ]
  it.each(cases)("%s", (json, path, message) => {
    let text = "decoded"
    try {
      decode(JSON.parse(json))
    } catch (error) {
      text = String(error)
    }
    assert.include(text, message)
    if (path !== "") assert.include(text, `at ${path}`)
  })
})
