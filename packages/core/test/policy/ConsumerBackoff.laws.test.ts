import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as BackoffState from "../../src/policy/BackoffState.ts"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import { random } from "../arbitraries.ts"

const pauses = {
  multiplier: fc.integer({ min: 1, max: 5000 }),
  maxBackoffDuration: fc.integer({ min: 1, max: 200_000 }),
  strategy: fc.constantFrom("exponential" as const, "full-jitter" as const),
  recovery: fc.constantFrom("resume" as const, "stepwise" as const)
}

const nsq = fc.record(pauses).map(ConsumerBackoff.nsq)
const consecutive = fc.record({ ...pauses, failures: fc.integer({ min: 1, max: 8 }) }).map(ConsumerBackoff.consecutive)
const ratio = fc
  .record({
    ...pauses,
    failureRatio: fc.oneof(fc.constantFrom(0.1, 0.25, 0.5, 1), fc.double({ min: 0.01, max: 1, noNaN: true })),
    minAttempts: fc.integer({ min: 1, max: 12 }),
    window: fc.oneof(
      fc.integer({ min: 1000, max: 60_000 }),
      fc.integer({ min: 12, max: 60 }).map((attempts) => ({ attempts }))
    )
  })
  .map(ConsumerBackoff.ratio)

const policy = fc.oneof<fc.Arbitrary<ConsumerBackoff.ConsumerBackoff>[]>(nsq, consecutive, ratio)

const id = fc.constantFrom("a", "b", "c")
const event: fc.Arbitrary<BackoffState.Event> = fc.oneof(
  fc.record({
    _tag: fc.constantFrom("Started" as const, "Succeeded" as const, "Failed" as const, "Uncounted" as const),
    id
  }),
  fc.record({ _tag: fc.constant("Failed" as const), id, isRepeated: fc.boolean() }),
  fc.record({ _tag: fc.constantFrom("Elapsed" as const, "Reconnected" as const) })
)

/** An event, the milliseconds since the one before it, and a random number. */
const events = fc.array(
  fc.tuple(
    event,
    fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2000 }), fc.double({ min: 0, max: 9, noNaN: true })),
    random
  ),
  { maxLength: 120 }
)

/** The lowest level whose pause is the longest. */
const top = ({ maxBackoffDuration, multiplier }: ConsumerBackoff.ConsumerBackoff) =>
  Math.max(0, Math.ceil(Math.log2(maxBackoffDuration / multiplier)))

/** Calls `law` with every step of a random run of policies of these forms. */
const steps = <Policy extends ConsumerBackoff.ConsumerBackoff = ConsumerBackoff.ConsumerBackoff>(
  law: (
    policy: Policy,
    before: BackoffState.State,
    event: BackoffState.Event,
    after: BackoffState.State,
    commands: ReadonlyArray<BackoffState.Command>,
    now: number
  ) => void,
  of: fc.Arbitrary<Policy> = policy as unknown as fc.Arbitrary<Policy> // The default is every form.
) =>
  fc.assert(
    fc.property(of, events, (policy, events) => {
      let state = BackoffState.initial
      let now = 0
      for (const [event, apart, random] of events) {
        now += apart
        const [next, commands] = BackoffState.step(policy, state, event, now, random)
        law(policy, state, event, next, commands, now)
        state = next
      }
    }),
    { numRuns: 1000 }
  )

/** Attempts that were counted since the last pause: when, and whether they failed. A repeated failure is none in a row. */
const history = () => {
  let counted: Array<{ readonly at: number; readonly hasFailed: boolean; readonly isRepeated: boolean }> = []
  return {
    /** All of them, with this event; empty when it counts nothing. */
    with: (before: BackoffState.State, event: BackoffState.Event, now: number) => {
      if (before.mode._tag !== "Running") counted = []
      else if (event._tag === "Failed" || event._tag === "Succeeded") {
        const hasFailed = event._tag === "Failed"
        counted.push({ at: now, hasFailed, isRepeated: hasFailed && event.isRepeated === true })
      }
      return counted
    }
  }
}

const credits = (commands: ReadonlyArray<BackoffState.Command>) =>
  commands.flatMap((command) => (command._tag === "Credit" ? [command.amount] : []))

describe("in every run", () => {
  it("the level is a whole number from 0 to the one that reaches the longest pause, and moves by one", () =>
    steps((policy, before, _, after) => {
      assert.isTrue(Number.isInteger(after.level) && after.level >= 0)
      assert.isAtMost(after.level, top(policy))
      assert.isAtMost(Math.abs(after.level - before.level), 1)
    }))

  it("no pause is longer than allowed, and each begins with credit none", () =>
    steps((policy, _, __, after, commands) => {
      commands.forEach((command, i) => {
        if (command._tag !== "Wait") return
        assert.isTrue(Number.isInteger(command.millis) && command.millis >= 0)
        assert.isAtMost(command.millis, policy.maxBackoffDuration)
        assert.strictEqual(command.millis, after.pause)
        assert.deepStrictEqual(commands[i - 1], { _tag: "Credit", amount: "none" })
        assert.strictEqual(after.mode._tag, "Paused")
      })
    }))

  it("a pause waits exactly once, on the way in", () =>
    steps((_, before, __, after, commands) => {
      const entered = before.mode._tag !== "Paused" && after.mode._tag === "Paused"
      assert.lengthOf(
        commands.filter(({ _tag }) => _tag === "Wait"),
        entered ? 1 : 0
      )
    }))

  it("only the end of its time ends a pause, and always with a probe", () =>
    steps((_, before, event, after, commands) => {
      if (before.mode._tag !== "Paused") return
      if (event._tag === "Elapsed") {
        assert.deepStrictEqual(after.mode, { _tag: "Probing", probe: undefined })
        assert.deepStrictEqual(credits(commands), ["one"])
      } else {
        assert.deepStrictEqual(after, before)
        assert.isTrue(credits(commands).every((amount) => amount === "none"))
      }
    }))

  it("credit follows the mode", () =>
    steps((_, __, ___, after, commands) => {
      const last = credits(commands).at(-1)
      const expected = { Running: "full", Paused: "none", Probing: "one" }[after.mode._tag]
      if (last !== undefined) assert.strictEqual(last, expected)
    }))

  it("a change of mode always sets the credit", () =>
    steps((_, before, __, after, commands) => {
      if (before.mode._tag !== after.mode._tag) assert.isNotEmpty(credits(commands))
    }))

  it("any outcome of the probe ends the probing, and nothing else but a reconnection touches it", () =>
    steps((_, before, event, after) => {
      if (before.mode._tag !== "Probing") return
      const outcome = event._tag === "Succeeded" || event._tag === "Failed" || event._tag === "Uncounted"
      if (outcome && event.id === before.mode.probe) assert.notStrictEqual(after.mode._tag, "Probing")
      else assert.strictEqual(after.mode._tag, "Probing")
      // A probe that can still start tags itself.
      if (event._tag === "Started" && before.mode.probe === undefined) {
        assert.deepStrictEqual(after.mode, { _tag: "Probing", probe: event.id })
      }
    }))

  it("nothing but good probes ends in running at level 0", () =>
    fc.assert(
      fc.property(policy, events, (policy, events) => {
        let state = events.reduce(
          (state, [event, apart, random]) => BackoffState.step(policy, state, event, apart, random)[0],
          BackoffState.initial
        )
        const healing = ["Elapsed", "Reconnected", "Started", "Succeeded"] as const
        for (let i = 0; i < 4 * (state.level + 3); i++) {
          const tag = healing[i % 4]!
          state = BackoffState.step(policy, state, { _tag: tag, id: "good" } as BackoffState.Event, 0, 0.5)[0]
        }
        assert.deepStrictEqual([state.mode._tag, state.level], ["Running", 0])
      })
    ))

  it("what is ignored changes nothing, and where a success is ignored, only a failure or a new connection does", () =>
    steps((policy, before, event, after, commands) => {
      const isSame = after === before && commands.length === 0
      if (BackoffState.ignores(policy, before, event)) assert.isTrue(isSame)
      if (BackoffState.ignores(policy, before, { _tag: "Succeeded", id: "a" })) {
        assert.isTrue(isSame || event._tag === "Failed" || event._tag === "Reconnected")
      }
    }))

  it("the state is bounded: failures in a row below their number, ten buckets, and no counts outside of running", () =>
    steps((policy, before, _, after) => {
      assert.isBelow(after.failures, policy.form === "consecutive" ? policy.failures : 1)
      assert.isAtMost(after.window.length, policy.form === "ratio" ? 10 : 0)
      if (before.mode._tag === "Paused" || after.mode._tag === "Paused") {
        assert.deepStrictEqual([after.failures, after.window], [0, []])
      }
    }))

  it("a success neither pauses a running consumer nor adds to its failures in a row", () =>
    steps((_, before, event, after) => {
      if (before.mode._tag !== "Running" || event._tag !== "Succeeded") return
      assert.deepStrictEqual([after.mode._tag, after.failures], ["Running", 0])
    }))

  it("a probe that fails pauses, and one that succeeds starts all counts again, in every form", () =>
    steps((_, before, event, after) => {
      if (before.mode._tag !== "Probing" || !("id" in event) || event.id !== before.mode.probe) return
      if (event._tag === "Failed") assert.strictEqual(after.mode._tag, "Paused")
      if (event._tag === "Succeeded") assert.deepStrictEqual([after.failures, after.window], [0, []])
    }))
})

describe("a running consumer pauses", () => {
  it("nsq: with every failure", () =>
    steps((_, before, event, after) => {
      if (before.mode._tag !== "Running") return
      assert.strictEqual(after.mode._tag === "Paused", event._tag === "Failed")
    }, nsq))

  it("consecutive: with as many failures in a row as the policy says, and never below", () => {
    const seen = history()
    return steps((policy, before, event, after, _, now) => {
      if (before === BackoffState.initial) seen.with({ ...before, mode: { _tag: "Paused" } }, event, now)
      const counted = seen.with(before, event, now)
      if (before.mode._tag !== "Running" || event._tag !== "Failed") return
      const since = counted.findLastIndex(({ hasFailed }) => !hasFailed)
      const inARow = counted.slice(since + 1).filter(({ isRepeated }) => !isRepeated).length
      assert.strictEqual(after.mode._tag === "Paused", inARow >= policy.failures)
    }, consecutive)
  })

  it("ratio: never with fewer attempts than the policy says, nor below its share of those in the window", () => {
    const seen = history()
    return steps((policy, before, event, after, _, now) => {
      if (before === BackoffState.initial) seen.with({ ...before, mode: { _tag: "Paused" } }, event, now)
      const counted = seen.with(before, event, now)
      if (before.mode._tag !== "Running" || event._tag !== "Failed") return
      const { window } = policy
      // A tenth of the window is dropped at a time, so between nine tenths of it and all of it count.
      const slices = counted
        .map((_, index) => counted.slice(index))
        .filter((slice) =>
          typeof window === "number"
            ? Math.floor(now) - Math.floor(slice[0]!.at) < window
            : slice.length <= window.attempts
        )
      const reaches = (slice: typeof counted): boolean =>
        slice.length >= policy.minAttempts &&
        slice.filter(({ hasFailed }) => hasFailed).length / slice.length >= policy.failureRatio
      if (after.mode._tag === "Paused") assert.isTrue(slices.some(reaches))
      // What all slices that may count agree on is certain.
      const isFresh = slices.length === counted.length
      if (isFresh) assert.strictEqual(after.mode._tag === "Paused", reaches(counted))
    }, ratio)
  })
})
