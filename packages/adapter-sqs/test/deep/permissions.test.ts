/** The permissions that are printed are those that are used: no more, no less. */
import { Port } from "@requeue/conformance"
import { type Broker, Consumer, Failure, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { expect, test } from "vitest"
import { SqsOperator, SqsOptions, SqsPermissions, SqsPlan } from "../../src/index.ts"
import { firstOf } from "./strict.ts"
import { on, outgoing, queueName, until } from "../real/world.ts"

const { proxy, url } = await firstOf("elasticmq", "fauxqs")

type Program = (queue: string, broker: Broker.Service) => Effect.Effect<unknown, unknown, Broker.Broker | Scope.Scope>

const consume: Program = (queue) =>
  Effect.gen(function* () {
    let runs = 0
    let given = 0
    const onEvent = ({ _tag }: { readonly _tag: string }) => void (_tag === "DeadLettered" && given++)
    yield* Consumer.start(queue, { onEvent }, (message) => {
      if (message.attempts > 1) throw new Failure.PermanentError({ message: "no" })
      // The first by visibility, the second by copy.
      message.retry({ delay: runs++ === 0 ? 0 : "13 hours" })
    })
    yield* until("a dead letter and two runs", () => runs === 2 && given === 1)
  })

const produce: Program = (queue, broker) => broker.publish([outgoing(queue, "a"), outgoing(queue, "b")])

const operate: Program = (queue, broker) =>
  Effect.gen(function* () {
    const letters = yield* DeadLetters.make(`${queue}.dlq`)
    yield* letters.list()
    yield* letters.redrive()
    yield* letters.purge({ all: true })
    yield* Port.oldest(broker, queue, 1)
    yield* broker.admin.purge(queue)
    yield* broker.publish([outgoing(`${queue}.dlq`, "a"), outgoing(`${queue}.dlq`, "b")])
    yield* SqsOperator.startMove(`${queue}.dlq`, { url }, { rate: 1 })
    yield* SqsOperator.cancelMove(`${queue}.dlq`, { url })
  })

/** Actions of SQS that a program calls, batches by the permission that they need. */
const actionsOf = async (program: Program, queue: string, queues: SqsOptions.Queues): Promise<ReadonlySet<string>> => {
  const before = proxy.calls()
  await on({ url, queues }, (broker) => program(queue, broker))
  const after = Object.entries(proxy.calls()).filter(([action, count]) => count > (before[action] ?? 0))
  return new Set(after.map(([action]) => `sqs:${action.replace(/Batch$/, "")}`))
}

const printed = (queue: string, role: SqsPermissions.Role, queues: SqsOptions.Queues): ReadonlySet<string> => {
  const retry = RetryPolicy.make()
  const deadLetterQueues = RetryPolicy.deadLetterQueues(retry, queue)
  const settings = Result.getOrThrow(SqsOptions.decode({ url, queues }))
  const plan = SqsPlan.make({ queue, retry, deadLetterQueues }, settings) as SqsPlan.Plan
  const { Statement } = SqsPermissions.make(plan, role, { region: "eu-west-1", account: "123456789012" })
  return new Set(Statement.flatMap(({ Action }) => Action))
}

test("a producer, a consumer and an operator of queues that exist", async () => {
  const queue = queueName("permitted")
  await Effect.runPromise(SqsOperator.create({ queue }, { url }))
  expect(await actionsOf(produce, queue, "verify")).toEqual(printed(queue, "producer", "verify"))
  expect(await actionsOf(consume, queue, "verify")).toEqual(printed(queue, "consumer", "verify"))
  expect(await actionsOf(operate, queue, "verify")).toEqual(printed(queue, "operator", "verify"))
})

test("a consumer that makes its queues", async () => {
  const queue = queueName("made")
  const both: Program = (one, broker) => Effect.andThen(produce(one, broker), consume(one, broker))
  expect(await actionsOf(both, queue, "create")).toEqual(printed(queue, "consumer", "create"))
})
