/** Messages and answers of whoever means no good, or knows no better: they cost neither the process nor another message. */
import { Books } from "@requeue/conformance"
import { type Broker, BrokerError, Consumer, Failure } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { Readable } from "node:stream"
import { assert, test } from "vitest"
import { SqsOperator } from "../../src/index.ts"
import * as Receive from "../../src/internal/consume/receive.ts"
import { strict } from "./strict.ts"
import {
  consume,
  drain,
  ids,
  on,
  outgoing,
  publishAll,
  queueName,
  until,
  untilEmpty,
  urlOf,
  type Run
} from "../real/world.ts"

// All tests of this file run at once, each behind a proxy of its own.
const { another, behind, client, endpoint } = await strict()

/** A call without the SDK, which would lose an attribute of this name. The server checks no signature. */
const foreign = async (QueueUrl: string | undefined, body: string): Promise<void> => {
  const answer = await fetch(endpoint, {
    method: "POST",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": "AmazonSQS.SendMessage",
      authorization:
        "AWS4-HMAC-SHA256 Credential=x/20260101/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=x"
    },
    body: `{"QueueUrl":${JSON.stringify(QueueUrl)},"MessageBody":${JSON.stringify(body)},"MessageAttributes":{
      "__proto__":{"DataType":"String","StringValue":"x"},"tenant":{"DataType":"String","StringValue":"a"}}}`
  })
  assert.strictEqual(answer.status, 200)
}

test.concurrent("an attribute named __proto__, whose value the SDK loses: the message is handled, and so are the others", async () => {
  await using own = await another()
  const queue = queueName("proto")
  const [runs, headers]: [Array<Run>, Array<unknown>] = [[], []]
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(2))
      yield* Effect.promise(async () => foreign(await urlOf(behind, queue), '"evil"'))
      yield* consume(queue, runs, {}, (message) => Effect.sync(() => void headers.push(message.headers)))
      yield* until("three runs", () => runs.length === 3)
      yield* untilEmpty(behind, queue)
    })
  )
  assert.deepInclude(headers, { tenant: "a" })
})

test.concurrent("operators list, group, redrive and purge dead letters with such an attribute", async () => {
  await using own = await another()
  const queue = queueName("letters")
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, `${queue}.dlq`, ids(1))
      yield* publishAll(broker, queue, ids(1))
      yield* Effect.promise(async () => foreign(await urlOf(behind, `${queue}.dlq`), '"evil"'))
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      assert.lengthOf(yield* letters.list(), 2)
      assert.isAbove((yield* letters.group()).length, 0)
      yield* letters.redrive({ to: queue, create: true })
      yield* untilEmpty(behind, `${queue}.dlq`)
      assert.strictEqual(
        yield* DeadLetters.make(queue).pipe(Effect.flatMap((all) => all.purge({ all: true, force: queue }))),
        3
      )
    })
  )
})

/** Errors as no SQS would tell them. */
const refusals = [{}, 5, ["a"], true, null].map((message) =>
  JSON.stringify({ __type: "com.amazonaws.sqs#Oops", message })
)

test.concurrent.for([...refusals, '{"__type":"constructor"}', '{"__type":{}}', "[]", "null"])(
  "an error whose answer is %s, to each call once: each says so, and the consumer goes on",
  async (answer) => {
    await using own = await another()
    const queue = queueName("refusals")
    const { requestHandler } = client.config
    /** The kinds of calls that have failed; `undefined` before any may fail. */
    let failed: Set<string> | undefined
    const value: typeof requestHandler.handle = async (request, options) => {
      const action = String(request.headers["x-amz-target"]).replace("AmazonSQS.", "")
      if (failed?.has(action) !== false) return requestHandler.handle(request, options)
      failed.add(action)
      const body = Readable.from([Buffer.from(answer)])
      return { response: { statusCode: 400, headers: {}, body } } as never // what the SDK reads of it
    }
    const handler: typeof requestHandler = Object.create(requestHandler, {
      handle: { value },
      destroy: { value: () => {} }
    })
    const runs: Array<Run> = []
    await on({ url: own.url, requestHandler: handler }, (broker) =>
      Effect.gen(function* () {
        const consumer = yield* consume(queue, runs, { prefetch: 0 })
        yield* broker.publish([outgoing(queue, "m1")])
        yield* until("a run", () => runs.length === 1)
        failed = new Set()
        const error = yield* Effect.flip(broker.publish([outgoing(queue, "m2")]))
        assert.instanceOf(error, BrokerError.BrokerError)
        yield* broker.publish([outgoing(queue, "m3")])
        yield* until("two runs", () => runs.length === 2)
        yield* untilEmpty(behind, queue)
        yield* until("all is well", () => consumer.health().state === "running")
      })
    )
    assert.includeMembers([...(failed ?? [])], ["SendMessageBatch", "ReceiveMessage", "DeleteMessageBatch"])
  }
)

test.concurrent.for<[action: string, answer: string]>([
  ["GetQueueUrl", "{}"],
  ["GetQueueUrl", '{"QueueUrl":5}'],
  ["GetQueueAttributes", "{}"],
  ["GetQueueAttributes", '{"Attributes":["a"]}'],
  ["GetQueueAttributes", '{"Attributes":{"QueueArn":{},"RedrivePolicy":7}}'],
  ["ListDeadLetterSourceQueues", '{"queueUrls":[null,5]}'],
  ["CreateQueue", '{"QueueUrl":[]}']
])("%s is answered with %s: what cannot be done is an error that says why", async ([action, answer]) => {
  await using own = await another()
  const queue = queueName("odd")
  if (action !== "CreateQueue")
    for (const name of [queue, `${queue}-dlq`]) await behind.createQueue({ QueueName: name })
  own.rewrite({ action, times: 100 }, () => answer)
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      const calls: ReadonlyArray<Effect.Effect<unknown, unknown, Broker.Broker | Scope.Scope>> = [
        Consumer.start(queue, {}, () => {}),
        broker.admin.counts(queue),
        SqsOperator.startMove(queue, { url: own.url })
      ]
      for (const call of calls) {
        const exit = yield* Effect.exit(call)
        if (Exit.isSuccess(exit)) {
          assert.notInclude(Object.values(Object(exit.value)), Number.NaN)
          continue
        }
        const error = Cause.squash(exit.cause)
        assert.instanceOf(error, BrokerError.BrokerError)
        if (answer === "{}" && action === "GetQueueUrl") assert.match(String(error), /answered no QueueUrl.*proxy/)
      }
    })
  )
})

test("a poll goes on when what prepares for its messages dies", async () => {
  const told: Array<string> = []
  const receive = Receive.make({
    client: { polls: () => async () => ({ $metadata: {}, Messages: [{ MessageId: "a" }] }) },
    queue: "q",
    fifo: false,
    url: () => "u",
    settings: { waitTime: 1000, visibilityTimeout: 1000 },
    elapsed: () => 0,
    sources: { knows: () => false, learn: () => Effect.die(new Error("it died")) },
    run: Effect.runPromise
  })
  await new Promise<void>((resolve) => {
    const end = (what: string) => {
      told.push(what)
      resolve()
    }
    receive(1, { received: () => end("received"), failed: ({ detail }) => end(detail) })
  })
  assert.deepStrictEqual(told, ["Error: it died"])
})

test.concurrent("a header named __proto__ travels like any other", async () => {
  await using own = await another()
  const queue = queueName("travels")
  const given = JSON.parse('{"__proto__":"x","ok":"y"}') as Record<string, string> // Both values are text.
  const seen: Array<Readonly<Record<string, string>>> = []
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* consume(queue, [], {}, (message) =>
        Effect.suspend(() => (seen.push(message.headers) === 1 ? Effect.fail(new Error("again")) : Effect.void))
      )
      yield* broker.publish([outgoing(queue, "m1", { headers: given })])
      yield* until("two runs", () => seen.length === 2)
    })
  )
  for (const headers of seen) {
    assert.deepStrictEqual([headers["ok"], Object.getOwnPropertyDescriptor(headers, "__proto__")?.value], ["y", "x"])
  }
})

test.concurrent("a dead letter that is stored, and whose answer is a login page: its fate is unknown, and none is lost", async () => {
  await using own = await another()
  const queue = queueName("letter")
  const books = Books.make(ids(1))
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      own.rewrite({ action: "SendMessageBatch", queue: `${queue}-dlq` }, () => "<html>no such page</html>")
      yield* consume(queue, [], { onEvent: books.onEvent }, () =>
        Effect.fail(new Failure.PermanentError({ message: "never" }))
      )
      yield* publishAll(broker, queue, books.published)
      yield* Books.untilEnded(books)
      yield* untilEmpty(behind, queue)
    })
  )
  const failures = books.events.filter((event) => event._tag === "SettleFailed")
  assert.deepStrictEqual(
    failures.map(({ error }) => error instanceof BrokerError.BrokerError && error.reason),
    ["ConnectionLost"]
  )
  assert.lengthOf(await drain(behind, `${queue}.dlq`), 2)
})

test.concurrent("acknowledgements whose answer is of nothing: all messages end, and the consumer too", async () => {
  await using own = await another()
  const queue = queueName("nothing")
  const runs: Array<Run> = []
  await on({ url: own.url }, (broker) =>
    Effect.gen(function* () {
      yield* publishAll(broker, queue, ids(8))
      // The first asks whether it may delete.
      const fault = own.rewrite({ action: "DeleteMessageBatch", times: 2 }, () => '{"Failed":[null],"Successful":null}')
      const consumer = yield* consume(queue, runs, { concurrency: 2, prefetch: 0 })
      yield* untilEmpty(behind, queue)
      assert.strictEqual(fault.left(), 0)
      yield* until("no message in progress", () => consumer.stats().inProgress === 0)
      assert.isBelow((yield* consumer.drain("3 seconds")).elapsed, 3000)
    })
  )
  assert.strictEqual(runs.length, 8)
})
