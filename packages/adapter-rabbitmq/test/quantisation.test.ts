/** How many queues the delays of a policy use, and what its quantisation makes of each delay. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, ConfigurationError, type Jitter, RetryPolicy } from "@requeue/core"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Objects from "../src/internal/declare/objects.ts"
import * as Quantisation from "../src/internal/declare/topologies/quantisation.ts"
import { RabbitMqOptions, RabbitMqPlan } from "../src/index.ts"

const planOf = (retry: RetryPolicy.RetryPolicy, options: RabbitMqOptions.Options = {}) =>
  RabbitMqPlan.make({ queue: "orders", retry }, Result.getOrThrow(RabbitMqOptions.decode(options)), "4.3.6")

const plan = (...about: Parameters<typeof planOf>): RabbitMqPlan.Plan => {
  const made = planOf(...about)
  if (made instanceof ConfigurationError.ConfigurationError) throw made
  return made
}

/** The queues in which delayed messages wait. */
const delayQueues = ({ homes, objects }: RabbitMqPlan.Plan): ReadonlyArray<string> =>
  objects.flatMap((object) =>
    object._tag === "Queue" && Objects.isDelay(object) && !homes.has(object.name) ? [object.name] : []
  )

/** The delays that the broker keeps for 1000 draws of a retry, evenly spread. */
const keptOf = ({ route }: RabbitMqPlan.Plan, [low, high]: Quantisation.Range): ReadonlyArray<number> =>
  Array.from(
    { length: 1000 },
    (_, index) => route(Math.max(1, Math.ceil(low + ((index + 0.5) / 1000) * (high - low)))).kept
  )

/** The largest share of a retry's messages that the broker keeps for the same time. */
const herdOf = (made: RabbitMqPlan.Plan, range: Quantisation.Range): number =>
  Math.max(...[...Map.groupBy(keptOf(made, range), (kept) => kept).values()].map(({ length }) => length)) / 1000

const jitter: fc.Arbitrary<Jitter.Jitter> = fc.oneof(
  fc.constantFrom<Array<Jitter.Jitter>>("full", "equal", "decorrelated"),
  fc.double({ min: 0.01, max: 1, noNaN: true }).map((proportional) => ({ proportional }))
)
const millis = fc.integer({ min: 1, max: 86_400_000 })
const options = fc.record({ max: millis, jitter: fc.oneof(jitter, fc.constant("none" as const)) }, { requiredKeys: [] })
const simple: fc.Arbitrary<Backoff.Backoff> = fc.oneof(
  fc.tuple(millis, options).map(([delay, given]) => Backoff.constant(delay, given)),
  fc.tuple(millis, options).map(([step, given]) => Backoff.linear(step, given)),
  fc
    .tuple(millis, fc.constantFrom(1.5, 2, 10), options)
    .map(([base, factor, given]) => Backoff.exponential(base, { factor, ...given })),
  fc
    .tuple(fc.array(millis, { minLength: 1, maxLength: 8 }), options)
    .map(([delays, given]) => Backoff.sequence(delays, given))
)
const backoff = fc.oneof(
  simple,
  fc.tuple(fc.integer({ min: 1, max: 5 }), simple, simple).map((parts) => Backoff.switchAfter(...parts))
)
const policy = fc
  .tuple(backoff, fc.constantFrom<Array<number | "unlimited">>(1, 3, 10, 30, "unlimited"))
  .map(([given, maxRetries]) => RetryPolicy.make({ backoff: given, maxRetries }))
const topology = fc.constantFrom("auto", "ladder", "levels", "perDelayQueue" as const)
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe("of any policy", () => {
  it("the delays use no more queues than the limit, or it is refused with the number that they need", () =>
    fc.assert(
      fc.property(
        policy,
        topology,
        fc.option(fc.integer({ min: 1, max: 24 })),
        fc.boolean(),
        (retry, kind, given, isOurs) => {
          const own = isOurs ? {} : { queues: { orders: { assert: "passive" as const } } }
          const limited = { topology: kind, ...own, ...(given === null ? {} : { maxDelayQueues: given }) }
          const made = planOf(retry, limited)
          if (made instanceof ConfigurationError.ConfigurationError) {
            assert.isNotNull(given)
            assert.include(made.message, "maxDelayQueues")
            const needed = Number(/need (?:more than )?(\d+) queues/.exec(made.message)?.[1])
            assert.isAbove(needed, given!)
            if (needed < 128) assert.notInstanceOf(planOf(retry, { ...limited, maxDelayQueues: needed }), Error)
            return
          }
          const all = Quantisation.ranges(retry)
          const isRandom = Quantisation.isJittered(all) && all.every(([low, high]) => low < high)
          const limit = given ?? (isRandom ? 10 : 32)
          if (kind !== "perDelayQueue" || given !== null) assert.isAtMost(delayQueues(made).length, limit)
        }
      )
    ))

  it("each delay is kept at least as long as it was drawn, in queues that are there from the start", () =>
    fc.assert(
      fc.property(
        policy,
        topology,
        fc.boolean(),
        fc.array(random, { maxLength: 5 }),
        (retry, kind, isOurs, numbers) => {
          const own = isOurs ? {} : { queues: { orders: { assert: "passive" as const } } }
          const made = plan(retry, { topology: kind, ...own })
          const declared = new Set(made.objects.map(Objects.keyOf))
          for (const { attempt } of RetryPolicy.schedule(retry))
            for (const number of [0, ...numbers, 1 - Number.EPSILON / 2]) {
              const delay = Backoff.delayAfter(retry.backoff!, attempt, number)
              if (delay === 0) continue
              const { kept, objects } = made.route(delay)
              assert.isAtLeast(kept, delay)
              for (const object of objects) assert.isTrue(declared.has(Objects.keyOf(object)), Objects.keyOf(object))
            }
        }
      )
    ))

  it("a delay without jitter is late by less than the resolution", () =>
    fc.assert(
      fc.property(policy, topology, (retry, kind) => {
        const made = plan(retry, { topology: kind })
        for (const [low, high] of Quantisation.ranges(retry))
          if (low === high) assert.isBelow(made.route(high).kept - high, kind === "perDelayQueue" ? 1000 : 50)
      })
    ))
})

const doubling = (maxRetries: number, kind: Jitter.Jitter) =>
  RetryPolicy.make({ maxRetries, backoff: Backoff.exponential("1 second", { max: "1 hour", jitter: kind }) })

describe("jitter", () => {
  it.each<[string, RetryPolicy.RetryPolicy, number]>([
    ["5 retries that double, full", doubling(5, "full"), 9],
    ["10 retries that double, full", doubling(10, "full"), 10],
    ["20 retries that double up to an hour, equal", doubling(20, "equal"), 10],
    ["webhookSender", RetryPolicy.webhookSender, 10]
  ])("uses 10 queues at most by default: %s", (_, retry, count) => assert.lengthOf(delayQueues(plan(retry)), count))

  it.each([
    ["full", 10, 0.26],
    ["equal", 10, 0.5]
  ] as const)(
    "%s stays spread: of the later retries of %d, no more than a share of %d come together",
    (kind, retries, share) => {
      const retry = doubling(retries, kind)
      const made = plan(retry)
      for (const range of Quantisation.ranges(retry).slice(2)) assert.isAtMost(herdOf(made, range), share, range.join())
    }
  )

  it("is exact where the limit allows it", () => {
    const retry = doubling(20, "full")
    const made = plan(retry, { maxDelayQueues: 17 })
    for (const range of Quantisation.ranges(retry)) assert.isBelow(made.route(range[1]).kept - range[1], 50)
  })

  it("of retries far apart is late by a twentieth of its range at most", () => {
    const made = plan(RetryPolicy.webhookSender)
    for (const [, high] of Quantisation.ranges(RetryPolicy.webhookSender))
      assert.isAtMost(made.route(high).kept, 1.05 * high)
  })

  it.each(["full", "equal"] as const)("%s, of retries that double, makes none more than twice as long", (kind) => {
    for (const maxRetries of [5, 10, 20]) {
      const made = plan(doubling(maxRetries, kind))
      for (const [, high] of Quantisation.ranges(doubling(maxRetries, kind)))
        assert.isAtMost(made.route(high).kept, 2 * high)
    }
  })
})

describe("delays without jitter", () => {
  const linear = RetryPolicy.make({ maxRetries: 20, backoff: Backoff.linear("1 second") })

  it("are rungs for up to 32 by default, and levels where a smaller limit has room for these", () => {
    assert.lengthOf(delayQueues(plan(linear)), 20)
    const made = plan(linear, { maxDelayQueues: 9 })
    assert.strictEqual(made.topology, "levels")
    assert.lengthOf(delayQueues(made), 9)
  })

  it("that need more queues than the limit are refused, with the number, the limit and the remedy", () => {
    const refused = planOf(linear, { maxDelayQueues: 6 })
    assert.instanceOf(refused, ConfigurationError.ConfigurationError)
    assert.match(
      refused.message,
      /maxDelayQueues.*need 7 queues, the limit is 6.*Set maxDelayQueues: 7, .*perMessageTtl/
    )
    assert.notInstanceOf(planOf(linear, { maxDelayQueues: 7 }), Error)
    assert.notInstanceOf(planOf(linear, { maxDelayQueues: 1, topology: "perMessageTtl" }), Error)
  })

  it.each([
    ["perDelayQueue", 128, 300],
    ["perDelayQueue", 110, 300],
    ["perDelayQueue", 110, 120],
    ["ladder", 128, 300],
    ["auto", 110, 300],
    ["levels", 20, 300]
  ] as const)(
    "of retries beyond the first hundred count as well: %s, at most %d, %d retries",
    (kind, limit, maxRetries) => {
      const many = RetryPolicy.make({ maxRetries, backoff: Backoff.linear("1 second") })
      const made = planOf(many, { topology: kind, maxDelayQueues: limit })
      if (made instanceof Error) {
        const needed = maxRetries > 128 ? "more than 128" : maxRetries
        assert.include(made.message, `need ${needed} queues, the limit is ${limit}`)
        return assert.notInclude(made.message, "maxDelayQueues: 129")
      }
      const used = Array.from({ length: maxRetries }, (_, index) => made.route(1000 * (index + 1)).objects).flat()
      assert.isAtMost(Objects.distinct(used).filter(Objects.isDelay).length, limit)
    }
  )

  it("are counted in every topology", () => {
    assert.match(String(planOf(linear, { maxDelayQueues: 1, topology: "waitLoop" })), /need 2 queues, the limit is 1/)
    assert.match(String(planOf(linear, { maxDelayQueues: 5, topology: "perDelayQueue" })), /need 20 queues/)
  })
})

it("a delay that no retry has goes through the levels exactly, which are made when it is asked for", () => {
  const { objects, onDemand, route } = plan(RetryPolicy.webhookSender)
  assert.strictEqual(route(7000).kept, 7000)
  const all = new Set([...objects, ...onDemand].map(Objects.keyOf))
  for (const delay of [50, 7000, 80_000_000])
    for (const object of route(delay).objects) assert.isTrue(all.has(Objects.keyOf(object)))
})
