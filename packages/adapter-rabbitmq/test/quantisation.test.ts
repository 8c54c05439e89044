/** How many queues the delays of a policy use, and what its quantisation makes of each delay. */
import { assert, describe, it } from "@effect/vitest"
import { Backoff, ConfigurationError, type Jitter, RetryPolicy } from "@requeue/core"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import * as Objects from "../src/internal/declare/objects.ts"
import * as Ranges from "../src/internal/declare/topologies/ranges.ts"
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

/** The delays that the broker keeps for 200 draws of a retry, evenly spread. */
const keptOf = ({ route }: RabbitMqPlan.Plan, [low, high]: Ranges.Range): ReadonlyArray<number> =>
  Array.from(
    { length: 200 },
    (_, index) => route(Math.max(1, Math.ceil(low + ((index + 0.5) / 200) * (high - low)))).kept
  )

/** The largest share of a retry's messages that the broker keeps for the same time. */
const herdOf = (made: RabbitMqPlan.Plan, range: Ranges.Range): number =>
  Math.max(...[...Map.groupBy(keptOf(made, range), (kept) => kept).values()].map(({ length }) => length)) / 200

const jitter: fc.Arbitrary<Jitter.Jitter> = fc.oneof(
  fc.constantFrom<Array<Jitter.Jitter>>("full", "equal", "decorrelated"),
  fc.double({ min: 0.01, max: 1, noNaN: true }).map((proportional) => ({ proportional }))
)
const millis = fc.integer({ min: 1, max: 86_400_000 })
const options = fc.record({ max: millis, jitter: fc.oneof(jitter, fc.constant("none" as const)) }, { requiredKeys: [] })
/** A cap below the shortest delay is refused. */
const atLeast = (least: number, { max, ...others }: Backoff.Options): Backoff.Options => ({
  ...others,
  ...(typeof max === "number" ? { max: Math.max(max, least) } : {})
})
const simple: fc.Arbitrary<Backoff.Backoff> = fc.oneof(
  fc.tuple(millis, options).map(([delay, given]) => Backoff.constant(delay, atLeast(delay, given))),
  fc.tuple(millis, options).map(([step, given]) => Backoff.linear(step, atLeast(step, given))),
  fc
    .tuple(millis, fc.constantFrom(1.5, 2, 10), options)
    .map(([base, factor, given]) => Backoff.exponential(base, { factor, ...atLeast(base, given) })),
  fc
    .tuple(fc.array(millis, { minLength: 1, maxLength: 8 }), options)
    .map(([delays, given]) => Backoff.sequence(delays, atLeast(Math.min(...delays), given)))
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
          const all = Ranges.ofPolicy(retry)
          const isRandom = Ranges.isJittered(all) && all.every(([low, high]) => low < high)
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
        for (const [low, high] of Ranges.ofPolicy(retry))
          if (low === high) assert.isBelow(made.route(high).kept - high, kind === "perDelayQueue" ? 1000 : 50)
      })
    ))
})

const doubling = (maxRetries: number, kind: Jitter.Jitter) =>
  RetryPolicy.make({ maxRetries, backoff: Backoff.exponential("1 second", { max: "1 hour", jitter: kind }) })

/** Spread over all magnitudes, from `min` to `max`. */
const magnitude = (min: number, max: number): fc.Arbitrary<number> =>
  fc.double({ min: 0, max: 1, noNaN: true }).map((exponent) => Math.round(min * (max / min) ** exponent))

/** Policies that grow from any first delay by any factor to any cap, with jitter of at least half the delay. */
const growing = fc
  .record({
    base: magnitude(20, 600_000),
    cap: magnitude(1000, 86_400_000),
    factor: fc.double({ min: 1.3, max: 10, noNaN: true }),
    jitter: fc.oneof(
      fc.constantFrom<Array<Jitter.Jitter>>("full", "equal", "decorrelated"),
      fc.double({ min: 0.5, max: 1, noNaN: true }).map((proportional) => ({ proportional }))
    )
  })
  .map(({ base, cap, factor, jitter }) =>
    RetryPolicy.make({
      maxRetries: 60,
      backoff: Backoff.exponential(base, { max: Math.max(base, cap), factor, jitter })
    })
  )

/** The worst lateness of a retry, relative to its longest delay, or to a second if that is longer. */
const latenessOf = (made: RabbitMqPlan.Plan, [low, high]: Ranges.Range): number =>
  keptOf(made, [low, high]).reduce((worst, kept, index) => {
    const drawn = Math.max(1, Math.ceil(low + ((index + 0.5) / 200) * (high - low)))
    assert.isAtLeast(kept, drawn)
    return Math.max(worst, kept - drawn)
  }, 0) / Math.max(high, 1000)

describe("random delays stay spread, whatever the base, the factor and the cap", () => {
  // Of 50 policies that are always the same, because these bounds measure the search for levels. A few policies in ten thousand,
  // whose delays grow a millionfold or very little, exceed them with 10 queues. Their plans report it.
  it.each([
    // Queues, lateness of any retry and of those at the cap, and the share of those at the cap that come together.
    [undefined, 3, 0.6, 2 / 3],
    [16, 3, 0.1, 0.25],
    [22, 0.1, 0.1, 0.1]
  ])("maxDelayQueues %o: late by at most %d and %d, together at most %d", (maxDelayQueues, any, atCap, together) =>
    fc.assert(
      fc.property(growing, (retry) => {
        const made = plan(retry, { maxDelayQueues })
        assert.isAtMost(delayQueues(made).length, maxDelayQueues ?? 10)
        const all = Ranges.ofPolicy(retry)
        for (const range of all) assert.isAtMost(latenessOf(made, range), any, range.join())
        const cap = Ranges.longest(all)
        for (const range of all)
          // A range that is hardly one has nothing to spread.
          if (range[1] === cap && cap - range[0] > 2000) {
            assert.isAtMost(latenessOf(made, range), atCap, range.join())
            assert.isAtMost(herdOf(made, range), together, range.join())
          }
      }),
      { numRuns: 50, seed: 1 }
    )
  )

  it.each([500, 700, 900, 1000])(
    "of 20 retries from %d ms to an hour, a twentieth is late by minutes at most",
    (base) => {
      const backoff = Backoff.exponential(base, { max: "1 hour", jitter: "full" })
      const retry = RetryPolicy.make({ maxRetries: 20, backoff })
      const made = plan(retry)
      const cap: Ranges.Range = [0, 3_600_000]
      assert.isAtMost(herdOf(made, cap), 0.05)
      assert.isAtMost(latenessOf(made, cap), 0.05)
      assert.match(
        String(made.lateness),
        /^random delays are rounded up: a retry of up to .*, one of up to 1h by up to \d/
      )
      assert.include(made.notes, made.lateness)
    }
  )

  it("a lateness of a tenth or less is not reported", () => {
    assert.isUndefined(plan(doubling(5, "full")).lateness)
    assert.isUndefined(plan(doubling(5, "none")).lateness)
    assert.isDefined(plan(doubling(5, "full"), { maxDelayQueues: 4 }).lateness)
  })

  it("no draw is later than reported", () =>
    fc.assert(
      fc.property(growing, fc.integer({ min: 2, max: 14 }), topology, (retry, maxDelayQueues, kind) => {
        const made = planOf(retry, { maxDelayQueues, topology: kind })
        // A cap below the first delay leaves one delay without jitter, which may need more levels.
        fc.pre(!(made instanceof Error))
        const all = Ranges.ofPolicy(retry)
        const worst = Math.max(...all.map((range) => latenessOf(made, range)))
        const reported = /of up to \S+(?: \S+)? is late by up to [^(]+\((\d+) %\)/.exec(made.lateness ?? "")
        if (reported === null) assert.isAtMost(worst, 0.1)
        // The report counts shorter retries as if they lasted a second. It rounds to whole percents.
        else if (all.every(([, high]) => high >= 1000)) assert.isAtMost(Math.round(100 * worst), Number(reported[1]))
      }),
      { numRuns: 50 }
    ))
})

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
      for (const range of Ranges.ofPolicy(retry).slice(2)) assert.isAtMost(herdOf(made, range), share, range.join())
    }
  )

  it("is exact where the limit allows it", () => {
    const retry = doubling(20, "full")
    const made = plan(retry, { maxDelayQueues: 17 })
    for (const range of Ranges.ofPolicy(retry)) assert.isBelow(made.route(range[1]).kept - range[1], 50)
  })

  it("of retries far apart is late by a third of its longest delay at most", () => {
    const made = plan(RetryPolicy.webhookSender)
    for (const range of Ranges.ofPolicy(RetryPolicy.webhookSender)) assert.isAtMost(latenessOf(made, range), 1 / 3)
  })

  it.each(["full", "equal"] as const)("%s, of retries that double, makes none more than twice as long", (kind) => {
    for (const maxRetries of [5, 10, 20]) {
      const made = plan(doubling(maxRetries, kind))
      for (const [, high] of Ranges.ofPolicy(doubling(maxRetries, kind)))
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

describe("delays outside the policy", () => {
  const exact = RetryPolicy.make({ maxRetries: 3, backoff: Backoff.sequence(["1 second", "5 seconds", "30 seconds"]) })

  /** All queues in which a message may wait, whatever delay is asked for. */
  const everyQueue = (made: RabbitMqPlan.Plan): number => {
    const asked = fc.sample(magnitude(1, 86_400_000), 500).flatMap((delay) => made.route(delay).objects)
    return Objects.distinct([...made.objects, ...asked]).filter(Objects.isDelay).length
  }

  it.each(["auto", "ladder", "levels", "perDelayQueue"] as const)(
    "use at most maxOtherDelayQueues queues, and are never early: %s",
    (kind) =>
      fc.assert(
        fc.property(
          fc.integer({ min: 4, max: 30 }),
          fc.boolean(),
          fc.constantFrom(10, 50, 1000),
          magnitude(1, 86_400_000),
          (most, isOurs, resolution, delay) => {
            const queues = isOurs ? {} : { orders: { assert: "passive" as const } }
            const options = { topology: kind, resolution, queues, maxOtherDelayQueues: most }
            const made = plan(exact, options)
            const declared = new Set([...made.objects, ...made.onDemand].map(Objects.keyOf))
            const { kept, objects } = made.route(delay)
            assert.isAtLeast(kept, delay)
            for (const object of objects) assert.isTrue(declared.has(Objects.keyOf(object)))
            const others = made.onDemand.filter(Objects.isDelay).length
            assert.isAtMost(others, most)
          }
        )
      )
  )

  it("are shown by the plan before its objects, with the limit that they have by default", () => {
    const limited = plan(exact, { maxDelayQueues: 3 })
    assert.lengthOf(delayQueues(limited), 3)
    const homes = limited.objects.filter(Objects.isDelay).length - 3
    assert.isAtMost(everyQueue(limited), homes + 3 + 21)
    const [first] = RabbitMqPlan.format(limited).split("\n")
    assert.match(
      first!,
      /: 5 queues, .*, and up to 21 queues, 21 exchanges, 21 bindings, which all queues share, when a handler/
    )
  })

  it("are rounded up by a factor that the plan names", () => {
    const made = plan(exact, { maxOtherDelayQueues: 8 })
    const factor = Number(/lasts up to (\d+) times as long/.exec(made.notes.join())?.[1])
    assert.isAtMost(factor, 8)
    for (const delay of fc.sample(magnitude(1000, 86_400_000), 1000))
      assert.isAtMost(made.route(delay).kept, factor * delay)
  })

  it("have no limit by default with a queue for each delay, which the plan says", () => {
    const made = plan(exact, { topology: "perDelayQueue" })
    assert.match(String(made.growth), /1 more queue for each further delay.*maxOtherDelayQueues/)
    assert.strictEqual(made.route(7000).kept, 7000)
    assert.strictEqual(plan(exact, { topology: "perDelayQueue", maxOtherDelayQueues: 4 }).route(7000).kept, 45_000)
  })

  it("add nothing where one queue keeps every delay", () =>
    assert.isUndefined(plan(exact, { topology: "perMessageTtl" }).growth))
})
