/** Roles that lack one permission: what happens, and what is said. docs/sqs.md lists the effects. */
import { Port } from "@requeue/conformance"
import { Consumer, RetryPolicy, Broker } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { describe, expect, test } from "vitest"
import { SqsOperator, type SqsOptions } from "../../src/index.ts"
import { each, type Strict } from "./strict.ts"
import { consume, drain, idOf, no, on, outgoing, queueName, until, untilEmpty, type Run } from "../real/world.ts"

const servers = await each("fauxqs", "elasticmq")

type Failing = Effect.Effect<unknown, unknown, Broker.Broker | Scope.Scope>
const broker = Broker.Broker
type Own = Awaited<ReturnType<Strict["another"]>>
type Program = (queue: string, url: string) => Failing

const send: Program = (queue) => Effect.flatMap(broker, ({ publish }) => publish([outgoing(queue, "a")]))
const start: Program = (queue) => Consumer.start(queue, {}, () => {})
const purge: Program = (queue) => Effect.flatMap(broker, ({ admin }) => admin.purge(queue))
const counts: Program = (queue) => Effect.flatMap(broker, ({ admin }) => admin.counts(queue))
const browse: Program = (queue) => Effect.flatMap(broker, (one) => Port.oldest(one, queue, 1))
const move: Program = (queue, url) => SqsOperator.startMove(`${queue}.dlq`, { url })
const moves: Program = (queue, url) => SqsOperator.moves(`${queue}.dlq`, { url })
const redrive: Program = (queue) =>
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

/** Refusals that a consumer lives with. */
const lasting: ReadonlyArray<readonly [what: string, begin: (own: Own) => void]> = [
  ["ReceiveMessage", (own) => own.deny(["ReceiveMessage"])],
  ["DeleteMessage", (own) => own.deny(["DeleteMessage"])],
  ["ChangeMessageVisibility", (own) => own.deny(["ChangeMessageVisibility"])],
  ["KmsAccessDenied", (own) => own.fail({ action: "ReceiveMessage", times: 1e6 }, "KmsAccessDenied")],
  ["KmsDisabled", (own) => own.fail({ action: "ReceiveMessage", times: 1e6 }, "KmsDisabled")],
  ["ExpiredToken", (own) => own.fail({ times: 1e6 }, "ExpiredToken")]
]

const end = (own: Own): void => {
  own.deny([])
  own.clear()
}

const why = ({ health }: Consumer.Consumer): string => {
  const { state, trouble } = health()
  return `${state} ${trouble?.because ?? ""}`
}

const isDown = (consumer: Consumer.Consumer, what: string): boolean =>
  new RegExp(`^down .*${what}`, "i").test(why(consumer))

describe.for(servers)("$name", ({ another, behind, url }) => {
  const made = async (base: string): Promise<string> => {
    const queue = queueName(base)
    await Effect.runPromise(SqsOperator.create({ queue }, { url }))
    await on({ url }, (broker) => broker.publish([outgoing(queue, "a"), outgoing(`${queue}.dlq`, "b")]))
    return queue
  }

  test.for(
    refused.flatMap(([who, program, queues, actions]) =>
      actions.map((action) => [who, queues, action, program] as const)
    )
  )("%s (queues: %s) without %s fails, and says which permission it needs", async ([, queues, action, program]) => {
    await using own = await another()
    const queue = queues === "create" ? queueName("role") : await made("role")
    own.deny([action])
    const error = await on({ url: own.url, queues }, () => Effect.flip(program(queue, own.url)))
    expect(error).toMatchObject({ _tag: "BrokerError", reason: "AccessRefused" })
    expect(String(error)).toContain(`is not authorized to perform: sqs:${action.toLowerCase()}`)
    expect(String(error)).toContain("Allow the action on this queue in the identity's IAM policy")
  })

  test.for(lasting.filter(([what]) => what !== "ExpiredToken"))(
    "a consumer that starts with %s runs nothing and is down with the reason until it is over",
    async ([what, begin]) => {
      await using own = await another()
      const queue = await made("starts")
      const runs: Array<Run> = []
      await on({ url: own.url, queues: "use" }, () =>
        Effect.gen(function* () {
          begin(own)
          const consumer = yield* consume(queue, runs)
          yield* until("down", () => isDown(consumer, what))
          end(own)
          yield* until("up", () => why(consumer) === "running ")
          yield* until("a run", () => runs.length === 1)
          yield* untilEmpty(behind, queue)
        })
      )
      expect(runs.map(({ attempts }) => attempts)).toEqual([1])
    }
  )

  test.for(lasting.filter(([what]) => what !== "ChangeMessageVisibility"))(
    "a consumer that runs is down with the reason when %s comes later, and goes on when it is over",
    async ([what, begin]) => {
      await using own = await another()
      const queue = await made("later")
      const runs: Array<Run> = []
      await on({ url: own.url }, (broker) =>
        Effect.gen(function* () {
          const consumer = yield* consume(queue, runs)
          yield* until("the first run", () => runs.length === 1)
          yield* untilEmpty(behind, queue)
          begin(own)
          // The poll that is under way brings it, or none does.
          yield* Effect.ignore(broker.publish([outgoing(queue, "c")]))
          yield* until("down", () => isDown(consumer, what))
          end(own)
          yield* until("up", () => why(consumer) === "running ")
          yield* broker.publish([outgoing(queue, "d")])
          yield* until("the last run", () => runs.some(({ id }) => id === "d"))
          yield* untilEmpty(behind, queue)
        })
      )
      expect(new Set(runs.map(({ id }) => id)).size).toBe(runs.length)
    }
  )

  test("a queue that is deleted: its consumer is down with the reason, and goes on when it is there again", async () => {
    await using own = await another()
    const queue = await made("deleted")
    const runs: Array<Run> = []
    await on({ url: own.url, queues: "verify" }, (broker) =>
      Effect.gen(function* () {
        const consumer = yield* consume(queue, runs)
        yield* until("the first run", () => runs.length === 1)
        const { QueueUrl } = yield* Effect.promise(() => behind.getQueueUrl({ QueueName: queue }))
        yield* Effect.promise(() => behind.deleteQueue({ QueueUrl }))
        yield* until("down", () => why(consumer).startsWith("down") && why(consumer).includes("QueueMissing"))
        yield* Effect.promise(() => behind.createQueue({ QueueName: queue }))
        yield* until("up", () => why(consumer) === "running ")
        yield* broker.publish([outgoing(queue, "c")])
        yield* until("a run", () => runs.length === 2)
      })
    )
  })

  test("four starts without DeleteMessage run nothing, and leave the books as they were", async () => {
    await using own = await another()
    const queue = await made("starts")
    const runs: Array<Run> = []
    own.deny(["DeleteMessage"])
    for (let time = 0; time < 4; time++) {
      await on({ url: own.url }, () =>
        Effect.gen(function* () {
          const consumer = yield* consume(queue, runs)
          yield* until("down", () => why(consumer).startsWith("down"))
        })
      )
    }
    expect(runs).toEqual([])
    expect((await drain(behind, queue)).map(idOf)).toEqual(["a"])
    expect((await drain(behind, `${queue}.dlq`)).map(idOf)).toEqual(["b"])
  })

  test("without SendMessage on the dead letters a message is kept, and told; others go on; it is given up when it may be", async () => {
    await using own = await another()
    const queue = await made("letters")
    const runs: Array<Run> = []
    const quarantined: Array<string> = []
    own.deny(["SendMessage"], `${queue}-dlq`)
    await on({ url: own.url }, (broker) =>
      Effect.gen(function* () {
        const options: Consumer.Options = {
          retry: RetryPolicy.make({ maxRetries: 1 }),
          onEvent: (event) =>
            void (event._tag === "Quarantined" && quarantined.push(`${event.id}: ${event.error.message}`))
        }
        yield* consume(queue, runs, options, ({ id }) => (id === "a" ? no : Effect.void))
        yield* until("the event", () => quarantined.length > 0)
        yield* broker.publish([outgoing(queue, "c")])
        yield* until("another's run", () => runs.some(({ id }) => id === "c"))
        own.deny([])
        yield* untilEmpty(behind, queue)
      })
    )
    expect(quarantined[0]).toContain("a: ")
    expect(quarantined[0]).toContain("sqs:sendmessage")
    expect(runs.filter(({ id }) => id === "a").map(({ attempts }) => attempts)).toEqual([1, 2])
    expect((await drain(behind, `${queue}.dlq`)).map(idOf).toSorted()).toEqual(["a", "b"])
  })

  test("without SendMessage on the queue a retry by copy is told, and kept by other means", async () => {
    await using own = await another()
    const queue = await made("copies")
    const runs: Array<Run> = []
    const failed: Array<string> = []
    own.deny(["SendMessage"], queue)
    await on({ url: own.url, inFlightLimit: 0 }, () =>
      Effect.gen(function* () {
        const options: Consumer.Options = {
          onEvent: (event) => void (event._tag === "SettleFailed" && failed.push(event.error.message))
        }
        yield* consume(queue, runs, options, (message) => {
          if (message.attempts === 1) message.retry({ delay: 1000 })
        })
        yield* until("the event", () => failed.length > 0)
        yield* until("the retry", () => runs.length === 2)
        yield* untilEmpty(behind, queue)
      })
    )
    expect(failed[0]).toContain("sqs:sendmessage")
    expect(runs.map(({ attempts }) => attempts)).toEqual([1, 2])
    expect(runs[1]!.at - runs[0]!.at).toBeGreaterThanOrEqual(1000)
  })

  test("a role that loses ChangeMessageVisibility: no further message is run once a retry was refused", async () => {
    await using own = await another()
    const queue = await made("hides")
    const runs: Array<Run> = []
    await on({ url: own.url }, () =>
      Effect.gen(function* () {
        own.deny([])
        const consumer = yield* consume(queue, runs, {}, (message) => {
          if (message.attempts > 1) return
          own.deny(["ChangeMessageVisibility"])
          message.retry({ delay: 1000 })
        })
        yield* until("down", () => isDown(consumer, "ChangeMessageVisibility"))
        end(own)
        yield* until("up", () => why(consumer) === "running ")
        yield* until("the retry", () => runs.length === 2)
        yield* untilEmpty(behind, queue)
      })
    )
    expect(runs.map(({ attempts }) => attempts)).toEqual([1, 2])
  })

  test("with queues: use, neither a send nor a consumer needs GetQueueAttributes", async () => {
    await using own = await another()
    const queue = await made("used")
    const runs: Array<Run> = []
    own.deny(["GetQueueAttributes"])
    await on({ url: own.url, queues: "use" }, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, runs)
        yield* broker.publish([outgoing(queue, "c")])
        yield* until("two runs", () => runs.length === 2)
      })
    )
  })

  test("without ListDeadLetterSourceQueues a consumer runs", async () => {
    await using own = await another()
    const queue = await made("unlisted")
    const runs: Array<Run> = []
    own.deny(["ListDeadLetterSourceQueues"])
    await on({ url: own.url }, () =>
      Effect.andThen(
        consume(queue, runs),
        until("a run", () => runs.length === 1)
      )
    )
  })
})
