/** What SQS does not take: the queue's own redrive policy ends it, and a shutdown keeps its delay. */
import { RetryPolicy, type Event } from "@requeue/core"
import type { StrictSqs } from "@requeue/brokers"
import * as Effect from "effect/Effect"
import { describe, expect, test } from "vitest"
import { each } from "./strict.ts"
import { consume, drain, idOf, left, no, on, outgoing, queueName, until, type Run } from "../real/world.ts"

const servers = await each("fauxqs", "elasticmq")

describe.for(servers)("$name", ({ another, behind }) => {
  test("a message whose dead letter is refused is run as often as its policy says, and then given up by SQS", async () => {
    await using own = await another()
    const queue = queueName("refused")
    const runs: Array<Run> = []
    const retry = RetryPolicy.make({ maxRetries: 0, maxDeliveries: 1 })
    await on({ url: own.url }, (broker) => broker.publish([outgoing(queue, "a")]))
    own.deny(["SendMessage"], `${queue}-dlq`)
    // SQS moves a message after 2 x maxDeliveries + 5 receives of this copy.
    for (let start = 0; start < 8 && (await left(behind, queue)) > 0; start++) {
      let refused = 0
      const onEvent = ({ _tag }: Event.Event): void => void (_tag === "SettleFailed" && refused++)
      await on({ url: own.url }, () =>
        Effect.gen(function* () {
          yield* consume(queue, runs, { retry, onEvent }, () => no)
          yield* until("a refusal, or the end", async () => refused > 0 || (await left(behind, queue)) === 0)
        })
      )
    }
    expect(runs).toHaveLength(1)
    expect(await left(behind, queue)).toBe(0)
    expect((await drain(behind, `${queue}.dlq`)).map(idOf)).toEqual(["a"])
  })

  test.for<[name: string, begin: (own: StrictSqs) => void]>([
    ["never answers", ({ lose }) => lose({ action: "ChangeMessageVisibilityBatch", times: 1e6 })],
    ["throttles", ({ fail }) => fail({ action: "ChangeMessageVisibilityBatch", times: 1e6 })]
  ])("a retry that SQS %s keeps its delay when its consumer stops", async ([, begin]) => {
    await using own = await another()
    const queue = queueName("stopped")
    const runs: Array<Run> = []
    let isTold = false
    await on({ url: own.url, requestTimeout: 1500, visibilityTimeout: 600_000 }, (broker) =>
      Effect.gen(function* () {
        const onEvent = ({ _tag }: Event.Event): void => void (isTold ||= _tag === "SettleFailed")
        yield* consume(queue, runs, { onEvent }, (message) => {
          begin(own)
          message.retry({ delay: "1 hour" })
        })
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("the event", () => isTold)
        own.clear()
      })
    )
    const { Attributes } = await behind.getQueueAttributes({
      QueueUrl: (await behind.getQueueUrl({ QueueName: queue })).QueueUrl,
      AttributeNames: ["ApproximateNumberOfMessages"]
    })
    expect(Attributes?.ApproximateNumberOfMessages).toBe("0")
    expect(await left(behind, queue)).toBe(1)
    expect(runs).toHaveLength(1)
  })
})
