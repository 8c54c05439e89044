/** Large bodies in S3, on a real server: in Requeue's own format, and in that of AWS' extended clients. */
import { Codec, Consumer, EncodeError, type Event, Producer, QueueDefinition, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import { ClaimCheck } from "@requeue/codecs"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { SqsNative } from "../../src/index.ts"
import { ExtendedClient, S3Store } from "../../src/s3.ts"
import { bucketAt } from "./s3.ts"
import { each } from "./strict.ts"
import { drain, left, no, on, queueName, until, urlOf } from "../real/world.ts"

const servers = await each("fauxqs", "moto")

/** More than SQS takes. */
const large = "ü".repeat(1_000_000)
const retry = RetryPolicy.make({ maxRetries: 1 })

describe.each(servers)("$name", ({ behind, endpoint, url }) => {
  const opened = bucketAt(endpoint, queueName("bodies"))

  const codecs = [
    ["a ClaimCheck", (s3) => ClaimCheck.make(Codec.text, { store: S3Store.make({ ...s3, prefix: "in/" }) })],
    ["the extended client's format", (s3) => ExtendedClient.make(Codec.text, { ...s3, prefix: "in/" })]
  ] satisfies ReadonlyArray<readonly [string, (s3: S3Store.Options) => Codec.Codec<string>]>

  describe.each(codecs)("by %s", (_, make) => {
    const queueOf = async (base: string) => {
      const bucket = await opened
      const codec = make({ client: bucket.client, bucket: bucket.name })
      return { bucket, queue: QueueDefinition.make(queueName(base), { codec }) }
    }

    test("a large body is there at each attempt, by copies as well, and after a redrive; a small one is not stored", async () => {
      const { bucket, queue } = await queueOf("large")
      const before = (await bucket.keys()).length
      const seen: Array<unknown> = []
      let isGood = false
      // Each retry is a copy.
      await on({ url, inFlightLimit: 0 }, () =>
        Effect.gen(function* () {
          yield* Consumer.start(queue, { retry, retryDelay: 1000 }, ({ attempts, body, headers }) => {
            if (body === "small") return void seen.push(body)
            seen.push([attempts, body === large, headers])
            return isGood ? Effect.void : no
          })
          const producer = yield* Producer.make(queue)
          yield* producer.sendBatch([{ body: large, headers: { tenant: "a" } }, { body: "small" }])
          const letters = yield* DeadLetters.make(`${queue.name}.dlq`)
          yield* until("the dead letter", async () => (await Effect.runPromise(letters.list())).length === 1)
          isGood = true
          yield* letters.redrive()
          yield* until("the redriven", () => seen.length === 4)
        })
      )
      const headers = { "content-type": "text/plain; charset=utf-8", tenant: "a" }
      assert.sameDeepMembers(seen, ["small", ...[1, 2, 1].map((attempts) => [attempts, true, headers])])
      const keys = await bucket.keys()
      assert.strictEqual(keys.length - before, 1)
      assert.match(keys.at(-1)!, /^in\/[-0-9a-f]{36}$/)
    })

    test("a body that S3 refuses, or that it cannot give now, is asked for again, as the policy says", async () => {
      const { bucket, queue } = await queueOf("denied")
      const events: Array<Event.Event> = []
      const seen: Array<number> = []
      const told = (tag: string) => events.filter(({ _tag }) => _tag === tag)
      await on({ url }, () =>
        Effect.gen(function* () {
          const producer = yield* Producer.make(queue)
          yield* producer.send(large)
          bucket.refuse("GET", [403, "AccessDenied"], [503, "SlowDown"], undefined, [404, "NoSuchBucket"])
          const options = {
            retry: RetryPolicy.make({ maxRetries: 4 }),
            onEvent: (event: Event.Event) => void events.push(event)
          }
          yield* Consumer.start(queue, options, ({ attempts }) => void seen.push(attempts))
          yield* until("its run", () => seen.length === 1)
          assert.deepStrictEqual(seen, [5])
          const errors = told("AttemptFailed").map(
            (event) => "error" in event && `${event.error?.name}: ${event.error?.message}`
          )
          const words = ["AccessDenied", "SlowDown", "", "NoSuchBucket"]
          assert.lengthOf(errors, 4)
          for (const [at, word] of words.entries())
            assert.match(String(errors[at]), new RegExp(`^StoreError: .*s3://.*${word}`))
        })
      )
    })

    test("a lost body is a dead letter at once, which names bucket and key", async () => {
      const { bucket, queue } = await queueOf("gone")
      const events: Array<Event.Event> = []
      await on({ url }, () =>
        Effect.gen(function* () {
          const producer = yield* Producer.make(queue)
          const before = yield* Effect.promise(bucket.keys)
          yield* producer.send(large)
          const [Key = ""] = (yield* Effect.promise(bucket.keys)).filter((one) => !before.includes(one))
          yield* Effect.promise(() => bucket.behind.deleteObject({ Bucket: bucket.name, Key }))
          yield* Consumer.start(queue, { onEvent: (event) => void events.push(event) }, () => {})
          yield* until("its end", () => events.some(({ _tag }) => _tag === "DeadLettered"))
          const letter = events.find((event) => event._tag === "DeadLettered")!
          assert.strictEqual(letter.reason, "undecodable")
          assert.strictEqual(letter.error.name, "LostBodyError")
          assert.include(letter.error.message, `s3://${bucket.name}/${Key}`)
        })
      )
    })

    test("an upload that fails fails its send, and nothing is published", async () => {
      const { bucket, queue } = await queueOf("refused")
      bucket.refuse("PUT", [403, "AccessDenied"])
      await on({ url }, () =>
        Effect.gen(function* () {
          const producer = yield* Producer.make(queue)
          yield* producer.send("small")
          const error = yield* Effect.flip(producer.send(large))
          assert.instanceOf(error, EncodeError.EncodeError)
          assert.instanceOf(error.cause, ClaimCheck.StoreError)
          assert.match(error.message, new RegExp(`put in s3://${bucket.name}: .*AccessDenied`))
        })
      )
      assert.strictEqual(await left(behind, queue.name), 1)
    })
  })

  describe("AWS' extended clients", () => {
    test.each([
      [false, "ExtendedPayloadSize"],
      [true, "SQSLargePayloadSize"]
    ])("find what they expect (legacyAttribute: %s)", async (legacyAttribute, name) => {
      const { client, name: bucket, behind: s3 } = await opened
      const codec = ExtendedClient.make(Codec.text, { client, bucket, legacyAttribute })
      const queue = QueueDefinition.make(queueName("written"), { codec })
      const native = SqsNative.make({ attributes: { total: { type: "Number", value: "9.5" } } })
      await on({ url }, () =>
        Effect.flatMap(Producer.make(queue), (producer) => producer.send(large, { native, headers: { tenant: "a" } }))
      )
      const [message] = await drain(behind, queue.name)
      const { [name]: size, tenant, total } = message!.MessageAttributes!
      assert.deepInclude(size, { DataType: "Number", StringValue: "2000000" })
      assert.deepInclude(total, { DataType: "Number", StringValue: "9.5" })
      assert.deepInclude(tenant, { DataType: "String", StringValue: "a" })
      const [type, pointer] = JSON.parse(message!.Body!)
      assert.strictEqual(type, "software.amazon.payloadoffloading.PayloadS3Pointer")
      assert.sameMembers(Object.keys(pointer), ["s3BucketName", "s3Key"])
      const { Body } = await s3.getObject({ Bucket: pointer.s3BucketName, Key: pointer.s3Key })
      assert.strictEqual(await Body!.transformToString(), large)
    })

    test.each([
      ["software.amazon.payloadoffloading.PayloadS3Pointer", "ExtendedPayloadSize"],
      ["com.amazon.sqs.javamessaging.MessageS3Pointer", "SQSLargePayloadSize"]
    ])("are read: %s with %s", async (type, attribute) => {
      const { behind: s3, client, name: bucket } = await opened
      const queue = QueueDefinition.make(queueName("read"), {
        codec: ExtendedClient.make(Codec.text, { client, bucket })
      })
      const seen: Array<unknown> = []
      const Key = queueName("theirs")
      await s3.putObject({ Bucket: bucket, Key, Body: large })
      await on({ url }, () =>
        Effect.gen(function* () {
          yield* Consumer.start(queue, {}, ({ body, headers }) => void seen.push([body === large, headers]))
          const QueueUrl = yield* Effect.promise(() => urlOf(behind, queue.name))
          const MessageBody = JSON.stringify([type, { s3BucketName: bucket, s3Key: Key }])
          const size = { DataType: "Number", StringValue: "2000000" }
          const tenant = { DataType: "String", StringValue: "a" }
          const MessageAttributes = { [attribute]: size, tenant }
          yield* Effect.promise(() => behind.sendMessage({ QueueUrl, MessageBody, MessageAttributes }))
          yield* until("its run", () => seen.length === 1)
        })
      )
      assert.deepStrictEqual(seen, [[true, { tenant: "a" }]])
    })
  })
})
