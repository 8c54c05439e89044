/** Pointers of AWS' extended clients, and what is none, without a server. */
import { Codec } from "@requeue/core"
import { ClaimCheck } from "@requeue/codecs"
import * as EnvelopeCodec from "@requeue/adapter-sqs/EnvelopeCodec"
import * as fc from "fast-check"
import { assert, test } from "vitest"
import { ExtendedClient, S3Store } from "../src/s3.ts"

const asked: Array<string> = []

/** S3 with an object under every key. */
const client: S3Store.Client = {
  putObject: async () => {},
  getObject: async ({ Bucket, Key }) => {
    asked.push(`${Bucket}/${Key}`)
    return { Body: { transformToByteArray: async () => new Uint8Array([1]) } }
  }
}

const codec = ExtendedClient.make(Codec.bytes, { client, bucket: "own", readable: ["former"] })
const marked = { ExtendedPayloadSize: "9" }
const type = "software.amazon.payloadoffloading.PayloadS3Pointer"

const read = async (json: string): Promise<unknown> => {
  try {
    return await codec.decode(new TextEncoder().encode(json), marked)
  } catch (error) {
    return error
  }
}

const pointer = (s3BucketName: unknown, s3Key: unknown) => JSON.stringify([type, { s3BucketName, s3Key }])

test("a pointer leads to the buckets that may be read, and to no other", async () => {
  await read(pointer("own", "a/b c"))
  await read(pointer("former", "x"))
  assert.deepStrictEqual(asked.splice(0), ["own/a/b c", "former/x"])
  const error = await read(pointer("foreign", "x"))
  assert.instanceOf(error, ClaimCheck.StoreError)
  assert.isTrue(error.permanent)
  assert.include(error.message, "the pointer leads to s3://foreign/x, and only own, former may be read")
  assert.isEmpty(asked)
})

test("a pointer in a notification of SNS is followed, as AWS' extended client for SNS publishes it", async () => {
  const notification = {
    Type: "Notification",
    MessageId: "n1",
    TopicArn: "arn:aws:sns:eu-west-1:111122223333:orders",
    Message: pointer("own", "x"),
    MessageAttributes: { ExtendedPayloadSize: { Type: "Number", Value: "300000" } }
  }
  const opened = await Codec.decodeMessage(EnvelopeCodec.sns(codec), Codec.json.encode(notification), {})
  assert.deepStrictEqual(asked.splice(0), ["own/x"])
  assert.deepStrictEqual([...opened.body], [1])
  assert.notProperty(opened.headers, "ExtendedPayloadSize")
})

test("what is no pointer is told as that, whatever it is", () => {
  const at = fc.oneof(fc.jsonValue(), fc.record({ s3BucketName: fc.jsonValue(), s3Key: fc.jsonValue() }))
  const list = fc.tuple(fc.oneof(fc.constant(type), fc.jsonValue()), at)
  return fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.json(),
        fc.string(),
        list.map((json) => JSON.stringify(json))
      ),
      async (json) => {
        const error = await read(json)
        assert.isTrue(error instanceof ClaimCheck.InvalidPointerError || error instanceof ClaimCheck.StoreError, json)
        assert.isTrue(Reflect.get(Object(error), "permanent") !== false)
        assert.isEmpty(asked)
      }
    )
  )
})

test.each([{}, { client }, { bucket: "b" }, { client: {}, bucket: "b" }, { client, bucket: "b", threshold: -1 }])(
  "the options %j are refused",
  (options) => {
    const wrong = options as ExtendedClient.Options // on purpose
    assert.throws(() => ExtendedClient.make(Codec.text, wrong), RangeError)
  }
)
