import { assert, describe, it } from "@effect/vitest"
import * as OptionKind from "../../src/options/OptionKind.ts"
import * as OptionNames from "../../src/options/OptionNames.ts"

interface Options {
  readonly size?: number | undefined
  readonly mode?: "fast" | "slow" | undefined
  readonly note?: string | undefined
}

const known: OptionNames.Of<Options> = {
  size: OptionKind.whole(1, 9),
  mode: OptionKind.oneOf(["fast", "slow"]),
  note: true
}

const refused = (options: unknown, queue?: OptionNames.Queue) =>
  OptionNames.refusal("Box.make", options, known, queue)?.message

const own = "must be a plain property"

class Config {
  readonly size = 1
  get mode() {
    return "fast"
  }
}

class Sized {
  readonly size = 1
}

describe("refusal", () => {
  it("of nothing that is right, left out or undefined", () => {
    for (const options of [
      {},
      { size: 9, mode: "fast", note: 5 },
      { size: undefined },
      Object.create({ color: 1 }),
      new Sized()
    ]) {
      assert.isUndefined(refused(options))
    }
  })

  it.each<readonly [unknown, string]>([
    [{ sise: 1 }, "unknown option sise. Did you mean size?"],
    [{ sizeInBytes: 1 }, "unknown option sizeInBytes. Did you mean size?"],
    [{ color: 1 }, "unknown option color. Allowed: size, mode, note"],
    [{ toString: 1 }, "unknown option toString. Allowed: size, mode, note"],
    [JSON.parse('{ "__proto__": 1 }'), "unknown option __proto__. Allowed: size, mode, note"],
    [{ size: 10 }, "size must be a whole number from 1 to 9, got 10"],
    [{ size: null }, "size must be a whole number from 1 to 9, got null"],
    [{ mode: "fats" }, 'mode must be one of "fast", "slow", got "fats". Did you mean "fast"?'],
    [{ mode: { fast: true } }, 'mode must be one of "fast", "slow", got an object'],
    [[1], "options must be an object, got an array. Allowed: size, mode, note"],
    [() => {}, "options must be an object, got a function. Allowed: size, mode, note"],
    [Object.create({ size: 1 }), `size ${own}, got an inherited property. Write { size: options.size }`],
    [new Config(), `mode ${own}, got an inherited property. Write { mode: options.mode }`],
    [
      {
        size: 1,
        get note() {
          return ""
        }
      },
      `note ${own}, got a getter. Write { note: options.note }`
    ],
    [
      Object.defineProperty({}, "size", { value: 1 }),
      `size ${own}, got a property that is not enumerable. Write { size: options.size }`
    ],
    [new Map([["size", 1]]), "options must be an object, got a Map. Convert it with Object.fromEntries(…)"],
    [Promise.resolve({ size: 1 }), "options must be an object, got a promise. Await the promise first"],
    [undefined, "options must be an object, got undefined. Write {} for the defaults"],
    ["x".repeat(40), `options must be an object, got "${"x".repeat(40)}". Allowed: size, mode, note`],
    ["x".repeat(41), "options must be an object, got a text of 41 characters. Allowed: size, mode, note"]
  ])("of %o", (options, message) => {
    assert.strictEqual(refused(options), `Box.make: ${message}`)
    assert.strictEqual(refused(options, "q"), `Box.make (queue q): ${message}`)
    assert.strictEqual(refused(options, { name: "q" }), `Box.make (queue q): ${message}`)
  })
})

it("check throws where it is called", () => {
  const options: Options = Object.fromEntries([["sise", 1]])
  assert.throws(() => OptionNames.check("Box.make", options, known), RangeError, "Did you mean size?")
})
