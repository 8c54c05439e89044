/** Settlements that SQS refuses or does not answer: the fate of each, and what becomes of a delivery that is still held. */
import { Workload } from "@requeue/conformance"
import { type Metadata, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { deadLettersOf, hour, minute, on, type Options, type World } from "./world.ts"

const letter = (queue: string, cut?: Metadata.Truncation): Settlement.Settlement => ({
  _tag: "DeadLetter",
  reason: "permanent",
  queue,
  error: { name: "E", message: "m".repeat(256) },
  cut
})

/** A delivery of a message `a`, and the way to settle it. */
const received = (
  program: (
    world: World,
    held: Effect.Success<ReturnType<World["port"]>> & {
      readonly a: Effect.Success<Effect.Success<ReturnType<World["port"]>>["next"]>
    }
  ) => Effect.Effect<unknown, unknown, Scope.Scope>,
  { queue = "orders", ...options }: Options & { readonly queue?: string } = {}
) =>
  on({ visibilityTimeout: 10 * minute, ...options }, (world) =>
    Effect.gen(function* () {
      const broker = yield* world.broker()
      const port = yield* world.port(broker, queue)
      yield* world.send(broker, queue, ["a"])
      const a = yield* port.next
      port.credit(0)
      yield* program(world, { ...port, a })
    })
  )

describe("a role that may not", () => {
  test.each<[action: string, settlement: Settlement.Settlement]>([
    ["DeleteMessage", Settlement.Ack],
    ["ChangeMessageVisibility", Settlement.Release()],
    ["SendMessage", letter("elsewhere")]
  ])("%s: %o is refused, the delivery stays ours, and is settled again", (action, settlement) =>
    received(({ counts, server, untilEmpty }, { a, settle }) =>
      Effect.gen(function* () {
        server.deny([action])
        for (const _ of [1, 2]) assert.deepStrictEqual(yield* settle([a, settlement]), ["a rejected AccessRefused"])
        assert.deepStrictEqual(counts("orders"), [0, 1, 0])
        server.deny([])
        assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), [])
        yield* untilEmpty("orders")
      })
    )
  )

  test("ChangeMessageVisibility: a retry is refused, and is a copy when it is asked for again", () =>
    received(({ server, untilCounts }, { a, settle }) =>
      Effect.gen(function* () {
        server.deny(["ChangeMessageVisibility"])
        assert.deepStrictEqual(yield* settle([a, Settlement.Retry(minute)]), ["a rejected AccessRefused"])
        assert.deepStrictEqual(yield* settle([a, Settlement.Retry(minute)]), [])
        yield* untilCounts("orders", 0, 0, 1)
      })
    ))

  test("DeleteMessage: a dead letter is stored once, however often its message is settled", () =>
    received(({ counts, idsIn, server, untilEmpty }, { a, settle }) =>
      Effect.gen(function* () {
        server.deny(["DeleteMessage"])
        const asked = [letter("orders.dlq"), letter("orders.dlq"), Settlement.Retry(0), Settlement.Release(minute)]
        for (const each of asked) assert.deepStrictEqual(yield* settle([a, each]), ["a rejected AccessRefused"])
        assert.deepStrictEqual(counts("orders"), [0, 1, 0])
        server.deny([])
        assert.deepStrictEqual(yield* settle([a, letter("orders.dlq")]), [])
        yield* untilEmpty("orders")
        assert.deepStrictEqual(idsIn("orders.dlq"), ["a"])
      })
    ))
})

describe("SQS", () => {
  test.each<[name: string, ask: (world: World) => { readonly end: () => void }, told: string]>([
    [
      "throttles",
      ({ fail }) => fail("ChangeMessageVisibilityBatch", "ThrottlingException", { times: 50 }),
      "transient Throttled"
    ],
    [
      "is down",
      ({ fail }) => fail("ChangeMessageVisibilityBatch", "ServiceUnavailable", { times: 50 }),
      "transient ConnectionFailed"
    ],
    [
      "breaks off",
      ({ lose }) => lose("ChangeMessageVisibilityBatch", "reset", { times: 50 }),
      "unknown ConnectionLost"
    ],
    ["never answers", ({ lose }) => lose("ChangeMessageVisibilityBatch", "silence", { times: 50 }), "unknown Timeout"]
  ])("%s: the delivery is held, and settled when it is over", (_, ask, told) =>
    received((world, { a, settle }) =>
      Effect.gen(function* () {
        const fault = ask(world)
        assert.deepStrictEqual(yield* settle([a, Settlement.Retry(minute)]), [`a ${told}`])
        fault.end()
        assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), [])
        yield* world.untilEmpty("orders")
      })
    )
  )
})

test.each<[name: string, queue: string, settlement: (queue: string) => Settlement.Settlement]>([
  ["a dead letter", "orders", (queue) => letter(deadLettersOf(queue))],
  ["a dead letter of a FIFO queue", "orders.fifo", (queue) => letter(deadLettersOf(queue))],
  ["a retry by copy", "orders", () => Settlement.Retry(13 * hour)]
])("%s that may be stored, and is refused when the SDK asks again: its fate is unknown", (_, queue, settlement) =>
  received(
    ({ failEntries, lose }, { a, settle }) =>
      Effect.gen(function* () {
        lose("SendMessageBatch", "reset")
        failEntries("SendMessageBatch", "KmsDisabled", [0])
        assert.match(String(yield* settle([a, settlement(queue)])), /^a unknown/)
        assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), [])
      }),
    { queue }
  )
)

describe("a call that hides a message", () => {
  test.each([
    ["silence", "Timeout"],
    ["reset", "ConnectionLost"]
  ] as const)("and gets no answer (%s) is not repeated", (how, reason) =>
    received(({ calls, lose, untilCounts }, { a, settle }) =>
      Effect.gen(function* () {
        const before = calls("ChangeMessageVisibilityBatch")
        lose("ChangeMessageVisibilityBatch", how)
        assert.deepStrictEqual(yield* settle([a, Settlement.Retry(minute)]), [`a unknown ${reason}`])
        // Asked for again, the retry is a copy, which is due at its own time.
        assert.deepStrictEqual(yield* settle([a, Settlement.Retry(minute)]), [])
        assert.strictEqual(calls("ChangeMessageVisibilityBatch") - before, 1)
        yield* untilCounts("orders", 0, 0, 1)
      })
    )
  )

  test("is repeated where SQS says that it has done nothing", () =>
    received(({ calls, fail, untilCounts }, { a, settle }) =>
      Effect.gen(function* () {
        const before = calls("ChangeMessageVisibilityBatch")
        fail("ChangeMessageVisibilityBatch", "RequestThrottled", { times: 2 })
        assert.deepStrictEqual(yield* settle([a, Settlement.Retry(minute)]), [])
        assert.strictEqual(calls("ChangeMessageVisibilityBatch") - before, 3)
        yield* untilCounts("orders", 0, 1, 0)
      })
    ))

  test("and may have returned it does not take it from the consumer that has it", () =>
    received(
      ({ ask, calls, counts, lose }, { a, settle }) =>
        Effect.gen(function* () {
          const before = calls("ChangeMessageVisibilityBatch")
          lose("ChangeMessageVisibilityBatch", "silence")
          assert.deepStrictEqual(yield* settle([a, Settlement.Release()]), ["a unknown Timeout"])
          yield* ask("ReceiveMessage", "orders", { VisibilityTimeout: 600 })
          assert.deepStrictEqual(yield* settle([a, Settlement.Release()]), [])
          assert.strictEqual(calls("ChangeMessageVisibilityBatch") - before, 1)
          assert.deepStrictEqual(counts("orders"), [0, 1, 0])
        }),
      { obeysOld: true }
    ))
})

test("an extension that arrives after the end of the lease extends nothing", () =>
  received(
    ({ ask, slow }, { a, extend, settle }) =>
      Effect.gen(function* () {
        yield* Effect.sleep(1000)
        slow("ChangeMessageVisibilityBatch", 2000)
        const taken = Effect.delay(ask("ReceiveMessage", "orders", { VisibilityTimeout: 600 }), 1500)
        const [lost] = yield* Effect.all([extend(a), taken], { concurrency: "unbounded" })
        assert.deepStrictEqual(
          lost.map(({ error, fate }) => `${fate} ${error.reason}`),
          ["lost LeaseLost"]
        )
        assert.deepStrictEqual(yield* settle([a, Settlement.Retry(0)]), ["a lost LeaseLost"])
      }),
    { visibilityTimeout: 2000 }
  ))

// SQS refuses an expired handle there, and an answer of 200 has failed entries.
test("a handle of a FIFO queue that expires on the way is reported as a lost lease, not as success", () =>
  received(
    ({ left, slow }, { a, settle }) =>
      Effect.gen(function* () {
        yield* Effect.sleep(2500)
        slow("DeleteMessageBatch", 1000)
        assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), ["a lost LeaseLost"])
        assert.strictEqual(left("orders.fifo"), 1)
      }),
    { queue: "orders.fifo", visibilityTimeout: 3000 }
  ))

test("a retry that a FIFO queue cannot keep is refused, and the delivery is settled otherwise", () =>
  received(
    ({ untilEmpty }, { a, settle }) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* settle([a, Settlement.Retry(13 * hour)]), ["a rejected Unsupported"])
        assert.deepStrictEqual(yield* settle([a, Settlement.Ack]), [])
        yield* untilEmpty("orders.fifo")
      }),
    { queue: "orders.fifo" }
  ))

test("a dead letter that is too large for its queue is refused alone; it is settled smaller", () =>
  on({ visibilityTimeout: 10 * minute }, ({ ask, broker, idsIn, port, untilEmpty, ...world }) =>
    Effect.gen(function* () {
      const one = yield* broker()
      const { settle, take } = yield* port(one, "orders", 2)
      yield* ask("SetQueueAttributes", "orders.dlq", { Attributes: { MaximumMessageSize: "1024" } })
      yield* world.send(one, "orders", ["small"])
      const body = new TextEncoder().encode("x".repeat(700))
      yield* one.publish([{ ...Workload.outgoing("orders", "large", { now: world.now() }), body }])
      const both = yield* take(2)
      const requests = both.map((delivery) => [delivery, letter("orders.dlq")] as const)
      assert.deepStrictEqual(yield* settle(...requests), ["large rejected BodyTooLarge"])
      const large = both.find(({ metadata }) => metadata.id === "large")!
      assert.deepStrictEqual(yield* settle([large, letter("orders.dlq", "error-text")]), [])
      yield* untilEmpty("orders")
      assert.deepStrictEqual(idsIn("orders.dlq"), ["large", "small"])
    })
  ))

test("a foreign body that nearly fills a message becomes a dead letter when nothing but its id goes with it", () =>
  on({ visibilityTimeout: 10 * minute }, ({ ask, broker, left, port, untilEmpty }) =>
    Effect.gen(function* () {
      const { next, settle } = yield* port(yield* broker(), "orders")
      yield* ask("SendMessageBatch", "orders", { Entries: [{ Id: "0", MessageBody: "x".repeat(1_048_470) }] })
      const delivery = yield* next
      assert.match(String(yield* settle([delivery, letter("orders.dlq")])), /rejected BodyTooLarge/)
      assert.deepStrictEqual(yield* settle([delivery, letter("orders.dlq", "all")]), [])
      yield* untilEmpty("orders")
      assert.strictEqual(left("orders.dlq"), 1)
    })
  ))

test("each delivery of a message has its name, and no other message has it", () =>
  on({}, ({ broker, port, send }) =>
    Effect.gen(function* () {
      const one = yield* broker()
      const { identify, next, settle, take } = yield* port(one, "orders", 2)
      yield* send(one, "orders", ["same", "same"])
      const both = yield* take(2)
      const names = both.map(identify)
      assert.strictEqual(new Set(names).size, 2)
      assert.deepStrictEqual(yield* settle([both[0]!, Settlement.Retry(0)]), [])
      const again = yield* next
      assert.strictEqual(identify(again), names[0])
      // A copy is another message.
      assert.deepStrictEqual(yield* settle([again, Settlement.Release(1)]), [])
      assert.notInclude(names, identify(yield* next))
    })
  ))
