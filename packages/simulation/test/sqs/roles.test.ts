/** Roles that lack one permission: what happens, and what is reported. docs/sqs.md lists the effects. */
import { SqsOperator, type SqsOptions } from "@requeue/adapter-sqs"
import { Port } from "@requeue/conformance"
import { Broker, Consumer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { assert, describe, test } from "vitest"
import { no, on, type Options, type Run, tagged, until, type World } from "./world.ts"

const queue = "orders"

/** A program of a process, on its broker. */
type Program = (world: World) => Effect.Effect<unknown, unknown, Broker.Broker | Scope.Scope>

const broker = Broker.Broker

const send: Program = (world) => Effect.flatMap(broker, (one) => world.send(one, queue, ["c"]))
const start: Program = () => Consumer.start(queue, {}, () => {})
const purge: Program = () => Effect.flatMap(broker, ({ admin }) => admin.purge(queue))
const counts: Program = () => Effect.flatMap(broker, ({ admin }) => admin.counts(queue))
const browse: Program = () => Effect.flatMap(broker, (one) => Port.oldest(one, queue, 1))
const move: Program = ({ connection, elsewhere }) => elsewhere(SqsOperator.startMove(`${queue}.dlq`, connection))
const moves: Program = ({ connection, elsewhere }) => elsewhere(SqsOperator.moves(`${queue}.dlq`, connection))
const redrive: Program = () =>
  Effect.flatMap(DeadLetters.make(`${queue}.dlq`), (letters) => letters.redrive({ to: queue, create: true }))

/** Calls that fail at once, with the action that is missing. */
const refused: ReadonlyArray<
  readonly [who: string, program: Program, queues: SqsOptions.Queues, actions: ReadonlyArray<string>]
> = [
  ["a send", send, "create", ["CreateQueue", "GetQueueUrl", "GetQueueAttributes", "SendMessage"]],
  ["a send", send, "verify", ["GetQueueUrl", "GetQueueAttributes", "SendMessage"]],
  ["a send", send, "use", ["GetQueueUrl", "SendMessage"]],
  ["a consumer's start", start, "create", ["CreateQueue", "SetQueueAttributes", "GetQueueUrl", "GetQueueAttributes"]],
  ["a consumer's start", start, "verify", ["GetQueueUrl", "GetQueueAttributes"]],
  ["a consumer's start", start, "use", ["GetQueueUrl"]],
  ["counts", counts, "use", ["GetQueueUrl", "GetQueueAttributes"]],
  ["a browser", browse, "use", ["GetQueueUrl", "ReceiveMessage"]],
  ["a purge", purge, "use", ["GetQueueUrl", "ReceiveMessage", "DeleteMessage"]],
  ["a redrive", redrive, "use", ["GetQueueUrl", "GetQueueAttributes"]],
  [
    "a move task",
    move,
    "use",
    ["GetQueueUrl", "GetQueueAttributes", "ListDeadLetterSourceQueues", "StartMessageMoveTask"]
  ],
  ["the list of move tasks", moves, "use", ["GetQueueUrl", "GetQueueAttributes", "ListMessageMoveTasks"]]
]

/** Queues that exist, with a message `a` and a dead letter `b`. */
const made = ({ connection, elsewhere, ...world }: World) =>
  Effect.gen(function* () {
    yield* elsewhere(SqsOperator.create({ queue }, connection))
    const one = yield* world.broker()
    yield* world.send(one, queue, ["a"])
    yield* world.send(one, `${queue}.dlq`, ["b"])
  })

/** Runs a program on queues that exist. */
const onMade = (options: Options, program: (world: World) => Effect.Effect<unknown, unknown, Scope.Scope>) =>
  on(options, (world) => Effect.asVoid(Effect.andThen(made(world), program(world))))

test.for(
  refused.flatMap(([who, program, queues, actions]) => actions.map((action) => [who, queues, action, program] as const))
)("%s (queues: %s) without %s fails, and says which permission it needs", ([, queues, action, program]) =>
  on({}, (world) =>
    Effect.gen(function* () {
      if (queues !== "create") yield* made(world)
      world.server.deny([action])
      const one = yield* world.broker({ queues })
      const error = yield* Effect.flip(Effect.provideService(program(world), broker, one))
      assert.deepInclude(error, { _tag: "BrokerError", reason: "AccessRefused" })
      assert.include(String(error), `is not authorized to perform: sqs:${action.toLowerCase()}`)
      assert.include(String(error), "Allow the action on this queue in the identity's IAM policy")
    })
  )
)

const forEver = { times: Number.POSITIVE_INFINITY }

/** Refusals that a consumer lives with; each returns what ends it. */
const lasting: ReadonlyArray<readonly [what: string, begin: (world: World) => () => void]> = [
  ...["ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"].map(
    (action) =>
      [
        action,
        ({ server }: World) => {
          server.deny([action])
          return () => server.deny([])
        }
      ] as const
  ),
  ...(["KmsAccessDenied", "KmsDisabled", "ExpiredToken"] as const).map(
    (error) => [error, ({ fail }: World) => fail("ReceiveMessage", error, forEver).end] as const
  )
]

const why = ({ health }: Consumer.Consumer): string => {
  const { state, trouble } = health()
  return `${state} ${trouble?.because ?? ""}`
}

const untilDown = (consumer: Consumer.Consumer, what: string) =>
  until("down", () => new RegExp(`^down .*${what}`, "i").test(why(consumer)))
const untilUp = (consumer: Consumer.Consumer) => until("up", () => why(consumer) === "running ")

test.for(lasting)(
  "a consumer that starts with %s runs nothing and is down with the reason until it is over",
  ([what, begin]) =>
    onMade({ queues: "use" }, (world) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const end = begin(world)
        const consumer = yield* world.consume(yield* world.broker(), queue, runs)
        yield* untilDown(consumer, what)
        yield* Effect.sleep(60_000)
        assert.deepStrictEqual(runs, [])
        end()
        yield* untilUp(consumer)
        yield* until("a run", () => runs.length === 1)
        yield* world.untilEmpty(queue)
        assert.strictEqual(runs[0]?.attempts, 1)
      })
    )
)

test.for(lasting.filter(([what]) => what !== "ChangeMessageVisibility"))(
  "a consumer that runs is down with the reason when %s comes later, and goes on when it is over",
  ([what, begin]) =>
    onMade({}, (world) =>
      Effect.gen(function* () {
        const runs: Array<Run> = []
        const one = yield* world.broker()
        const consumer = yield* world.consume(one, queue, runs)
        yield* until("the first run", () => runs.length === 1)
        yield* world.untilEmpty(queue)
        const end = begin(world)
        // The poll that is under way brings it, or none does.
        yield* world.send(one, queue, ["c"])
        yield* untilDown(consumer, what)
        end()
        yield* untilUp(consumer)
        yield* world.send(one, queue, ["d"])
        yield* until("the last run", () => runs.some(({ id }) => id === "d"))
        yield* world.untilEmpty(queue)
        assert.strictEqual(new Set(runs.map(({ id }) => id)).size, runs.length)
      })
    )
)

test("a queue that is deleted: its consumer is down with the reason, and goes on when it is there again", () =>
  onMade({ queues: "verify" }, ({ ask, broker: process, consume, send: sent }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const one = yield* process()
      const consumer = yield* consume(one, queue, runs)
      yield* until("the first run", () => runs.length === 1)
      yield* ask("DeleteQueue", queue)
      yield* untilDown(consumer, "QueueMissing")
      yield* Effect.sleep(60_000)
      yield* ask("CreateQueue", queue, { QueueName: queue })
      yield* untilUp(consumer)
      yield* sent(one, queue, ["c"])
      yield* until("a run", () => runs.length === 2)
    })
  ))

test("four starts without DeleteMessage run nothing, and leave the books as they were", () =>
  onMade({}, ({ broker: process, consume, idsIn, server }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      server.deny(["DeleteMessage"])
      for (let time = 0; time < 4; time++) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* untilDown(yield* consume(yield* process(), queue, runs), "")
          })
        )
      }
      assert.deepStrictEqual([runs, idsIn(queue), idsIn(`${queue}.dlq`)], [[], ["a"], ["b"]])
    })
  ))

describe("without SendMessage", () => {
  test("on the dead letters a message is kept, and reported; others go on; it is dead-lettered when it may be", () =>
    onMade({}, ({ broker: process, consume, idsIn, send: sent, server, untilEmpty }) =>
      Effect.gen(function* () {
        const [runs, { events, onEvent }] = [[] as Array<Run>, tagged()]
        const quarantined = () => events.flatMap((event) => (event._tag === "Quarantined" ? [event] : []))
        server.deny(["SendMessage"], `${queue}-dlq`)
        const one = yield* process()
        const options = { retry: RetryPolicy.make({ maxRetries: 1 }), onEvent }
        yield* consume(one, queue, runs, options, ({ id }) => (id === "a" ? no : Effect.void))
        yield* until("the event", () => quarantined().length > 0)
        yield* sent(one, queue, ["c"])
        yield* until("another's run", () => runs.some(({ id }) => id === "c"))
        server.deny([])
        yield* untilEmpty(queue)
        const [first] = quarantined()
        assert.strictEqual(first!.id, "a")
        assert.include(first!.error.message, "sqs:sendmessage")
        const attempts = runs.filter(({ id }) => id === "a").map((run) => run.attempts)
        assert.deepStrictEqual(attempts, [1, 2])
        assert.deepStrictEqual(idsIn(`${queue}.dlq`), ["a", "b"])
      })
    ))

  test("on the queue a retry by copy is reported, and kept by other means", () =>
    onMade({ inFlightLimit: 0 }, ({ broker: process, consume, server, untilEmpty }) =>
      Effect.gen(function* () {
        const [runs, { count, onEvent }] = [[] as Array<Run>, tagged()]
        server.deny(["SendMessage"], queue)
        yield* consume(yield* process(), queue, runs, { onEvent }, (message) => {
          if (message.attempts === 1) message.retry({ delay: 1000 })
        })
        yield* until("the event", () => count("SettleFailed") > 0)
        yield* until("the retry", () => runs.length === 2)
        yield* untilEmpty(queue)
        assert.deepStrictEqual(
          runs.map(({ attempts }) => attempts),
          [1, 2]
        )
        assert.isAtLeast(runs[1]!.at - runs[0]!.at, 1000)
      })
    ))
})

test("a role that loses ChangeMessageVisibility: no further message is run once a retry was refused", () =>
  onMade({}, ({ broker: process, consume, server, untilEmpty }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      const consumer = yield* consume(yield* process(), queue, runs, {}, (message) => {
        if (message.attempts > 1) return
        server.deny(["ChangeMessageVisibility"])
        message.retry({ delay: 1000 })
      })
      yield* untilDown(consumer, "ChangeMessageVisibility")
      server.deny([])
      yield* untilUp(consumer)
      yield* until("the retry", () => runs.length === 2)
      yield* untilEmpty(queue)
      assert.deepStrictEqual(
        runs.map(({ attempts }) => attempts),
        [1, 2]
      )
    })
  ))

test.each([
  ["GetQueueAttributes", "use"],
  ["ListDeadLetterSourceQueues", "create"]
] as const)("without %s, and with queues: %s, a send and a consumer work", (action, queues) =>
  onMade({ queues: "create" }, ({ broker: process, consume, send: sent, server }) =>
    Effect.gen(function* () {
      const runs: Array<Run> = []
      server.deny([action])
      const one = yield* process({ queues })
      yield* consume(one, queue, runs)
      yield* sent(one, queue, ["c"])
      yield* until("two runs", () => runs.length === 2)
    })
  )
)
