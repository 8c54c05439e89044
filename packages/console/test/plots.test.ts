/** Plots and diagrams: whatever is drawn is a number, and within the picture. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, Delay, RetryPolicy } from "@requeue/core"
import { type Plan } from "@requeue/core/port"
import * as fc from "fast-check"
import * as Axis from "../src/internal/pages/axis.ts"
import * as Diagram from "../src/internal/pages/diagram.ts"
import * as Outage from "../src/internal/pages/outage.ts"
import * as Schedule from "../src/internal/pages/schedule.ts"
import { forms, hostile } from "./queueWorld.ts"

const attributesOf = (tag: string): Readonly<Record<string, string>> =>
  Object.fromEntries([...tag.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, name, value]) => [name!, value!]))

/** A number of an attribute; the width of the picture is 100 %. */
const numberOf = (value: string): number => {
  assert.match(value, /^-?\d+(\.\d+)?%?$/)
  return Number(value.replace("%", ""))
}

/** Fails where a shape is not within its picture. Those of a picture within the picture are measured by that. */
const within = (picture: string) => {
  assert.notMatch(picture, /NaN|Infinity|undefined|null|e[+-]\d/)
  const sizes: Array<readonly [width: number, height: number]> = []
  for (const [tag] of picture.matchAll(/<\/?[a-z]+[^>]*>/g)) {
    if (tag.startsWith("</svg")) sizes.pop()
    if (tag.startsWith("</")) continue
    const { height = "0", rx, viewBox, width = "0", ...rest } = attributesOf(tag)
    const [across, down] = sizes.at(-1) ?? [100, 1e6]
    for (const [name, value] of Object.entries(rest)) {
      if (!["x", "x1", "x2", "y", "y1", "y2"].includes(name)) continue
      const isAcross = name.startsWith("x")
      // Only what is measured in percent can be compared with the width of the picture.
      const most = isAcross ? (value.endsWith("%") ? 100 : across) : down
      const size = name === "x" && width.endsWith("%") ? numberOf(width) : name === "y" ? numberOf(height) : 0
      assert.isAtLeast(numberOf(value), 0, tag)
      if (isAcross && !value.endsWith("%") && value !== "0") continue
      assert.isAtMost(numberOf(value) + size, most + 0.011, tag)
    }
    if (rx !== undefined) numberOf(rx)
    if (tag.startsWith("<svg")) {
      const [, , ownWidth = "100", ownHeight = height] = viewBox?.split(" ") ?? []
      sizes.push([numberOf(ownWidth), numberOf(ownHeight)])
    }
  }
  for (const [, path] of picture.matchAll(/class="area" d="([^"]*)"/g)) {
    const points = [...path!.matchAll(/[ML]([\d.-]+) ([\d.-]+)/g)]
    assert.isAtLeast(points.length, 2)
    for (const [, x, y] of points) {
      assert.isTrue(Number(x) >= 0 && Number(x) <= 1000 && Number(y) >= 0 && Number(y) <= 100, path)
    }
  }
}

const delay = fc.oneof(fc.integer({ min: 0, max: Delay.max }), fc.integer({ min: 0, max: 10 }))
const jitter = fc.oneof(
  fc.constantFrom("none" as const, "full" as const, "equal" as const, "decorrelated" as const),
  fc.double({ min: 0, max: 1, noNaN: true }).map((proportional) => ({ proportional }))
)
const options = fc.record({ jitter, max: delay })
/** A cap below the shortest delay is refused. */
const atLeast = (least: number, { max, ...others }: Backoff.Options): Backoff.Options => ({
  ...others,
  ...(typeof max === "number" ? { max: Math.max(max, least) } : {})
})
const plain = fc.oneof(
  fc.tuple(delay, options).map(([ms, given]) => Backoff.constant(ms, atLeast(ms, given))),
  fc.tuple(delay, options).map(([ms, given]) => Backoff.linear(ms, atLeast(ms, given))),
  fc
    .tuple(fc.integer({ min: 1, max: Delay.max }), fc.double({ min: 1, max: 1e300, noNaN: true }), options)
    .map(([base, factor, given]) => Backoff.exponential(base, { factor, ...atLeast(base, given) })),
  fc
    .tuple(fc.array(delay, { minLength: 1, maxLength: 50 }), options)
    .map(([all, given]) => Backoff.sequence(all, atLeast(Math.min(...all), given)))
)
const backoff = fc.oneof(
  fc.constant(undefined),
  plain,
  fc
    .tuple(fc.integer({ min: 1, max: 20 }), plain, plain)
    .map(([after, first, next]) => Backoff.switchAfter(after, first, next))
)
const policy = fc
  .record({
    maxRetries: fc.oneof(fc.integer({ min: 0, max: 12 }), fc.nat(), fc.constant("unlimited" as const)),
    maxAge: fc.option(fc.oneof(delay, fc.nat()), { nil: undefined }),
    immediate: fc.nat(10),
    backoff
  })
  .map((given) => RetryPolicy.make(given))

const drawn = (retry: RetryPolicy.RetryPolicy, retryDelay = 0) =>
  Schedule.plot(RetryPolicy.describe(retry, retryDelay), retry).text

describe("a shape", () => {
  it.each([
    '<svg height="9"><rect x="99%" width="2%" y="0" height="1" /></svg>',
    '<svg height="9"><line x1="-1%" x2="2%" y1="0" y2="1" /></svg>',
    '<svg height="9"><text x="1%" y="10">a</text></svg>',
    '<svg height="9"><rect x="NaN%" width="2%" y="0" height="1" /></svg>',
    '<svg height="9"><path class="area" d="M0 100L1001 5" /></svg>'
  ])("that is outside of its picture is found: %s", (picture) => assert.throws(() => within(picture)))
})

describe("the plot of a schedule", () => {
  it("is within its picture, whatever the policy", () => {
    fc.assert(
      fc.property(policy, delay, (retry, retryDelay) => {
        const text = drawn(retry, retryDelay)
        within(text)
        assert.isBelow(text.length, 60_000)
        const marks = text.match(/class="mark"/g)!.length
        assert.strictEqual(marks, RetryPolicy.schedule(retry, retryDelay).length + 1)
      }),
      { numRuns: 100 }
    )
  })

  it("has a band where delays are spread, and none where they are not", () => {
    assert.include(drawn(forms["growing"]!.retry!), 'class="band"')
    assert.notInclude(drawn(forms["fixed"]!.retry!), 'class="band"')
  })

  it("says where it ends", () => {
    const ends = (name: string) => drawn(forms[name]!.retry!)
    assert.match(ends("fixed"), />\s*dead-lettered\s*</)
    assert.match(ends("days"), /dead-lettered after 20d at the latest/)
    assert.match(ends("forever"), /and so on, without end/)
    assert.match(ends("thousands"), /and 4,900 more; dead-lettered after 204d 5h at the latest/)
  })

  it("has the same as a table", () => {
    const description = RetryPolicy.describe(forms["growing"]!.retry!)
    const { text } = Schedule.table(description) as { readonly text: string } // It has rows.
    assert.match(text, /<th scope="row">2<\/th>\s*<td[^>]*>2\.5s to 5s<\/td>\s*<td[^>]*>2\.5s to 5s</)
    assert.strictEqual(text.match(/<th scope="row">/g)!.length, 9)
  })
})

describe("an axis of time", () => {
  it("goes up, and its labels stand apart", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 0, max: 100 * Delay.max }), (first, last) => {
        const axis = Axis.time({ first: Math.min(first, last), last }, [7, 98])
        assert.strictEqual(axis.at(0), 7)
        if (last > 0) assert.strictEqual(axis.at(last), 98)
        for (const [index, { at }] of axis.ticks.entries()) {
          assert.isTrue(at >= 7 && at <= 98)
          if (index > 0) assert.isAtLeast(at - axis.ticks[index - 1]!.at, 16.9)
        }
        assert.isAtMost(axis.at(last / 3), axis.at(last / 2))
      })
    )
  })
})

describe("the plot of an outage", () => {
  it("is within its picture, whatever came of it, and small", () => {
    const values = fc.array(fc.oneof(fc.nat(), fc.double({ min: 0, max: 1e9, noNaN: true })), { maxLength: 3000 })
    fc.assert(
      fc.property(values, fc.nat(), fc.nat(), (all, length, more) => {
        const { text } = Outage.area("load", all, { length, total: length + more })
        within(text)
        assert.isBelow(text.length, 12_000)
      })
    )
  })
})

describe("the diagram of a plan", () => {
  const name = fc.oneof(fc.constantFrom("a", "b", "c", "d"), fc.string({ maxLength: 300 }), fc.constant(hostile))
  const plan: fc.Arbitrary<Plan.Plan> = fc.record({
    broker: fc.constant("memory"),
    queue: name,
    delays: fc.string(),
    objects: fc.array(fc.record({ kind: fc.string(), name, details: fc.string() }), { maxLength: 20 }),
    flows: fc.array(fc.record({ from: name, to: name, label: fc.string() }), { maxLength: 200 }),
    notes: fc.constant([])
  })

  it("is within its picture, whatever the plan", () => {
    fc.assert(
      fc.property(plan, policy, (given, retry) => {
        const nodes = Diagram.nodesOf(given, given.objects, retry)
        const picture = Diagram.diagram(given, nodes).text
        // Texts are escaped, and no numbers.
        within(picture.replaceAll(/>[^<>]*</g, "><").replace(/aria-label="[^"]*"/, ""))
        assert.isBelow(picture.match(/<line/g)?.length ?? 0, 200)
      })
    )
  })

  it("has each way once, and where messages end", () => {
    const flows = [
      { from: "orders", to: "orders", label: "retry at once" },
      { from: "orders", to: "orders.dlq", label: "given up" }
    ]
    const objects = ["orders", "orders.dlq"].map((each) => ({ kind: "queue", name: each, details: "" }))
    const given = { broker: "memory", queue: "orders", delays: "", objects, flows, notes: [] }
    const nodes = Diagram.nodesOf(given, objects, RetryPolicy.make())
    assert.deepStrictEqual(
      nodes.map(({ name, ways }) => [name, ways.map(({ label, to }) => `${label}: ${to}`)]),
      [
        ["orders", ["acknowledged: gone: undefined", "retry at once: orders", "given up: orders.dlq"]],
        ["orders.dlq", []]
      ]
    )
    const discarding = Diagram.nodesOf(
      { ...given, flows: [], objects: objects.slice(0, 1) },
      [],
      RetryPolicy.make({ maxRetries: 0, deadLetter: "discard" })
    )
    assert.deepStrictEqual(
      discarding.map(({ ways }) => ways.map(({ label }) => label)),
      [["acknowledged: gone", "discarded: no dead letter is kept"]]
    )
  })
})
