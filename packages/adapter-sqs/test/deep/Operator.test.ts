import { Port } from "@requeue/conformance"
import { Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { describe, expect, test, vi } from "vitest"
import { SqsOperator } from "../../src/index.ts"
import { firstOf } from "./strict.ts"
import { on, outgoing, queueName, until } from "../real/world.ts"

const { url } = await firstOf("elasticmq", "fauxqs")
const options = { url, visibilityTimeout: 3000 }
const run = Effect.runPromise

describe("queues", () => {
  test("are made once, and then good", async () => {
    const request = { queue: queueName("made"), retry: { maxRetries: 5 }, functionTimeout: "3 seconds" } as const
    const before = await run(SqsOperator.verify(request, options))
    expect(before.map(({ attribute, isGood }) => [attribute, isGood])).toEqual([
      ["QueueName", false],
      ["QueueName", false]
    ])
    await run(SqsOperator.create(request, { ...options, queues: "use" }))
    await run(SqsOperator.create(request, options))
    const after = await run(SqsOperator.verify(request, options))
    expect(after.filter(({ isGood }) => !isGood)).toEqual([])
    expect(after.map(({ attribute }) => attribute)).toContain("RedrivePolicy")
  })

  test("that do not fit are told with what to do", async () => {
    const queue = queueName("unfit")
    await run(SqsOperator.create({ queue, retry: { maxRetries: 1 } }, options))
    const findings = await run(
      SqsOperator.verify({ queue, retry: { maxRetries: 20 }, functionTimeout: "5 seconds" }, options)
    )
    const bad = findings.filter(({ isGood }) => !isGood)
    expect(bad.map(({ attribute, remedy }) => [attribute, remedy.split(/,| on the existing/)[0]])).toEqual([
      ["VisibilityTimeout", "Raise VisibilityTimeout to 5 or more; AWS asks for six times a function's time-out"],
      ["RedrivePolicy", "Set maxReceiveCount to 67"]
    ])
  })

  test("wrong options are errors of the configuration", async () => {
    expect(await run(Effect.flip(SqsOperator.verify({ queue: "q!" }, options)))).toMatchObject({ field: "queue" })
    expect(await run(Effect.flip(SqsOperator.create({ queue: "q" }, { url: "sqs://" })))).toMatchObject({
      field: "url"
    })
    const wrong = SqsOperator.verify({ queue: "q", retry: { maxRetries: -1 } }, options)
    await expect(run(wrong)).rejects.toThrow(RangeError)
  })
})

describe("move tasks", () => {
  test("dead letters come back as redriven ones, from attempt 1, and are given up again", async () => {
    const queue = queueName("moved")
    const attempts: Array<number> = []
    const letters = () =>
      on(options, (broker) =>
        Effect.map(Port.oldest(broker, `${queue}.dlq`, 10), (found) => found.map((one) => one.metadata))
      )
    await on(options, (broker) =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, {}, (message) => {
          attempts.push(message.attempts)
          throw new Error("no")
        })
        yield* broker.publish([outgoing(queue, "a")])
        yield* until("four runs", () => attempts.length === 4)
      })
    )
    expect((await letters()).map(({ redrives }) => redrives)).toEqual([0])
    await run(SqsOperator.startMove(`${queue}.dlq`, options, { rate: 100 }))
    await vi.waitFor(async () => {
      const [latest] = await run(SqsOperator.moves(`${queue}.dlq`, options))
      expect(latest).toMatchObject({ status: "COMPLETED", moved: 1 })
    }, 60_000)
    await on(options, () =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, {}, (message) => {
          attempts.push(message.attempts)
          throw new Error("again")
        })
        yield* until("four more runs", () => attempts.length === 8)
      })
    )
    expect(attempts).toEqual([1, 2, 3, 4, 1, 2, 3, 4])
    const [letter] = await letters()
    expect(letter).toMatchObject({ id: "a", redrives: 1, deadLetter: { attempts: 4, error: { message: "again" } } })
  })

  test("letters of several queues, or of none, are not moved to any of them: DeadLetters.redrive does it", async () => {
    const [one, two, letters] = ["one", "two", "letters"].map(queueName) as [string, string, string]
    const retry = RetryPolicy.make({ maxRetries: 0, deadLetter: letters })
    for (const queue of [one, two]) await run(SqsOperator.create({ queue, retry }, options))
    await on(options, (broker) => broker.publish([outgoing(letters, "a")]))
    const error = await run(Effect.flip(SqsOperator.startMove(letters, options)))
    expect(error).toMatchObject({
      reason: "Unsupported",
      detail: expect.stringContaining(`of ${one}, ${two},`) as string
    })
    expect(await run(SqsOperator.moves(letters, options))).toEqual([])
    await run(SqsOperator.startMove(letters, options, { to: two }))
    expect(await run(Effect.flip(SqsOperator.startMove(one, options)))).toMatchObject({
      reason: "Unsupported",
      remedy: "Use DeadLetters.redrive"
    })
  })

  test("a task is cancelled; what it has moved stays moved", async () => {
    const queue = queueName("cancelled")
    await run(SqsOperator.create({ queue }, options))
    await on(options, (broker) => broker.publish(["a", "b", "c"].map((id) => outgoing(`${queue}.dlq`, id))))
    expect(await run(SqsOperator.cancelMove(`${queue}.dlq`, options))).toBe(0)
    await run(SqsOperator.startMove(`${queue}.dlq`, options, { rate: 1 }))
    expect(await run(SqsOperator.cancelMove(`${queue}.dlq`, options))).toBeLessThan(3)
    await vi.waitFor(async () => {
      const [latest] = await run(SqsOperator.moves(`${queue}.dlq`, options))
      expect(latest?.status).toBe("CANCELLED")
    }, 60_000)
  })

  test("a queue that is not there, and a rate that SQS does not know, are errors", async () => {
    const error = await run(Effect.flip(SqsOperator.startMove(queueName("nothing"), options)))
    expect(error).toMatchObject({ reason: "QueueMissing" })
    await expect(run(SqsOperator.startMove("q", options, { rate: 501 }))).rejects.toThrow(RangeError)
  })
})
