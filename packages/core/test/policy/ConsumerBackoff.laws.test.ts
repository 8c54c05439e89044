import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as ConsumerBackoff from "../../src/policy/ConsumerBackoff.ts"
import { random } from "../arbitraries.ts"

const policy = fc
  .record({
    multiplier: fc.integer({ min: 1, max: 5000 }),
    maxBackoffDuration: fc.integer({ min: 1, max: 200_000 }),
    strategy: fc.constantFrom("exponential" as const, "full-jitter" as const),
    recovery: fc.constantFrom("resume" as const, "stepwise" as const)
  })
  .map(ConsumerBackoff.make)

const id = fc.constantFrom("a", "b", "c")
const event: fc.Arbitrary<ConsumerBackoff.Event> = fc.oneof(
  fc.record({
    _tag: fc.constantFrom("Started" as const, "Succeeded" as const, "Failed" as const, "Uncounted" as const),
    id
  }),
  fc.record({ _tag: fc.constantFrom("Elapsed" as const, "Reconnected" as const) })
)

const events = fc.array(fc.tuple(event, random), { maxLength: 60 })

/** The lowest level whose pause is the longest. */
const top = ({ maxBackoffDuration, multiplier }: ConsumerBackoff.ConsumerBackoff) =>
  Math.max(0, Math.ceil(Math.log2(maxBackoffDuration / multiplier)))

/** Calls `law` with every step of a random run. */
const steps = (
  law: (
    policy: ConsumerBackoff.ConsumerBackoff,
    before: ConsumerBackoff.State,
    event: ConsumerBackoff.Event,
    after: ConsumerBackoff.State,
    commands: ReadonlyArray<ConsumerBackoff.Command>
  ) => void
) =>
  fc.assert(
    fc.property(policy, events, (policy, events) => {
      let state = ConsumerBackoff.initial
      for (const [event, random] of events) {
        const [next, commands] = ConsumerBackoff.step(policy, state, event, random)
        law(policy, state, event, next, commands)
        state = next
      }
    }),
    { numRuns: 1000 }
  )

const credits = (commands: ReadonlyArray<ConsumerBackoff.Command>) =>
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
        assert.strictEqual(command.millis, after.window)
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
          (state, [event, random]) => ConsumerBackoff.step(policy, state, event, random)[0],
          ConsumerBackoff.initial
        )
        const healing = ["Elapsed", "Reconnected", "Started", "Succeeded"] as const
        for (let i = 0; i < 4 * (state.level + 3); i++) {
          const tag = healing[i % 4]!
          state = ConsumerBackoff.step(policy, state, { _tag: tag, id: "good" } as ConsumerBackoff.Event, 0.5)[0]
        }
        assert.deepStrictEqual([state.mode._tag, state.level], ["Running", 0])
      })
    ))
})
