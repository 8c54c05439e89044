/** Notifications of SNS, as a topic delivers them: fauxqs has topics as well. */
import { Codec, Consumer, type Handler, QueueDefinition, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as EnvelopeCodec from "@requeue/adapter-sqs/EnvelopeCodec"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { SqsLambda } from "../../src/lambda.ts"
import { context, mapping } from "./mapping.ts"
import { strict } from "./strict.ts"
import { no, on, queueName, until, urlOf } from "../real/world.ts"

const { behind, client, endpoint, url } = await strict()

/** A call of SNS, which is a form. https://docs.aws.amazon.com/sns/latest/api/CommonParameters.html */
const sns = async (form: Readonly<Record<string, string>>): Promise<string> => {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: { authorization: "AWS4-HMAC-SHA256 Credential=test/20240101/eu-west-1/sns/aws4_request" },
    body: new URLSearchParams({ Version: "2010-03-31", ...form })
  })
  const answer = await response.text()
  assert.isTrue(response.ok, answer)
  return answer
}

/** A topic that delivers to a queue. */
const topicFor = async (queue: string, RawMessageDelivery: "true" | "false"): Promise<string> => {
  const answer = await sns({ Action: "CreateTopic", Name: queueName("topic") })
  const TopicArn = /<TopicArn>(.+)<\/TopicArn>/.exec(answer)![1]!
  const QueueUrl = await urlOf(behind, queue)
  const { Attributes } = await behind.getQueueAttributes({ QueueUrl, AttributeNames: ["QueueArn"] })
  await sns({
    Action: "Subscribe",
    TopicArn,
    Protocol: "sqs",
    Endpoint: Attributes!.QueueArn!,
    "Attributes.entry.1.key": "RawMessageDelivery",
    "Attributes.entry.1.value": RawMessageDelivery
  })
  return TopicArn
}

const publish = (TopicArn: string, Message: string) =>
  sns({
    Action: "Publish",
    TopicArn,
    Message,
    Subject: "an order",
    "MessageAttributes.entry.1.Name": "tenant",
    "MessageAttributes.entry.1.Value.DataType": "String",
    "MessageAttributes.entry.1.Value.StringValue": "a"
  })

const retry = RetryPolicy.make({ maxRetries: 1 })

const definition = (name: string) => QueueDefinition.make<unknown>(name, { codec: EnvelopeCodec.sns(Codec.json) })

const shown = ({ attempts, body, headers }: Handler.Received<unknown>) => [
  attempts,
  body,
  headers["tenant"],
  headers["x-amz-sns-subject"],
  headers["x-amz-sns-topic-arn"]
]

test.each(["true", "false"] as const)(
  "of a topic whose delivery is raw (%s), at each attempt and redriven",
  async (raw) => {
    const queue = queueName("subscribed")
    const seen: Array<unknown> = []
    let topic = ""
    let isGood = false
    // Each retry is a copy.
    await on({ url, inFlightLimit: 0 }, () =>
      Effect.gen(function* () {
        yield* Consumer.start(definition(queue), { retry, retryDelay: 1000 }, (message) => {
          seen.push(shown(message))
          return isGood ? Effect.void : no
        })
        topic = yield* Effect.promise(() => topicFor(queue, raw))
        yield* Effect.promise(() => publish(topic, '{"total":9.5}'))
        const letters = yield* DeadLetters.make(`${queue}.dlq`)
        yield* until("the dead letter", async () => (await Effect.runPromise(letters.list())).length === 1)
        isGood = true
        yield* letters.redrive()
        yield* until("the redriven", () => seen.length === 3)
      })
    )
    const facts = raw === "true" ? ["a", undefined, undefined] : ["a", "an order", topic]
    assert.deepStrictEqual(
      seen,
      [1, 2, 1].map((attempts) => [attempts, { total: 9.5 }, ...facts])
    )
  }
)

test("in a function on Lambda", async () => {
  const queue = queueName("function")
  const seen: Array<unknown> = []
  await on({ url }, () => Effect.scoped(Consumer.start(queue, { retry }, () => {})))
  const topic = await topicFor(queue, "false")
  await publish(topic, '{"total":9.5}')
  const handler = SqsLambda.handler(definition(queue), { retry, sqs: { url, queues: "use" } }, async (message) => {
    seen.push(shown(message))
  })
  const { apply, event } = mapping(client, (await urlOf(client, queue))!)
  const one = await event()
  await apply(one, await handler(one, context()))
  assert.deepStrictEqual(seen, [[1, { total: 9.5 }, "a", "an order", topic]])
})
