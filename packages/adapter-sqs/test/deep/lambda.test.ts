/** A function on Lambda, with the event source mapping played by the tests, on a real queue. */
import type { SQS } from "@aws-sdk/client-sqs"
import { Backoff, type Event, Failure, type Handler, RetryPolicy } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { setTimeout as sleep } from "node:timers/promises"
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest"
import * as Queues from "../../src/internal/declare/declare.ts"
import { SqsOptions } from "../../src/index.ts"
import { SqsLambda } from "../../src/lambda.ts"
import { context, type Mapping, mapping } from "./mapping.ts"
import { measured } from "./lateness.ts"
import { strict } from "./strict.ts"
import { queueName } from "../real/world.ts"

const { behind, client, proxy, url } = await strict()

afterEach(() => {
  proxy.clear()
  proxy.deny([])
})

interface World extends Mapping {
  readonly queue: string
  readonly letters: string
  readonly send: (...bodies: ReadonlyArray<string>) => Promise<void>
  readonly counts: (
    name?: string
  ) => Promise<{ readonly ready: number; readonly hidden: number; readonly delayed: number }>
  readonly deadLetters: () => Promise<ReadonlyArray<Metadata.Metadata>>
}

const urlOf = async (sqs: SQS, name: string): Promise<string> => (await sqs.getQueueUrl({ QueueName: name })).QueueUrl!

/** A queue and its dead-letter queue, as an operator would have made them. */
const made = async (base: string, visibilityTimeout = 30_000): Promise<World> => {
  const queue = queueName(base)
  const settings = Result.getOrThrow(SqsOptions.decode({ url, visibilityTimeout }))
  const request = { queue, retry: RetryPolicy.make({ maxRetries: 20 }), deadLetterQueues: [`${queue}.dlq`] }
  await Effect.runPromise(Queues.make(behind, settings).ensure(request))
  const letters = `${queue}-dlq`
  const at = await urlOf(behind, queue)
  return {
    ...mapping(client, await urlOf(client, queue)),
    queue,
    letters,
    send: async (...bodies) => {
      const Entries = bodies.map((MessageBody, index) => ({ Id: String(index), MessageBody }))
      for (let from = 0; from < Entries.length; from += 10) {
        await behind.sendMessageBatch({ QueueUrl: at, Entries: Entries.slice(from, from + 10) })
      }
    },
    counts: async (name = queue) => {
      const QueueUrl = await urlOf(behind, name)
      const { Attributes = {} } = await behind.getQueueAttributes({ QueueUrl, AttributeNames: ["All"] })
      return {
        ready: Number(Attributes.ApproximateNumberOfMessages),
        hidden: Number(Attributes.ApproximateNumberOfMessagesNotVisible),
        delayed: Number(Attributes.ApproximateNumberOfMessagesDelayed)
      }
    },
    deadLetters: async () => {
      const QueueUrl = await urlOf(behind, letters)
      const received = await behind.receiveMessage({
        QueueUrl,
        MaxNumberOfMessages: 10,
        MessageAttributeNames: ["All"]
      })
      return (received.Messages ?? []).map(
        ({ MessageAttributes = {} }) => Metadata.decode(MessageAttributes["requeue"]?.StringValue ?? "")!
      )
    }
  }
}

const json = (...values: ReadonlyArray<unknown>): ReadonlyArray<string> => values.map((value) => JSON.stringify(value))

/** A function of a single number that logs nothing. */
const quietly = (
  queue: string,
  options: SqsLambda.Options,
  handle: Handler.MessageHandler<number>
): SqsLambda.Handler => {
  const lambda = Effect.runSync(Scope.provide(SqsLambda.make(queue, options, handle), Scope.makeUnsafe()))
  return (event, given) =>
    Effect.runPromise(Effect.provideService(lambda(event, given), References.MinimumLogLevel, "None"))
}

/** Receives until something comes. */
const come = async ({ event }: World, within = 60_000): Promise<SqsLambda.SqsEvent> => {
  const end = Date.now() + within
  while (Date.now() < end) {
    const received = await event()
    if (received.Records.length > 0) return received
    await sleep(20)
  }
  throw new Error(`no message within ${within} ms`)
}

const failed = ({ batchItemFailures }: SqsLambda.SqsBatchResponse) =>
  batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)

const sqs = { url }

describe("what is done", () => {
  test("is deleted by the mapping; a function that is warm asks nothing of SQS", async () => {
    const world = await made("done")
    const seen = new Set<number>()
    const handler = SqsLambda.handler<number>(world.queue, { sqs }, (message) => void seen.add(message.body))
    await world.send(...json(1, 2, 3))
    await world.round(handler)
    await world.send(...json(4, 5))
    const event = await world.event()
    const before = proxy.calls()
    const answer = await handler(event, context())
    expect(proxy.calls()).toEqual(before)
    expect(answer).toEqual({ batchItemFailures: [] })
    await world.apply(event, answer)
    expect(seen).toEqual(new Set([1, 2, 3, 4, 5]))
    expect(await world.counts()).toEqual({ ready: 0, hidden: 0, delayed: 0 })
  })

  test("is not run again where the mapping did not hear of it", async () => {
    const world = await made("unheard")
    let runs = 0
    const handler = SqsLambda.handler(world.queue, { sqs }, () => void runs++)
    await world.send(...json(1))
    const event = await world.event()
    expect(await handler(event, context())).toEqual({ batchItemFailures: [] })
    expect(await handler(event, context())).toEqual({ batchItemFailures: [] })
    expect(runs).toBe(1)
  })

  test("an event without messages", async () => {
    const { queue } = await made("empty")
    const handler = SqsLambda.handler(queue, { sqs }, () => {})
    expect(await handler({ Records: [] }, context())).toEqual({ batchItemFailures: [] })
  })

  test("a handler may go on after its last message", async () => {
    const world = await made("after")
    let ended = false
    const handler = SqsLambda.batchHandler(world.queue, { sqs }, async (batch) => {
      batch.ackAll()
      await sleep(100)
      ended = true
    })
    await world.send(...json(1, 2))
    await world.round(handler)
    expect(ended).toBe(true)
  })
})

describe("what has failed", () => {
  test("comes again after its delay and not before, with its attempts counted", (runner) =>
    measured(runner, sqs, () =>
      Effect.promise(async () => {
        const world = await made("retry")
        const attempts: Array<number> = []
        let from = 0
        const handler = SqsLambda.handler(
          world.queue,
          { sqs, retry: { backoff: Backoff.constant("2 seconds") } },
          (message) => {
            attempts.push(message.attempts)
            if (message.body !== "bad" || message.attempts > 1) return
            from = Date.now()
            throw new Error("not yet")
          }
        )
        await world.send(...json("good", "bad"))
        const event = await world.event()
        const answer = await handler(event, context())
        const bad = event.Records.find(({ body }) => body === '"bad"')!
        expect(failed(answer)).toEqual([bad.messageId])
        await world.apply(event, answer)
        const again = await come(world)
        const at = Date.now()
        expect(again.Records.map(({ messageId }) => messageId)).toEqual([bad.messageId])
        expect(failed(await handler(again, context()))).toEqual([])
        expect(attempts).toEqual([1, 1, 2])
        return [{ what: "the retry", late: at - from - 2000, bound: 1500, from, at }]
      })
    ))

  test("is a dead letter with all that is known of it when its retries are used up, and done here", async () => {
    const world = await made("exhausted")
    const handler = SqsLambda.handler(world.queue, { sqs, retry: { maxRetries: 1 } }, () => {
      throw new TypeError("broken")
    })
    await world.send(...json(1))
    expect(await world.round(handler)).toBe(1)
    await world.apply(...(await answered(handler, await come(world))))
    expect(await world.counts()).toEqual({ ready: 0, hidden: 0, delayed: 0 })
    const [letter] = await world.deadLetters()
    expect(letter!.deadLetter).toMatchObject({
      queue: world.queue,
      attempts: 2,
      reason: "retries-exhausted",
      error: { name: "TypeError", message: "broken" }
    })
  })

  test("is judged one by one: permanent, undecodable, dropped, asked for", async () => {
    const world = await made("judged")
    const events: Array<Event.Event> = []
    const handler = SqsLambda.handler<string>(
      world.queue,
      { sqs, retry: { maxRetries: 3 }, concurrency: 5, onEvent: (event) => void events.push(event) },
      async (message) => {
        if (message.body === "permanent") throw new Failure.PermanentError({ message: "never" })
        if (message.body === "drop") throw new Failure.DropError({ message: "unwanted" })
        if (message.body === "ask") message.retry({ delay: "1 hour" })
      }
    )
    await world.send(...json("good", "permanent", "drop", "ask"), "{ no json")
    const event = await world.event()
    const answer = await handler(event, context())
    expect(failed(answer)).toEqual([event.Records.find(({ body }) => body === '"ask"')!.messageId])
    await world.apply(event, answer)
    expect(await world.counts()).toEqual({ ready: 0, hidden: 1, delayed: 0 })
    const reasons = (await world.deadLetters()).map(({ deadLetter }) => deadLetter!.reason)
    expect(reasons.toSorted()).toEqual(["permanent", "undecodable"])
    const ends = events.map(({ _tag }) => _tag).filter((tag) => tag !== "Received" && tag !== "AttemptFailed")
    expect(ends.toSorted()).toEqual(["DeadLettered", "DeadLettered", "Dropped", "RetryScheduled", "Succeeded"])
  })

  test("is given up when it is too old, or has come too often without a verdict", async () => {
    const world = await made("old")
    const none = SqsLambda.handler(
      world.queue,
      { sqs, retry: { maxAge: 0, backoff: Backoff.constant("1 second") } },
      () => {
        throw new Error("late")
      }
    )
    await world.send(...json(1))
    await world.round(none)
    await world.send(...json(2))
    // Three receives that no function answered.
    for (let count = 0; count < 3; count++) {
      const { Records } = await come(world)
      const QueueUrl = await urlOf(behind, world.queue)
      await behind.changeMessageVisibility({ QueueUrl, ReceiptHandle: Records[0]!.receiptHandle, VisibilityTimeout: 0 })
    }
    let runs = 0
    const counting = SqsLambda.handler(
      world.queue,
      { sqs, retry: { maxRetries: 2, maxDeliveries: 3 } },
      () => void runs++
    )
    await world.apply(...(await answered(counting, await come(world))))
    expect(runs).toBe(0)
    const letters = (await world.deadLetters()).map(({ deadLetter }) => deadLetter!)
    expect(letters.map(({ reason }) => reason)).toEqual(["too-old", "too-many-deliveries"])
  })

  test("and waits for longer than a visibility timeout can last is a copy, and done here", async () => {
    const world = await made("long")
    const handler = SqsLambda.handler(world.queue, { sqs }, (message) => message.retry({ delay: "13 hours" }))
    await world.send(...json(1))
    await world.round(handler)
    expect(await world.counts()).toEqual({ ready: 0, hidden: 0, delayed: 1 })
  })
})

describe("batches", () => {
  test("have all messages of the event, or as many as they may", async () => {
    const world = await made("batches")
    const sizes: Array<number> = []
    const handlerOf = (maxBatchSize?: number) =>
      SqsLambda.batchHandler(world.queue, { sqs, maxBatchSize }, (batch) => void sizes.push(batch.messages.length))
    await world.send(...json(1, 2, 3, 4, 5, 6, 7))
    await world.round(handlerOf())
    await world.send(...json(1, 2, 3, 4, 5, 6, 7))
    await world.round(handlerOf(3))
    expect(sizes).toEqual([7, 3, 3, 1])
  })

  test("answer for each message: the first call decides, the outcome for the rest", async () => {
    const world = await made("verdicts")
    const handler = SqsLambda.batchHandler<string>(world.queue, { sqs }, async ({ messages }) => {
      messages.find(({ body }) => body === "acked")!.ack()
      throw new Error("in the middle")
    })
    await world.send(...json("acked", "left", "other"))
    const event = await world.event()
    const expected = event.Records.filter(({ body }) => body !== '"acked"').map(({ messageId }) => messageId)
    expect(failed(await handler(event, context())).toSorted()).toEqual(expected.toSorted())
  })
})

describe("the end of the function", () => {
  test("comes before a handler does: what has begun is interrupted, all of it comes again at once", async () => {
    const world = await made("deadline")
    const begun: Array<unknown> = []
    let isAborted = false
    const options = { sqs, reserve: 10_000 }
    const handler = SqsLambda.handler(world.queue, options, (message, { signal }) => {
      begun.push(message.body)
      signal.addEventListener("abort", () => (isAborted = true))
      return new Promise(() => {})
    })
    await world.send(...json(1, 2, 3))
    const event = await world.event()
    const given = context(12_000)
    const answer = await handler(event, given)
    expect(given.getRemainingTimeInMillis()).toBeGreaterThan(0)
    expect(failed(answer)).toHaveLength(3)
    expect(begun).toHaveLength(1)
    expect(isAborted).toBe(true)
    expect(await world.counts()).toEqual({ ready: 3, hidden: 0, delayed: 0 })
  })

  test("an Effect that is interrupted runs its finalizers first", async () => {
    const world = await made("finalizers")
    const ended: Array<unknown> = []
    const handler = SqsLambda.handler(world.queue, { sqs, reserve: 10_000 }, (message) =>
      Effect.onInterrupt(Effect.never, () => Effect.sync(() => ended.push(message.body)))
    )
    await world.send(...json(1))
    await handler(await world.event(), context(12_000))
    expect(ended).toEqual([1])
  })

  test("an answer from SQS that never comes does not keep the function's own", async () => {
    const world = await made("silence")
    const handler = SqsLambda.handler(world.queue, { sqs, reserve: 5000 }, () => {
      throw new Error("no")
    })
    await world.send(...json(1))
    await world.round(handler)
    const event = await come(world)
    proxy.lose({ action: "ChangeMessageVisibilityBatch", times: 10 })
    const given = context(7000)
    expect(failed(await handler(event, given))).toEqual([event.Records[0]!.messageId])
    expect(given.getRemainingTimeInMillis()).toBeGreaterThan(0)
  })

  test.each([
    [800, undefined],
    [800, 0],
    [1400, undefined]
  ])(
    "with %d ms left, and a reserve of %s, nothing is begun or counted, and all comes again at once",
    async (left, reserve) => {
      const world = await made("no-time")
      const runs: Array<number> = []
      const handler = SqsLambda.handler(world.queue, { sqs, reserve, retry: { maxRetries: 0 } }, (message) => {
        runs.push(message.attempts)
      })
      await world.send(...json(1, 2))
      // Verifies the queues, which takes its time once.
      await handler({ Records: [] }, context())
      for (const _ of [1, 2]) {
        const event = await world.event()
        expect(failed(await handler(event, context(left)))).toHaveLength(event.Records.length)
        await vi.waitFor(async () => expect((await world.counts()).hidden).toBe(0))
      }
      expect(runs).toEqual([])
      while (runs.length < 2) if ((await world.round(handler)) === 0) await sleep(20)
      expect(runs).toEqual([1, 1])
      expect(await world.counts(world.letters)).toEqual({ ready: 0, hidden: 0, delayed: 0 })
    }
  )

  test("is counted for what had begun, and not for what had not: a handler that never ends is given up", async () => {
    const world = await made("hangs")
    const begun: Array<number> = []
    const options = { sqs, reserve: 10_000, retry: { maxRetries: 1, maxDeliveries: 2 } }
    const handler = SqsLambda.handler<string>(world.queue, options, (message) => {
      begun.push(message.attempts)
      return Effect.never
    })
    await world.send(...json("a", "b"))
    for (let round = 0; round < 10 && (await world.counts(world.letters)).ready < 2; round++) {
      const event = await world.event()
      await world.apply(event, await handler(event, context(11_000)))
    }
    expect(begun.toSorted((a, b) => a - b)).toEqual([1, 1, 2, 2])
    expect((await world.deadLetters()).map(({ deadLetter }) => deadLetter!.reason)).toEqual([
      "too-many-deliveries",
      "too-many-deliveries"
    ])
  })
})

describe("when SQS does not play along", () => {
  test.each<Partial<SqsOptions.Options>>([{ queues: "verify" }, { queues: "use" }])(
    "it gives no answer to the first call, with %o: the invocation fails before its time is over, and says why",
    async (options) => {
      const world = await made("verify")
      await world.send(...json(1))
      const event = await world.event()
      proxy.ignore({ times: 100 })
      const handler = SqsLambda.handler(world.queue, { sqs: { ...sqs, ...options } }, () => {})
      const given = context(2000)
      await expect(handler(event, given)).rejects.toMatchObject({
        reason: "Timeout",
        queue: world.queue,
        message: expect.stringContaining("VPC")
      })
      expect(given.getRemainingTimeInMillis()).toBeGreaterThan(0)
      proxy.clear()
      expect(await handler(event, context())).toEqual({ batchItemFailures: [] })
    }
  )

  test.each(["hang", "fail"])("deletes of the function itself %s: what comes again is named, in time", async (how) => {
    const world = await made("deletes")
    const options = { sqs, reportBatchItemFailures: false }
    const handler = SqsLambda.handler(world.queue, options, (message) => {
      if (message.body === "bad") throw new Error("no")
    })
    await world.send(...json("good", "bad"))
    const event = await world.event()
    const action = "DeleteMessageBatch"
    if (how === "hang") proxy.ignore({ action, times: 100 })
    else proxy.fail({ action, times: 100 }, "AccessDenied")
    const given = context(4000)
    const told = handler(event, given)
    await expect(told).rejects.toMatchObject({ messageIds: event.Records.map(({ messageId }) => messageId) })
    expect(given.getRemainingTimeInMillis()).toBeGreaterThan(0)
  })

  test("records that have one receipt handle: what is not run is named", async () => {
    const world = await made("handles")
    await world.send(...json(0))
    const [first] = (await world.event()).Records
    const records = Array.from({ length: 1000 }, (_, index) => ({
      ...first!,
      messageId: `m${index}`,
      body: String(index)
    }))
    const runs: Array<number> = []
    const handler = SqsLambda.handler<number>(world.queue, { sqs, concurrency: 10 }, async ({ body }) => {
      await sleep(1)
      runs.push(body)
    })
    const named = failed(await handler({ Records: records }, context()))
    expect(runs.length + named.length).toBeGreaterThanOrEqual(records.length)
    const done = new Set([...runs.map((body) => `m${body}`), ...named])
    expect(done.size).toBe(records.length)
  })

  test("entries of the delays fail: they are asked for again", async () => {
    const world = await made("entries")
    const handler = SqsLambda.handler(world.queue, { sqs, concurrency: 10 }, (message) =>
      message.retry({ delay: "1 hour" })
    )
    await world.send(...json(1, 2, 3, 4, 5))
    const event = await world.event()
    proxy.failEntries({ action: "ChangeMessageVisibilityBatch", times: 2 }, 3)
    expect(failed(await handler(event, context())).toSorted()).toEqual(
      event.Records.map(({ messageId }) => messageId).toSorted()
    )
    await world.apply(event, {
      batchItemFailures: event.Records.map(({ messageId }) => ({ itemIdentifier: messageId }))
    })
    expect(await world.counts()).toEqual({ ready: 0, hidden: 5, delayed: 0 })
  })

  test("no dead letter can be sent: the message comes again when its visibility ends, and not at once", async () => {
    const world = await made("denied")
    const events: Array<Event.Event> = []
    const options = { sqs, retry: { maxRetries: 0 }, onEvent: (event: Event.Event) => void events.push(event) }
    const handler = SqsLambda.handler(world.queue, options, () => {
      throw new Error("no")
    })
    await world.send(...json(1))
    const event = await world.event()
    proxy.deny(["SendMessage"])
    const answer = await handler(event, context())
    expect(failed(answer)).toEqual([event.Records[0]!.messageId])
    expect(await world.counts()).toEqual({ ready: 0, hidden: 1, delayed: 0 })
    expect(await world.counts(world.letters)).toEqual({ ready: 0, hidden: 0, delayed: 0 })
    expect(events.map(({ _tag }) => _tag)).toContain("SettleFailed")
  })

  test("a dead letter is too large for its queue: it is cut short until it fits", async () => {
    const world = await made("small")
    const QueueUrl = await urlOf(behind, world.letters)
    await behind.setQueueAttributes({ QueueUrl, Attributes: { MaximumMessageSize: "1024" } })
    const handler = SqsLambda.handler(world.queue, { sqs, retry: { maxRetries: 0 } }, () => {
      throw new Error("x".repeat(256))
    })
    await world.send(...json("m".repeat(700)))
    await world.round(handler)
    expect(await world.counts()).toEqual({ ready: 0, hidden: 0, delayed: 0 })
    expect(await world.deadLetters()).toMatchObject([{ truncation: "error-text", deadLetter: { queue: world.queue } }])
  })

  test("a queue of the policy is missing, or ends its leases before the function does", async () => {
    const world = await made("unfit")
    let runs = 0
    const run = () => void runs++
    await world.send(...json(1))
    const event = await world.event()
    const lost = SqsLambda.handler(world.queue, { sqs, retry: { deadLetter: "nowhere" } }, run)
    await expect(lost(event, context())).rejects.toMatchObject({ reason: "QueueMissing", queue: "nowhere" })
    const slow = SqsLambda.handler(world.queue, { sqs }, run)
    await expect(slow(event, context(31_000))).rejects.toMatchObject({
      reason: "QueueMismatch",
      detail: expect.stringContaining("VisibilityTimeout")
    })
    // Neither is remembered: the next invocation looks again.
    expect(await slow(event, context())).toEqual({ batchItemFailures: [] })
    expect(runs).toBe(1)
  })
})

test("without ReportBatchItemFailures: what is done is deleted here, and the invocation fails", async () => {
  const world = await made("whole")
  const options = { sqs, reportBatchItemFailures: false, retry: { backoff: Backoff.constant("1 hour") } }
  const handler = SqsLambda.handler(world.queue, options, (message) => {
    if (message.body === "bad") throw new Error("no")
  })
  await world.send(...json("good", "bad", "better"))
  const event = await world.event()
  const bad = event.Records.find(({ body }) => body === '"bad"')!
  await expect(handler(event, context())).rejects.toMatchObject({
    _tag: "MessagesNotDone",
    queue: world.queue,
    messageIds: [bad.messageId]
  })
  expect(await world.counts()).toEqual({ ready: 0, hidden: 1, delayed: 0 })
  await world.send(...json("good"))
  expect(await handler(await world.event(), context())).toEqual({ batchItemFailures: [] })
})

test("an Effect handler has the services of its program, and the function lives as long as its scope", async () => {
  class Sink extends Context.Service<Sink, { readonly put: (body: unknown) => void }>()("test/Sink") {}
  const world = await made("effect")
  const seen: Array<unknown> = []
  await world.send(...json("hello"))
  const event = await world.event()
  const program = Effect.gen(function* () {
    const lambda = yield* SqsLambda.make(world.queue, { sqs }, (message) =>
      Effect.map(Sink, ({ put }) => put(message.body))
    )
    return yield* lambda(event, context())
  })
  const answer = await Effect.runPromise(
    program.pipe(Effect.scoped, Effect.provideService(Sink, { put: (body) => void seen.push(body) }))
  )
  expect(answer).toEqual({ batchItemFailures: [] })
  expect(seen).toEqual(["hello"])
})

describe("is refused", () => {
  const long = { maxRetries: 24, backoff: Backoff.constant("10 hours") }
  test.each([
    ["an unknown option", () => SqsLambda.handler("q", { sqs, retries: 3 } as SqsLambda.Options, () => {}), /retries/],
    ["no handler", () => SqsLambda.handler("q", { sqs }, undefined as never), /handler must be a function/],
    ["a wrong reserve", () => SqsLambda.handler("q", { sqs, reserve: "2 minutes" }, () => {}), /reserve/],
    ["a wrong batch", () => SqsLambda.batchHandler("q", { sqs, maxBatchSize: 0 }, () => {}), /maxBatchSize/],
    ["no region", () => SqsLambda.handler("q", {}, () => {}), /sqs.url.*AWS_REGION/],
    ["a wrong option of SQS", () => SqsLambda.handler("q", { sqs: { url, pollers: 0 } }, () => {}), /pollers/],
    ["its own dead letters", () => SqsLambda.handler("q", { sqs, retry: { deadLetter: "q" } }, () => {}), /deadLetter/],
    ["a wrong name", () => SqsLambda.handler("q!", { sqs }, () => {}), /characters/],
    [
      "a policy that outlasts the queue",
      () => SqsLambda.handler("q", { sqs, retry: long }, () => {}),
      /^retention.*10d/
    ]
  ])("%s, when the function is loaded", (_, load, message) => {
    expect(load).toThrow(message)
  })

  test("an event of something else, and another queue's", async () => {
    const world = await made("foreign")
    const handler = SqsLambda.handler("other", { sqs }, () => {})
    await expect(handler({} as SqsLambda.SqsEvent, context())).rejects.toMatchObject({ field: "event.Records" })
    await world.send(...json(1))
    await expect(handler(await world.event(), context())).rejects.toMatchObject({
      field: "event.Records[0].eventSourceARN"
    })
  })

  test("a call without Lambda's context", async () => {
    const world = await made("bare")
    const handler = SqsLambda.handler(world.queue, { sqs }, () => {}) as (event: unknown) => Promise<unknown> // as plain JavaScript calls it
    await expect(handler({ Records: [] })).rejects.toMatchObject({ field: "context" })
  })

  test("not the region that Lambda names", () => {
    vi.stubEnv("AWS_REGION", "eu-west-1")
    onTestFinished(() => {
      vi.unstubAllEnvs()
    })
    expect(SqsLambda.handler("q", {}, () => {})).toBeTypeOf("function")
  })
})

test("the books balance: 200 messages, handlers that fail at random, and an SQS that fails now and then", async () => {
  const world = await made("books")
  const acked = new Set<number>()
  const dead = new Set<string>()
  const names = Array.from({ length: 200 }, (_, index) => index)
  const backoff = Backoff.exponential("1 second", { max: "2 seconds" })
  const handler = quietly(
    world.queue,
    {
      sqs,
      concurrency: 5,
      retry: { maxRetries: 2, backoff },
      onEvent: (event) => void (event._tag === "DeadLettered" && dead.add(event.id))
    },
    async ({ attempts, body }) => {
      await sleep(body % 7)
      if ((body * 31 + attempts * 17) % 3 === 0 || body % 20 === 0) throw new Error("no")
      acked.add(body)
    }
  )
  await world.send(...json(...names))
  proxy.failEntries({ action: "ChangeMessageVisibilityBatch", every: 3, times: 10 }, 2)
  proxy.failEntries({ action: "SendMessageBatch", every: 2, times: 5 }, 1)
  proxy.fail({ action: "ChangeMessageVisibilityBatch", every: 5, times: 5 })
  const end = Date.now() + 240_000
  while (acked.size + dead.size < names.length && Date.now() < end) {
    if ((await world.round(handler)) === 0) await sleep(100)
  }
  expect(acked.size + dead.size).toBe(names.length)
  expect(await world.counts()).toEqual({ ready: 0, hidden: 0, delayed: 0 })
  expect((await world.counts(world.letters)).ready).toBe(dead.size)
  expect(dead.size).toBeGreaterThanOrEqual(10)
})

/** An event and its answer. */
const answered = async (
  handler: SqsLambda.Handler,
  event: SqsLambda.SqsEvent
): Promise<[SqsLambda.SqsEvent, SqsLambda.SqsBatchResponse]> => [event, await handler(event, context())]
