import { Broker, BrokerError } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as DelayedMessages from "../../src/delayed/DelayedMessages.ts"

const delayed = (id: string, due: number | undefined): Broker.BrowsedMessage => {
  const delivery = {
    body: new Uint8Array(),
    headers: {},
    attempts: 2,
    metadata: Metadata.make(id, 1),
    receipt: undefined
  }
  return { delivery, due }
}

/** A broker that shows nothing; the rest of it is not used. */
const blind = Effect.succeed({ capabilities: { broker: "scripted" }, admin: {} } as Broker.Service)

/** A broker with these delayed messages; `gone` gets those that are removed, and `failure` ends a removal. */
const brokerOf = (
  messages: ReadonlyArray<Broker.BrowsedMessage>,
  gone: Array<string> = [],
  failure?: BrokerError.BrokerError
): Effect.Effect<Broker.Service> =>
  Effect.map(blind, (broker): Broker.Service => {
    const browse: Broker.Service["admin"]["browse"] = () =>
      Effect.sync(() => {
        const left = [...messages]
        return {
          next: (count) =>
            left.length === 0 && failure ? Effect.fail(failure) : Effect.succeed(left.splice(0, count)),
          remove: (deliveries) =>
            Effect.sync(() => {
              gone.push(...deliveries.map(({ metadata }) => metadata.id))
              return []
            }),
          identify: () => undefined,
          browsed: () => ({ isWhole: true, hidden: 0 })
        }
      })
    const capabilities = { ...broker.capabilities, delayedMessages: true }
    return { ...broker, capabilities, admin: { ...broker.admin, browse } }
  })

const on = (broker: Effect.Effect<Broker.Service>) =>
  Effect.flatMap(broker, (one) => Effect.provideService(DelayedMessages.make("orders"), Broker.Broker, one))

const some = [delayed("c", 30), delayed("none", undefined), delayed("a", 10), delayed("b", 20)]

describe("delayed messages", () => {
  it.effect("are listed with the soonest due first, and those that do not say last", () =>
    Effect.gen(function* () {
      const { list } = yield* on(brokerOf(some))
      const { browsed, messages, selected } = yield* list()
      assert.deepStrictEqual(
        messages.map(({ id }) => id),
        ["a", "b", "c", "none"]
      )
      assert.deepStrictEqual([browsed, selected], [4, 4])
    })
  )

  it.effect("are listed up to a limit, which keeps the soonest of any number", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 100 }, (_, index) => delayed(`m${index}`, 1000 - index))
      const { list } = yield* on(brokerOf(many))
      const { messages, selected } = yield* list({ limit: 3, filter: ({ id }) => id !== "m99" })
      assert.deepStrictEqual(
        messages.map(({ id }) => id),
        ["m98", "m97", "m96"]
      )
      assert.strictEqual(selected, 99)
    })
  )

  it.effect("are selected where the filter answers true itself, and by no promise", () =>
    Effect.gen(function* () {
      const gone: Array<string> = []
      const { count, list, purge } = yield* on(brokerOf(some, gone))
      const one: any = () => 1 // As JavaScript may.
      assert.strictEqual((yield* purge({ filter: one })).removed, 0)
      assert.strictEqual((yield* count({ filter: one })).selected, 0)
      const promise: any = async () => false
      for (const call of [purge({ filter: promise }), count({ filter: promise }), list({ filter: promise })]) {
        const exit = yield* Effect.exit<unknown, unknown, never>(call)
        const told = Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""
        assert.match(told, /filter must return true or false, not a promise/)
      }
      assert.deepStrictEqual(gone, [])
    })
  )

  it.effect("stay in a dry run, which counts what would be removed", () =>
    Effect.gen(function* () {
      const gone: Array<string> = []
      const { purge } = yield* on(brokerOf(some, gone))
      assert.strictEqual((yield* purge({ filter: ({ id }) => id < "c", dryRun: true })).removed, 2)
      assert.deepStrictEqual(gone, [])
      assert.strictEqual((yield* purge({ filter: ({ id }) => id < "c" })).removed, 2)
      assert.deepStrictEqual(gone, ["a", "b"])
    })
  )

  it.effect("are not removed any more once a filter has thrown, and its error is told", () =>
    Effect.gen(function* () {
      const gone: Array<string> = []
      const { purge } = yield* on(brokerOf(some, gone))
      const filter = ({ id }: { readonly id: string }) => {
        if (id === "a") throw new Error("mine")
        return true
      }
      const exit = yield* Effect.exit(purge({ filter }))
      assert.deepStrictEqual(gone, ["c", "none"])
      assert.match(
        Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "",
        /threw Error: mine, when 2 delayed messages of orders were removed/
      )
    })
  )

  it.effect("are removed no more once that is stopped, and the answer tells those that are gone", () =>
    Effect.gen(function* () {
      const gone: Array<string> = []
      const stop = new AbortController()
      const { purge } = yield* on(brokerOf(some, gone))
      const filter = ({ id }: DelayedMessages.DelayedMessage) => {
        if (id === "none") stop.abort()
        return true
      }
      assert.deepStrictEqual(yield* purge({ filter, signal: stop.signal }), { removed: 2, browsed: 2, isWhole: false })
      assert.deepStrictEqual(gone, ["c", "none"])
      const all = yield* purge({ all: true, signal: stop.signal })
      assert.deepStrictEqual(all, { removed: 0, browsed: 0, isWhole: false })
    })
  )

  it.effect("that may be gone when a removal fails are told by its error", () =>
    Effect.gen(function* () {
      const lost = { broker: "test", operation: "delayed", reason: "ConnectionFailed", detail: "it is away" } as const
      const failing = brokerOf(some, [], new BrokerError.BrokerError(lost))
      const { purge } = yield* on(failing)
      const error = yield* Effect.flip(purge({ filter: ({ id }) => id !== "a" }))
      assert.deepInclude(error, {
        ...lost,
        detail: "it is away; 3 delayed messages had been selected by then, and may be gone"
      })
      const untouched = [purge({ filter: () => false }), purge({ all: true, dryRun: true })]
      for (const each of untouched) assert.strictEqual((yield* Effect.flip(each)).detail, "it is away")
    })
  )

  it.effect("cannot be asked for on a broker that does not show them", () =>
    Effect.gen(function* () {
      const { count, list, purge } = yield* on(blind)
      for (const error of [
        yield* Effect.flip(list()),
        yield* Effect.flip(count()),
        yield* Effect.flip(purge({ all: true }))
      ])
        assert.deepInclude(error, { reason: "Unsupported", queue: "orders" })
    })
  )

  it.effect.each([
    [{}, /DelayedMessages\.purge \(queue orders\): nothing says which delayed messages to remove/],
    [{ all: true, filter: () => true }, /give all or filter, not both/],
    [{ all: false }, /all must be true/],
    [{ all: true, dryrun: true }, /Did you mean dryRun/]
  ] as const)("are not removed for %o", ([options, message]) =>
    Effect.gen(function* () {
      const gone: Array<string> = []
      const { purge } = yield* on(brokerOf(some, gone))
      const exit = yield* Effect.exit(purge(options as unknown as DelayedMessages.PurgeOptions)) // As JavaScript may.
      assert.match(Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "", message)
      assert.deepStrictEqual(gone, [])
    })
  )
})
