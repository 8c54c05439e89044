import { assert, describe, it } from "@effect/vitest"
import * as BackoffState from "../../src/policy/BackoffState.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import * as Delay from "../../src/message/Delay.ts"

type State = BackoffState.State
type Event = BackoffState.Event

const policy = ConsumerBackoff.nsq()

const failed = (id: string): Event => ({ _tag: "Failed", id })
const succeeded = (id: string): Event => ({ _tag: "Succeeded", id })
const uncounted = (id: string): Event => ({ _tag: "Uncounted", id })
const started = (id: string): Event => ({ _tag: "Started", id })
const elapsed: Event = { _tag: "Elapsed" }
const reconnected: Event = { _tag: "Reconnected" }

const nothing = { failures: 0, window: [] }
const running = (level: number, pause = 0): State => ({ mode: { _tag: "Running" }, level, pause, ...nothing })
const paused = (level: number, pause: number): State => ({ mode: { _tag: "Paused" }, level, pause, ...nothing })
const probing = (probe: string | undefined, level: number, pause: number): State => ({
  mode: { _tag: "Probing", probe },
  level,
  pause,
  ...nothing
})

/** Commands, short: `0`, `1`, `all` for credits, a number for a wait. */
const render = (command: BackoffState.Command) =>
  command._tag === "Wait" ? command.millis : { none: "0", one: "1", full: "all" }[command.amount]

const step = (state: State, event: Event, of: ConsumerBackoff.ConsumerBackoff = policy, random = 0.5) => {
  const [next, commands] = BackoffState.step(of, state, event, 0, random)
  return [next, commands.map(render)] as const
}

/** The states and commands of a sequence of events. */
const trace = (
  events: ReadonlyArray<Event>,
  of: ConsumerBackoff.ConsumerBackoff = policy,
  from = BackoffState.initial
) => {
  let state = from
  return events.map((event) => {
    const [next, commands] = step(state, event, of)
    state = next
    return [state.mode._tag, state.level, ...commands].join(" ")
  })
}

const stepwise = ConsumerBackoff.nsq({ recovery: "stepwise" })

describe("step", () => {
  const table: ReadonlyArray<readonly [string, State, Event, State, Array<string | number>]> = [
    ["running, failure", running(0), failed("a"), paused(1, 2000), ["0", 2000]],
    ["running above 0, failure: counts on", running(3), failed("a"), paused(4, 16_000), ["0", 16_000]],
    ["running at the top, failure", running(7), failed("a"), paused(7, 120_000), ["0", 120_000]],
    ["running above 0, success", running(3), succeeded("a"), running(2), []],
    ["running at 0, success", running(0), succeeded("a"), running(0), []],
    ["running, opt-out", running(3), uncounted("a"), running(3), []],
    ["running, started", running(3), started("a"), running(3), []],
    ["running, a late timer", running(3), elapsed, running(3), []],
    ["running at 0, reconnected", running(0), reconnected, running(0), ["all"]],
    ["running above 0, reconnected", running(3, 9), reconnected, probing(undefined, 3, 9), ["1"]],
    ["paused, failure in flight", paused(3, 8000), failed("a"), paused(3, 8000), []],
    ["paused, success in flight", paused(3, 8000), succeeded("a"), paused(3, 8000), []],
    ["paused, opt-out in flight", paused(3, 8000), uncounted("a"), paused(3, 8000), []],
    ["paused, started", paused(3, 8000), started("a"), paused(3, 8000), []],
    ["paused, time is over", paused(3, 8000), elapsed, probing(undefined, 3, 8000), ["1"]],
    ["paused, reconnected", paused(3, 8000), reconnected, paused(3, 8000), ["0"]],
    ["probing, the probe starts", probing(undefined, 3, 8000), started("a"), probing("a", 3, 8000), []],
    ["probing, another starts", probing("a", 3, 8000), started("b"), probing("a", 3, 8000), []],
    ["probing, success", probing("a", 3, 8000), succeeded("a"), running(2, 8000), ["all"]],
    ["probing, failure", probing("a", 3, 8000), failed("a"), paused(4, 16_000), ["0", 16_000]],
    ["probing, opt-out: the same window again", probing("a", 3, 8000), uncounted("a"), paused(3, 8000), ["0", 8000]],
    ["probing, a stale success", probing("a", 3, 8000), succeeded("b"), probing("a", 3, 8000), []],
    ["probing, a stale failure", probing("a", 3, 8000), failed("b"), probing("a", 3, 8000), []],
    [
      "probing, a stale success before it began",
      probing(undefined, 3, 8000),
      succeeded("b"),
      probing(undefined, 3, 8000),
      []
    ],
    ["probing, a late timer", probing("a", 3, 8000), elapsed, probing("a", 3, 8000), []],
    ["probing, reconnected: another probe", probing("a", 3, 8000), reconnected, probing(undefined, 3, 8000), ["1"]]
  ]
  it.each(table)("%s", (_, state, event, next, commands) =>
    assert.deepStrictEqual(step(state, event), [next, commands])
  )
})

describe("traces", () => {
  it("waits 2, 4, 8, 16, 32, 64, 120, 120 seconds while every probe fails", () => {
    const rounds = ["a", "b", "c", "d", "e", "f", "g", "h"].flatMap((id) => [started(id), failed(id), elapsed])
    const waits = trace(rounds).flatMap((line) => line.match(/(?<=Paused \d 0 )\d+/) ?? [])
    assert.deepStrictEqual(waits.map(Number), [2000, 4000, 8000, 16_000, 32_000, 64_000, 120_000, 120_000])
  })

  it("counts no further than to the level whose pause is exactly the longest", () => {
    const exact = ConsumerBackoff.nsq({ multiplier: 1000, maxBackoffDuration: 4000 })
    const rounds = ["a", "b", "c", "d"].flatMap((id) => [started(id), failed(id), elapsed])
    const pauses = trace(rounds, exact).filter((line) => line.startsWith("Paused"))
    assert.deepStrictEqual(pauses, ["Paused 1 0 2000", "Paused 2 0 4000", "Paused 2 0 4000", "Paused 2 0 4000"])
  })

  const down = [elapsed, started("p"), succeeded("p")]

  it("resume: full credit after the first good probe, and down with every success", () =>
    assert.deepStrictEqual(trace([...down, succeeded("q"), succeeded("r")], policy, paused(3, 8000)), [
      "Probing 3 1",
      "Probing 3",
      "Running 2 all",
      "Running 1",
      "Running 0"
    ]))

  it("resume: a failure on the way down counts on from there", () =>
    assert.deepStrictEqual(trace([...down, failed("q")], policy, paused(3, 8000)).slice(-2), [
      "Running 2 all",
      "Paused 3 0 8000"
    ]))

  it("stepwise: one level and one pause at a time", () =>
    assert.deepStrictEqual(trace([...down, ...down, ...down], stepwise, paused(3, 8000)), [
      "Probing 3 1",
      "Probing 3",
      "Paused 2 0 4000",
      "Probing 2 1",
      "Probing 2",
      "Paused 1 0 2000",
      "Probing 1 1",
      "Probing 1",
      "Running 0 all"
    ]))

  it("a dependency that is half well is not hammered", () =>
    assert.deepStrictEqual(
      trace([failed("a"), elapsed, started("b"), succeeded("b"), failed("c"), failed("d"), elapsed]),
      ["Paused 1 0 2000", "Probing 1 1", "Probing 1", "Running 0 all", "Paused 1 0 2000", "Paused 1", "Probing 1 1"]
    ))
})

describe("consecutive", () => {
  const three = ConsumerBackoff.consecutive({ failures: 3 })

  it("pauses after so many failures in a row, and counts from 0 again after a success", () =>
    assert.deepStrictEqual(
      trace([failed("a"), failed("b"), succeeded("c"), failed("d"), uncounted("e"), failed("f"), failed("g")], three),
      ["Running 0", "Running 0", "Running 0", "Running 0", "Running 0", "Running 0", "Paused 1 0 2000"]
    ))

  it("counts from 0 again after a pause, but a probe that fails pauses at once", () =>
    assert.deepStrictEqual(
      trace(
        [elapsed, started("p"), failed("p"), elapsed, started("q"), succeeded("q"), failed("r"), failed("s")],
        three,
        {
          ...paused(1, 2000)
        }
      ),
      [
        "Probing 1 1",
        "Probing 1",
        "Paused 2 0 4000",
        "Probing 2 1",
        "Probing 2",
        "Running 1 all",
        "Running 1",
        "Running 1"
      ]
    ))

  it("counts a batch that fails as a whole once", () => {
    const batch = (id: string): ReadonlyArray<Event> => [
      failed(`${id}1`),
      { _tag: "Failed", id: `${id}2`, isRepeated: true },
      { _tag: "Failed", id: `${id}3`, isRepeated: true }
    ]
    const states = trace([...batch("a"), ...batch("b"), ...batch("c")], three)
    assert.deepStrictEqual(
      states.map((state) => state.split(" ")[0]),
      ["Running", "Running", "Running", "Running", "Running", "Running", "Paused", "Paused", "Paused"]
    )
  })
})

describe("ratio", () => {
  /** The attempts that begin the pause, of outcomes at these times; `undefined` when none does. */
  const pausedAfter = (of: ConsumerBackoff.ConsumerBackoff, outcomes: ReadonlyArray<readonly [number, boolean]>) => {
    let state = BackoffState.initial
    for (const [index, [now, isGood]] of outcomes.entries()) {
      const event = isGood ? succeeded("a") : failed("a")
      state = BackoffState.step(of, state, event, now, 0.5)[0]
      if (state.mode._tag === "Paused") return index + 1
    }
    return undefined
  }
  const quarter = ConsumerBackoff.ratio({ failureRatio: 0.25, minAttempts: 8, window: "10 seconds" })
  const every = (nth: number, count: number, apart = 1) =>
    Array.from({ length: count }, (_, index) => [index * apart, (index + 1) % nth !== 0] as const)

  it("pauses at the share, and not before the smallest number of attempts", () => {
    assert.strictEqual(pausedAfter(quarter, every(4, 100)), 8)
    assert.strictEqual(pausedAfter(quarter, every(1, 100)), 8)
    assert.isUndefined(pausedAfter(quarter, every(5, 1000)))
  })

  it("forgets attempts that are older than the window", () => {
    assert.isUndefined(pausedAfter(quarter, every(1, 100, 1429)))
    assert.strictEqual(pausedAfter(quarter, every(1, 100, 1000)), 8)
  })

  it("forgets what came before the last so many attempts", () => {
    const last = ConsumerBackoff.ratio({ minAttempts: 100, window: { attempts: 100 } })
    const good = Array.from({ length: 1000 }, () => [0, true] as const)
    const bad = Array.from({ length: 100 }, () => [0, false] as const)
    assert.approximately(pausedAfter(last, [...good, ...bad])!, 1050, 10)
    assert.strictEqual(pausedAfter(last, bad), 100)
  })

  it("counts from 0 again after a pause", () => {
    const half = ConsumerBackoff.ratio({ minAttempts: 2 })
    assert.deepStrictEqual(
      trace([failed("a"), failed("b"), elapsed, started("p"), succeeded("p"), failed("c"), failed("d")], half),
      ["Running 0", "Paused 1 0 2000", "Probing 1 1", "Probing 1", "Running 0 all", "Running 0", "Paused 1 0 2000"]
    )
  })
})

describe("full jitter", () => {
  const jittered = ConsumerBackoff.nsq({ strategy: "full-jitter" })
  it.each([
    [1, 0, 0],
    [1, 0.5, 1000],
    [3, 0.25, 2000],
    [7, 0.5, 60_000],
    [7, 0.999, 119_880],
    [20, 0.5, 60_000]
  ])("level %s, random %s: %s ms", (level, random, expected) =>
    assert.strictEqual(BackoffState.wait(jittered, level, random), expected)
  )
})

describe("make", () => {
  const refused: ReadonlyArray<readonly [string, object]> = [
    ["multiplier must be", { multiplier: 0 }],
    ["multiplier must be", { multiplier: "25 hours" }],
    ["maxBackoffDuration must be", { maxBackoffDuration: -1 }],
    ["maxBackoffDuration must be", { maxBackoffDuration: Delay.max + 1 }],
    ['form must be one of "nsq", "consecutive", "ratio", got "consequtive"', { form: "consequtive" }],
    ["failures must be a whole number from 1 to 1000, got 0", { failures: 0 }],
    [
      'failures is not an option of the form "nsq". Write form: "consecutive" with failures',
      { form: "nsq", failures: 3 }
    ],
    [
      'minAttempts is not an option of the form "consecutive". Write form: "ratio" with minAttempts',
      { minAttempts: 3 }
    ],
    ["unknown option failure. Did you mean failures?", { failure: 3 }],
    ["failureRatio must be a number above 0 and up to 1, got 50. Write 0.5", { form: "ratio", failureRatio: 50 }],
    ["failureRatio must be", { form: "ratio", failureRatio: 0 }],
    ["window must be a duration from 1s to 1d, or {", { form: "ratio", window: 999 }],
    ["window must be", { form: "ratio", window: { attempts: 0 } }],
    ["window must be", { form: "ratio", window: { attempts: 100, millis: 5 } }],
    ["minAttempts must be at most the 19 attempts of the window", { form: "ratio", window: { attempts: 19 } }]
  ]
  it.each(refused)("refuses: %s (%j)", (problem, options) =>
    assert.throws(() => ConsumerBackoff.make(options), RangeError, `ConsumerBackoff.make: ${problem}`)
  )

  it("builds the form that the options name, and a built one again", () => {
    const pauses = {
      multiplier: 1000,
      maxBackoffDuration: 120_000,
      strategy: "exponential",
      recovery: "resume"
    } as const
    const built = [
      [{}, ConsumerBackoff.consecutive(), { form: "consecutive", failures: 10, ...pauses }],
      [{ form: "nsq" }, ConsumerBackoff.nsq(), { form: "nsq", ...pauses }],
      [
        { form: "ratio" },
        ConsumerBackoff.ratio(),
        { form: "ratio", failureRatio: 0.5, minAttempts: 20, window: 30_000, ...pauses }
      ],
      [
        { form: "ratio", window: { attempts: 50 } },
        ConsumerBackoff.ratio({ window: { attempts: 50 } }),
        { form: "ratio", failureRatio: 0.5, minAttempts: 20, window: { attempts: 50 }, ...pauses }
      ]
    ] as const
    for (const [options, same, expected] of built) {
      assert.deepStrictEqual(ConsumerBackoff.make(options), expected)
      assert.deepStrictEqual(same, expected)
      assert.deepStrictEqual(ConsumerBackoff.make(same), expected)
    }
  })

  it("maxBackoffDuration 0 turns it off", () => {
    const events = [failed("a"), failed("b"), succeeded("c"), uncounted("d"), started("e"), elapsed, reconnected]
    const still = "Running 0"
    assert.deepStrictEqual(trace(events, ConsumerBackoff.off), [
      still,
      still,
      still,
      still,
      still,
      still,
      `${still} all`
    ])
  })
})
