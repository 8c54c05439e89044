/**
 * Twists: changes to a few seeds, for situations that hardly any seed would have by chance. A twist has its own random numbers,
 * so all other seeds stay unchanged.
 */
import { type Family, familyOf, type Operation, type Scenario } from "../Scenario.ts"
import * as Draw from "../world/Draw.ts"
import * as Redrives from "./Redrives.ts"
import { alone, calm, burst, each } from "./Shapes.ts"

type Random = Draw.Sequence

/** A twist. */
interface Twist {
  /** Its purpose. */
  readonly name: string
  /** The families of brokers that have it. Default: all. */
  readonly families?: ReadonlyArray<Family>
  /** The part of their seeds that has it. */
  readonly part: number
  readonly of: (scenario: Scenario, random: Random) => Scenario
}

const twists: ReadonlyArray<Twist> = [
  {
    name: "more messages come at once than are taken, and then none; a person may pause meanwhile",
    part: 0.02,
    of: (scenario, random) => ({
      ...scenario,
      versions: each(scenario, {
        concurrency: 1,
        prefetch: random.pick([5, 10]),
        batch: random.chance(0.7) ? { size: random.whole(2, 4), wait: 2000 } : undefined,
        consumerBackoff: undefined
      }),
      processes: alone(scenario),
      sendings: burst(random.whole(3, 9), 1000, { takes: random.pick([300, 900]) }),
      refusals: [],
      operations: random.chance(0.3) ? [{ at: random.whole(1100, 2000), what: { _tag: "Pause", for: 20_000 } }] : []
    })
  },
  { name: "a redrive meets failures", part: 0.04, of: Redrives.troubled },
  {
    name: "a message whose dead letter is refused outlives many processes",
    families: ["push", "lease"],
    part: 0.05,
    of: (scenario, random) => ({
      ...scenario,
      versions: each(scenario, {
        maxAttempts: 1,
        maxDeliveries: 1,
        deadLetter: "work.dlq",
        consumerBackoff: undefined
      }),
      processes: alone(
        scenario,
        Array.from({ length: 25 }, () => ({ lasts: random.pick([700, 3000]), ends: "kill", away: 100 }))
      ),
      sendings: burst(random.whole(1, 4), 100, { throws: "error" }),
      refusals: [
        { key: 1, of: "deadLetter", until: 5, ends: true, reason: random.pick(["BodyTooLarge", "Unroutable"]) }
      ],
      operations: [],
      rates: calm,
      calmAt: 120_000
    })
  },
  {
    name: "daemons end while they have messages",
    families: ["lossy"],
    part: 0.08,
    of: (scenario, random) => ({
      ...scenario,
      operations: [
        ...scenario.operations,
        ...Array.from(
          { length: random.whole(1, 3) },
          (): Operation => ({
            at: Math.min(random.pick(scenario.sendings).at + random.whole(100, 2000), scenario.calmAt),
            what: { _tag: "Restart", away: random.pick([500, 5000]) }
          })
        )
      ]
    })
  },
  {
    name: "copies of retries are refused",
    part: 0.025,
    of: (scenario, random) => ({
      ...scenario,
      versions: each(scenario, { maxAttempts: 4, maxDeliveries: 14, backoff: [random.pick([5000, 60_000])] }),
      sendings: burst(random.whole(2, 5), 500, { throws: "error" }, 2),
      refusals: [
        {
          key: random.whole(1, 2),
          of: "again",
          until: random.pick([1, 2, 3, 4, 5, 5, 5]),
          ends: random.chance(0.6),
          reason: random.pick(["BodyTooLarge", "Unroutable", "AccessRefused"])
        }
      ],
      // Some are lost repeatedly before they are refused.
      ...(random.chance(0.5) ? { rates: { ...calm, cut: random.pick([0.2, 0.4]) }, focus: "consume" } : {})
    })
  },
  {
    name: "messages are too old for their delay",
    part: 0.02,
    of: (scenario, random) => ({
      ...scenario,
      versions: each(scenario, { maxAge: random.pick([5000, 60_000]) }),
      sendings: scenario.sendings.map((sending) =>
        sending.by === "ours" && random.chance(0.3) ? { ...sending, delay: random.pick([10_000, 1_200_000]) } : sending
      )
    })
  },
  {
    name: "answers to retries are lost, and their messages are redelivered meanwhile",
    families: ["lease"],
    part: 0.04,
    of: (scenario, random) => ({
      ...scenario,
      lease: 30_000,
      versions: each(scenario, {
        maxAttempts: 4,
        maxDeliveries: 14,
        immediate: 0,
        backoff: [0, 60_000],
        batch: undefined,
        handlerTimeout: 10_000,
        consumerBackoff: undefined
      }),
      processes: alone(scenario),
      sendings: burst(random.whole(1, 2), 500, { takes: random.pick([3000, 5000]), throws: "error" }, 2),
      refusals: [],
      operations: [],
      rates: { ...calm, lostAnswer: 0.5 },
      focus: "hide",
      calmAt: 30_000
    })
  },
  {
    name: "leases end while they are extended, and their messages are redelivered",
    families: ["lease"],
    part: 0.06,
    of: (scenario, random) => ({
      ...scenario,
      lease: 5000,
      versions: each(scenario, { concurrency: 1, prefetch: random.pick([5, 10]), handlerTimeout: 25_000 }),
      processes: alone(scenario),
      sendings: burst(random.whole(4, 9), 500, { takes: random.pick([3000, 9000]) }),
      refusals: [],
      operations: [],
      rates: { ...calm, late: random.pick([0.2, 0.4]) },
      focus: "hide",
      calmAt: 60_000
    })
  },
  {
    name: "copies have no answer, while leases are short and messages are redelivered",
    families: ["lossy"],
    part: 0.06,
    of: (scenario, random) => ({
      ...scenario,
      lease: random.pick([5000, 30_000]),
      versions: each(scenario, {
        maxAttempts: random.pick([1, 1, 3]),
        maxDeliveries: 13,
        deadLetter: "work.dlq",
        concurrency: random.whole(1, 2),
        prefetch: random.whole(0, 1),
        batch: undefined,
        handlerTimeout: 1000,
        consumerBackoff: undefined
      }),
      sendings: burst(random.whole(4, 9), 500, { throws: "error" }),
      processes: alone(scenario),
      refusals: [],
      operations: [],
      rates: {
        ...calm,
        late: random.pick([0.2, 0.4]),
        lostAnswer: random.pick([0, 0.2]),
        cut: random.pick([0, 0.05, 0.2])
      },
      calmAt: random.pick([5000, 10_000, 30_000])
    })
  },
  {
    name: "letters of one id are published together, and some of them are returned",
    families: ["push"],
    part: 0.02,
    of: (scenario, random) => ({
      ...scenario,
      versions: each(scenario, { maxAttempts: 1, deadLetter: "work.dlq", concurrency: 5, batch: undefined }),
      processes: alone(scenario),
      sendings: burst(random.whole(2, 5), 1000, { throws: "error" }).map((sending) => ({ ...sending, id: "again" })),
      refusals: [{ key: random.whole(1, 2), of: "deadLetter", until: 5, ends: true, reason: "Unroutable" }],
      operations: [],
      rates: calm,
      calmAt: 30_000
    })
  },
  {
    name: "headers nearly fill a frame, and those of copies are larger",
    families: ["push"],
    part: 0.02,
    of: (scenario, random) => ({
      ...scenario,
      versions: each(scenario, {
        maxAttempts: 2,
        maxDeliveries: 10,
        backoff: [1000],
        deadLetter: "work.dlq",
        batch: undefined
      }),
      processes: alone(scenario),
      sendings: burst(random.whole(2, 5), 1000, { throws: "error" }, 2).map((sending) =>
        random.chance(0.5) ? { ...sending, header: random.whole(3500, 3800) } : sending
      ),
      refusals: [],
      operations: [],
      rates: calm,
      calmAt: 30_000
    })
  }
]

/** The scenario, or what a twist makes of it. */
export const twisted = (scenario: Scenario): Scenario => {
  const random = Draw.sequence(scenario.seed + 0x2f6b_1d37)
  const family = familyOf(scenario)
  for (const { families = [family], of, part } of twists) {
    if (families.includes(family) && random.chance(part)) return of(scenario, random)
  }
  return scenario
}
