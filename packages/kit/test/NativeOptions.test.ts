import { assert, describe, it } from "@effect/vitest"
import * as NativeOptions from "../src/NativeOptions.ts"
import { OptionKind } from "@requeue/core/port"

interface Options {
  readonly level?: number | undefined
  readonly labels?: ReadonlyArray<string> | undefined
}

let reads = 0
const mine = NativeOptions.define<Options, { readonly labels: ReadonlyArray<string> }>({
  broker: "mine",
  kinds: { level: OptionKind.whole(0, 9), labels: true },
  read: ({ labels = [], level }) => {
    reads++
    return level === 9 && labels.length > 0 ? "level 9 takes no labels" : { labels: [...labels] }
  }
})

describe("options", () => {
  it("are read once, and nobody changes them afterwards", () => {
    const labels = ["a"]
    const options = { level: 1, labels }
    const native = mine.make("Mine.make", options)
    const before = reads
    labels.push("b")
    options.level = 20
    assert.deepStrictEqual(mine.of(native), { labels: ["a"] })
    assert.deepStrictEqual(mine.of({ other: {}, ...native }), { labels: ["a"] })
    assert.strictEqual(reads, before)
    assert.isFrozen(native)
    assert.isFrozen(native["mine"])
  })

  it("of nobody, or for another broker, are none", () => {
    assert.isUndefined(mine.of(undefined))
    assert.isUndefined(mine.of({ other: { level: 20 } }))
  })

  const unreadable = new Proxy(
    {},
    {
      ownKeys: () => {
        throw new Error("no")
      }
    }
  )
  it.each<readonly [string, unknown, string]>([
    ["unknown", { levle: 1 }, "unknown option levle. Did you mean level?"],
    ["out of range", { level: 10 }, "level must be a whole number from 0 to 9, got 10"],
    ["refused", { level: 9, labels: ["a"] }, "level 9 takes no labels"],
    ["no object", 5, "options must be an object, got 5. Write { level: 5 }"],
    ["unreadable", unreadable, "options cannot be read: no"]
  ])("that are %s are refused when they are made, and where they were written by hand", (_, given, message) => {
    assert.throws(() => mine.make("Mine.make", given as Options), RangeError, `Mine.make: ${message}`)
    const error = mine.of({ mine: given })
    assert.instanceOf(error, RangeError)
    assert.include(error.message, `native.mine: ${message}`)
  })

  it("that were written by hand count as those that were made", () => {
    assert.deepStrictEqual(mine.of({ mine: { labels: ["a"] } }), { labels: ["a"] })
  })
})
