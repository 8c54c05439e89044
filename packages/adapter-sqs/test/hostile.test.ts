/** Messages and answers of whoever means no good, or knows no better: they cost neither the process nor another message. */
import { Books } from "@requeue/conformance"
import { BrokerError, DeadLetters, Failure } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
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
} from "./world.ts"

// All tests of this file run at once, each behind a proxy of its own.
const { another, behind, endpoint } = await strict()

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
      yield* letters.redrive({ to: queue })
      yield* untilEmpty(behind, `${queue}.dlq`)
      assert.strictEqual(yield* DeadLetters.make(queue).pipe(Effect.flatMap((all) => all.purge({ all: true }))), 3)
    })
  )
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
