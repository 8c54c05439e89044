import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { serialize } from "node:v8"
import { verify } from "../src/internal/v8Arrays.ts"

const header = [0xff, 0x0f]

/** A number as v8 writes it: seven bits a byte, lowest first. */
const varint = (n: number): ReadonlyArray<number> => (n < 128 ? [n] : [(n % 128) | 128, ...varint(Math.floor(n / 128))])

const sparse = (length: number) => [0x61, ...varint(length), 0x40, 0, ...varint(length)]
const dense = (length: number) => [0x41, ...varint(length)]

const refused = (bytes: ReadonlyArray<number>) =>
  assert.throws(() => verify(new Uint8Array(bytes)), TypeError, "v8: arrays with more elements than the bytes can hold")

describe("arrays that claim more than the bytes can fill are refused", () => {
  it.each([200_000, 1_000_000, 33_554_431, 2 ** 32 - 1])("a sparse one of %d places", (length) =>
    refused([...header, ...sparse(length)])
  )

  it("many sparse ones, each of which is small enough", () =>
    refused([...header, ...dense(10), ...Array.from({ length: 10 }, () => sparse(50_000)).flat()]))

  it("dense ones within one another, for which the same bytes are claimed again and again", () =>
    refused([...header, ...Array.from({ length: 1000 }, () => dense(1000)).flat(), ...Array(1000).fill(0x30)]))

  it.each([
    ["an object", [0x6f, 0x22, 1, 0x61]],
    ["a map", [0x3b, 0x49, 2]],
    ["a set", [0x27]],
    ["an error's cause", [0x72, 0x54, 0x6d, 0x22, 1, 0x61, 0x63]],
    ["what follows padding", [0, 0, 0]]
  ])("in %s", (_, before) => refused([...header, ...before, ...sparse(33_554_431)]))
})

describe("everything that v8 serializes is let through", () => {
  class Odd extends RangeError {}
  const values: ReadonlyArray<readonly [string, unknown]> = [
    ["a sparse array", Object.assign([1, , 3], { [50_000]: 1, name: "x" })], // oxlint-disable-line no-sparse-arrays -- it is what is tried
    ["100,000 places", Array(100_000)],
    ["a million elements", Array.from({ length: 1_000_000 }, (_, n) => n % 7)],
    ["holes made later", [1, 2, 3, undefined, null].concat(Array(5))],
    ["text of all widths", ["", "abc", "é", "✓ 🚀", "x".repeat(300), "\uD800"]],
    ["numbers", [0, -0, 1, -1, 2 ** 30, -(2 ** 31), 2 ** 31, 1.5, Number.NaN, Infinity]],
    ["big integers", [0n, 1n, -1n, 2n ** 64n, -(2n ** 200n)]],
    ["wrapped values", [Object(1), Object("a"), Object("✓"), Object(true), Object(false), Object(5n)]],
    ["dates and patterns", [new Date(5), new Date(Number.NaN), /a✓[b]/giu, /x/]],
    ["maps and sets", new Map<unknown, unknown>([["a", new Set([1, new Map()])], [{}, []]])], // oxfmt-ignore
    ["buffers", [new ArrayBuffer(5), new ArrayBuffer(2, { maxByteLength: 9 }), Buffer.from("abc")]],
    ["views", [new Uint8Array(3), new Float64Array(2), new DataView(new ArrayBuffer(4), 1), new BigInt64Array(1)]],
    ["errors", [new Error("a"), new TypeError("✓", { cause: new Odd("b", { cause: [1] }) }), new EvalError()]],
    ["all kinds of errors", [new SyntaxError("a"), new URIError("b"), new ReferenceError("c"), new AggregateError([])]],
    ["nothing", [undefined, null, true, false]],
    ["what is deep", Array.from({ length: 1500 }).reduce((inner) => ({ inner }), null)]
  ]
  it.each(values)("%s", (_, value) => verify(serialize(value)))

  it("the same object again", () => {
    const shared = { a: [1] }
    const circular: Record<string, unknown> = { shared, again: shared }
    circular["self"] = circular
    verify(serialize(circular))
  })

  it("whatever it is", () =>
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withTypedArray: true,
          withSparseArray: true,
          withBoxedValues: true,
          withUnicodeString: true
        } as fc.ObjectConstraints), // Cast, because its types know fewer options than it has.
        (value) => verify(serialize(value))
      )
    ))
})

it.each([
  ["no version", [0x30]],
  ["no version", [0, ...header, 0x30]],
  ["an old version", [0xff, 13, 0x42, 0, 0x56, 0x42, 0, 0, ...sparse(33_554_431)]],
  ["the bytes end too early", [...header, 0x22, 5, 0x61]],
  ["the bytes end too early", [...header, ...dense(3)]],
  ["the unknown tag", [...header, 0x3f, 0, 0x30]]
])("%s is refused", (problem, bytes) => assert.throws(() => verify(new Uint8Array(bytes)), TypeError, `v8: ${problem}`))

it("bytes of any kind are refused with a TypeError, or let through", () =>
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constantFrom(...Buffer.from("_^0TFIUNDZyxnS\"cso{aA$@RB~V;:',\\r-.m")), fc.nat(255)), {
        maxLength: 40
      }),
      (body) => {
        const bytes = new Uint8Array([...header, ...body])
        try {
          verify(bytes)
        } catch (error) {
          return assert.instanceOf(error, TypeError)
        }
      }
    ),
    { numRuns: 2000 }
  ))
