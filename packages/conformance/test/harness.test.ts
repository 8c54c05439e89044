/** A harness that is written wrongly is refused, and one that does not do what it says fails its case. */
import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Case from "../src/Case.ts"
import { Harness, type Service } from "../src/Harness.ts"
import * as Suite from "../src/Suite.ts"
import { broker, harness, passes } from "./fake.ts"

const layerOf = (changed: object, of: Broker.Service = broker) => {
  const service = { ...harness, ...changed } as Service // wrong on purpose
  return Layer.succeedContext(Context.make(Broker.Broker, of).pipe(Context.add(Harness, service)))
}

const without = (name: keyof Service, more: object = {}) => {
  const { [name]: _, ...rest } = harness
  const service = { ...rest, ...more } as Service // incomplete on purpose
  return Layer.succeedContext(Context.make(Broker.Broker, broker).pipe(Context.add(Harness, service)))
}

const options = (layer: Suite.Options["layer"], more: object = {}): Suite.Options => ({
  name: "fake",
  layer,
  cases: [passes],
  ...more
})

/** The text of the error by which a suite is refused. */
const refusal = (given: Suite.Options) =>
  Effect.map(Effect.exit(Suite.run(given)), (exit) => (Exit.isFailure(exit) ? String(exit.cause) : "it ran"))

describe("a harness is refused that", () => {
  const wrong = {
    "lacks a member": [
      without("restart"),
      "harness.restart: missing. Write an Effect, not a function that returns one; or write undefined, if it cannot be"
    ],
    "has a member that is misspelt": [
      without("cutConnections", { cutConections: Effect.void }),
      "harness.cutConnections: missing. Write it in place of cutConections"
    ],
    "lacks a hook that each must have": [
      without("pending"),
      "harness.pending: missing. Write (queue) => an Effect of the counts"
    ],
    "has a function in place of an Effect": [
      layerOf({ restart: () => Effect.void }),
      "harness.restart: must be an Effect, or undefined, got a function"
    ],
    "has an Effect in place of a function": [
      layerOf({ uniqueQueue: Effect.succeed("q") }),
      "harness.uniqueQueue: must be a function, got"
    ],
    "has text in place of a number": [
      layerOf({ lateness: "100" }),
      'harness.lateness: must be a number >= 0, got "100". Write milliseconds'
    ],
    "has no number": [layerOf({ settleTime: undefined }), "harness.settleTime: must be a number >= 0, got undefined"],
    "has NaN": [layerOf({ lateness: Number.NaN }), "harness.lateness: must be a number >= 0, got NaN"],
    "has no name": [layerOf({ name: "" }), "harness.name: must be text that is not empty"],
    "lets no call fail by an Effect": [
      layerOf({ failNext: () => true }),
      "harness.failNext: must return an Effect, or undefined, for publish and refused, got true"
    ],
    "has one kind of queue for another": [
      layerOf({ foreignQueue: harness.uniqueQueue }),
      "harness.foreignQueue: is uniqueQueue. Make a queue of another kind"
    ]
  } as const
  it.live.each(Object.entries(wrong))("%s", ([, [layer, message]]) =>
    Effect.map(refusal(options(layer)), (text) => assert.include(text, message))
  )
})

describe("options are refused that", () => {
  const wrong = {
    "have a name that is unknown": [{ timeot: 5 }, "Suite.run: unknown option timeot. Did you mean timeout?"],
    "have a value of another kind": [{ timeout: "5 s" }, "Suite.run: timeout must be a number >= 1"],
    "have no layer": [{ layer: undefined }, "Suite.run: layer must be a Layer, got undefined"]
  } as const
  it.live.each(Object.entries(wrong))("%s", ([, [more, message]]) =>
    Effect.map(refusal(options(layerOf({}), more)), (text) => assert.include(text, message))
  )

  it("come with a runner that lacks a function", () => {
    const runner: object = { describe, test: it }
    assert.throws(
      () => Suite.register(runner as Suite.Runner, options(layerOf({}))), // incomplete on purpose
      "Suite.register: afterAll must be a function, got undefined"
    )
  })
})

describe("a case fails on a harness", () => {
  /** The outcome of a case on a changed harness. */
  const failure = (changed: object, body: Case.Body, more: object = {}) =>
    Effect.gen(function* () {
      const one = Case.inGroup("group")("uses a hook", body)
      const { lines } = yield* Suite.run(options(layerOf(changed), { cases: [one], virtualTime: true, ...more }))
      const { outcome } = lines[0]!
      return outcome._tag === "Failed" ? String(outcome.error) : outcome._tag
    })

  it.live("whose other broker is the broker itself", () =>
    Effect.gen(function* () {
      const told = yield* failure({ another: Effect.succeed(broker) }, function* (lab) {
        yield* lab.another
      })
      assert.include(told, "harness.another: returns the broker itself")
    })
  )
  it.live("whose restart leaves the connection as it was", () =>
    Effect.gen(function* () {
      const told = yield* failure({}, function* (lab) {
        yield* lab.harness.restart!
      })
      assert.include(told, "harness.restart: a connection that is not that of before: not within")
    })
  )
  it.live("that reports a failed call before there was one", () =>
    Effect.gen(function* () {
      const told = yield* failure({ failNext: () => Effect.succeed(() => true) }, function* (lab) {
        yield* lab.failNext("settle", "refused")
      })
      assert.include(told, "harness.failNext(settle, refused): reports a failed call before there was one")
    })
  )
  it.live("that leaves out a number that the broker tells", () =>
    Effect.gen(function* () {
      const pending = () => Effect.succeed({ ready: undefined, inFlight: 0, delayed: undefined })
      const told = yield* failure({ pending }, function* (lab) {
        yield* lab.untilEmpty
      })
      assert.include(told, "harness.pending: returns no ready, but capabilities.counts.ready is true")
    })
  )
  it.live("that hangs, and names the hook", () =>
    Effect.gen(function* () {
      const told = yield* failure(
        { publishRaw: () => Effect.never },
        function* (lab) {
          yield* lab.harness.publishRaw(lab.queue, new Uint8Array(), {})
        },
        { timeout: 1000 }
      )
      assert.include(told, "the case did not end within 1000 ms; harness.publishRaw was running")
    })
  )
})
