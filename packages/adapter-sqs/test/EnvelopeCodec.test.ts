import { Codec } from "@requeue/core"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { gzipSync } from "node:zlib"
import { CompressedCodec } from "@requeue/codecs"
import * as EnvelopeCodec from "../src/EnvelopeCodec.ts"

const utf8 = (text: string) => new TextEncoder().encode(text)
const bytesOf = (json: unknown) => utf8(JSON.stringify(json))

const notification = (message: string, more: object = {}) => ({
  Type: "Notification",
  MessageId: "dc1e94d9-56c5-5e96-808d-cc7f68faa162",
  TopicArn: "arn:aws:sns:us-east-2:111122223333:ExampleTopic1",
  Message: message,
  Timestamp: "2021-02-16T21:41:19.978Z",
  SignatureVersion: "1",
  Signature:
    "FMG5tlZhJNHLHUXvZgtZzlk24FzVa7oX0T4P03neeXw8ZEXZx6z35j2FOTuNYShn2h0bKNC/zLTnMyIxEzmi2X1shOBWsJHkrW2xkR58ABZF",
  ...more
})

const event = (detail: unknown, more: object = {}) => ({
  version: "0",
  id: "17793124-05d4-b198-2fde-7ededc63b103",
  "detail-type": "Object Created",
  source: "aws.s3",
  account: "111122223333",
  time: "2021-11-12T00:00:00Z",
  region: "ca-central-1",
  resources: ["arn:aws:s3:::bucket"],
  detail,
  ...more
})

const snsFacts = {
  "x-amz-sns-message-id": "dc1e94d9-56c5-5e96-808d-cc7f68faa162",
  "x-amz-sns-topic-arn": "arn:aws:sns:us-east-2:111122223333:ExampleTopic1",
  "x-amz-sns-timestamp": "2021-02-16T21:41:19.978Z"
}

const eventFacts = {
  "x-amz-event-id": "17793124-05d4-b198-2fde-7ededc63b103",
  "x-amz-event-source": "aws.s3",
  "x-amz-event-detail-type": "Object Created",
  "x-amz-event-time": "2021-11-12T00:00:00Z",
  "x-amz-event-account": "111122223333",
  "x-amz-event-region": "ca-central-1",
  "x-amz-event-resources": '["arn:aws:s3:::bucket"]'
}

const open = <A>(codec: Codec.Codec<A>, json: unknown, headers = {}) =>
  Codec.decodeMessage(codec, bytesOf(json), headers)

describe("sns", () => {
  const json = EnvelopeCodec.sns(Codec.json)
  const text = EnvelopeCodec.sns(Codec.text)

  it("wrapped, and unwrapped, any message with any attributes is as it was", () =>
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme" }),
        fc.dictionary(fc.string(), fc.string({ unit: "grapheme" })),
        (body, attributes) => {
          const { requeue: _, ...expected } = attributes
          const MessageAttributes = Object.fromEntries(
            Object.entries(attributes).map(([name, Value]) => [name, { Type: "String", Value }])
          )
          const opened = open(text, notification(body, { MessageAttributes }))
          assert.deepStrictEqual(opened, { body, headers: { ...expected, ...snsFacts } })
        }
      )
    ))

  it("keeps what the notification says, and attributes of all types as text", () => {
    const more = {
      Subject: "TestSubject",
      SequenceNumber: "10000000000000003000",
      MessageAttributes: {
        tenant: { Type: "String", Value: "a" },
        total: { Type: "Number", Value: "9.5" },
        names: { Type: "String.Array", Value: '["a"]' },
        raw: { Type: "Binary", Value: "AQI=" },
        requeue: { Type: "String", Value: "forged" },
        "x-amz-sns-topic-arn": { Type: "String", Value: "forged" },
        "message-group-id": { Type: "String", Value: "forged" }
      }
    }
    assert.deepStrictEqual(open(json, notification('{"a":1}', more), { "message-group-id": "g", "x-own": "b" }), {
      body: { a: 1 },
      headers: {
        ...snsFacts,
        "x-amz-sns-subject": "TestSubject",
        "x-amz-sns-sequence-number": "10000000000000003000",
        "message-group-id": "g",
        "x-own": "b",
        tenant: "a",
        total: "9.5",
        names: '["a"]',
        raw: "AQI="
      }
    })
    assert.deepStrictEqual(json.decode(bytesOf(notification('{"a":1}', more)), {}), { a: 1 })
  })

  it.each([
    ["an event of S3", { Records: [{ eventSource: "aws:s3", s3: { object: { key: "a" } } }] }],
    ["another notification", notification("inner")]
  ])("leaves %s inside as it is", (_, inner) =>
    assert.deepInclude(open(json, notification(JSON.stringify(inner))), { body: inner })
  )

  it("nests as services do", () => {
    const twice = EnvelopeCodec.sns(EnvelopeCodec.sns(Codec.text))
    const outer = notification(JSON.stringify(notification("a", { MessageId: "inner" })), { Subject: "outer" })
    const headers = { ...snsFacts, "x-amz-sns-message-id": "inner", "x-amz-sns-subject": "outer" }
    assert.deepStrictEqual(open(twice, outer), { body: "a", headers })
    const both = EnvelopeCodec.sns(EnvelopeCodec.eventBridge(Codec.json))
    assert.deepStrictEqual(open(both, notification(JSON.stringify(event({ a: 1 })))), {
      body: { a: 1 },
      headers: { ...snsFacts, ...eventFacts }
    })
  })

  it("may be compressed, or around what is", async () => {
    const outside = CompressedCodec.gzip(text)
    const [zipped, encoding] = [gzipSync(bytesOf(notification("a"))), { "content-encoding": "gzip" }]
    const opened = { body: "a", headers: { ...snsFacts, ...encoding } }
    assert.deepStrictEqual(await Codec.decodeMessage(outside, zipped, encoding), opened)
    assert.strictEqual(EnvelopeCodec.sns(outside).contentEncoding, "gzip")
    assert.deepStrictEqual(await open(EnvelopeCodec.sns(outside), notification("a")), { body: "a", headers: snsFacts })
  })

  it.each(["SubscriptionConfirmation", "UnsubscribeConfirmation"])("takes a %s for no message", (Type) =>
    assert.throws(
      () => void open(json, notification("You have chosen to subscribe", { Type, Token: "secret" })),
      EnvelopeCodec.EnvelopeError,
      `EnvelopeCodec.sns: the body is a ${Type} of arn:aws:sns:us-east-2:111122223333:ExampleTopic1, not a message`
    )
  )
})

describe("eventBridge", () => {
  const json = EnvelopeCodec.eventBridge(Codec.json)

  it("wrapped, and unwrapped, any detail is as it was", () =>
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (detail) => {
        const expected: unknown = JSON.parse(JSON.stringify(detail))
        assert.deepStrictEqual(open(json, event(detail)), { body: expected, headers: eventFacts })
      })
    ))

  it("takes an event by its id, source, type and detail, and what else it says", () => {
    const { account: _, region: __, resources: ___, ...less } = event({ a: 1 }, { time: 5 })
    const { "x-amz-event-id": id, "x-amz-event-source": source, "x-amz-event-detail-type": type } = eventFacts
    assert.deepStrictEqual(open(json, less, { "x-amz-event-id": "forged", tenant: "a" }), {
      body: { a: 1 },
      headers: { tenant: "a", "x-amz-event-id": id, "x-amz-event-source": source, "x-amz-event-detail-type": type }
    })
  })
})

describe.each([
  ["sns", EnvelopeCodec.sns, notification("a")],
  ["eventBridge", EnvelopeCodec.eventBridge, event({ a: 1 })]
] as const)("%s", (name, make, envelope) => {
  const bytes = make(Codec.bytes)
  const fails = (run: () => unknown, message: string) => assert.throws(run, EnvelopeCodec.EnvelopeError, message)

  it("gives bare bodies to the inner codec, and sends them", () =>
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array(), fc.json().map(utf8)),
        fc.dictionary(fc.string(), fc.string()),
        (body, headers) => {
          const plain = new Uint8Array(body)
          assert.deepStrictEqual(Codec.decodeMessage(bytes, bytes.encode(plain), headers), { body: plain, headers })
        }
      )
    ))

  it("refuses bare bodies on both ways, where it is told so", () => {
    const strict = make(Codec.json, { bare: "refuse" })
    fails(() => strict.decode(utf8('"a"'), {}), `EnvelopeCodec.${name}: the body is not an envelope`)
    fails(() => strict.encode("a"), `EnvelopeCodec.${name}: the body is not an envelope`)
    assert.doesNotThrow(() => void make(Codec.text, { bare: "refuse" }).decode(bytesOf(envelope), {}))
  })

  it("throws nothing but its own error, whatever the envelope holds", () => {
    const odd = fc.oneof(fc.jsonValue(), fc.constant({ ["__proto__"]: { Value: "polluted" } }), fc.constant(null))
    const key = fc.constantFrom(...Object.keys(envelope), "MessageAttributes", "Subject", "__proto__")
    return fc.assert(
      fc.property(fc.array(fc.tuple(key, odd), { maxLength: 3 }), (changes) => {
        const body = `{${[...Object.entries(envelope), ...changes].map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`
        try {
          const opened = Codec.decodeMessage(bytes, utf8(body), {})
          assert.isFalse(opened instanceof Promise)
          const { headers } = opened as Codec.DecodedMessage<Uint8Array> // It is no promise.
          for (const value of Object.values(headers)) assert.isString(value)
        } catch (error) {
          assert.instanceOf(error, EnvelopeCodec.EnvelopeError)
        }
        assert.isUndefined(Reflect.get({}, "Value"))
      })
    )
  })

  it("bears JSON of any depth", () => {
    const deep = `${'{"a":'.repeat(200_000)}1${"}".repeat(200_000)}`
    for (const field of Object.keys(envelope)) {
      const shown = JSON.stringify({ ...envelope, [field]: "deep" }).replace('"deep"', deep)
      try {
        void Codec.decodeMessage(bytes, utf8(shown), {})
      } catch (error) {
        assert.instanceOf(error, EnvelopeCodec.EnvelopeError)
      }
    }
  })

  it("says which codec could not read the content, and lets its error decide", async () => {
    const cause = Object.assign(new Error("the store does not answer"), { permanent: false })
    const broken = { ...Codec.text, decode: () => Promise.reject(cause) }
    const failed = await Promise.resolve(open(make(broken), envelope)).then(
      () => assert.fail("it was read"),
      (error: unknown) => error
    )
    assert.instanceOf(failed, EnvelopeCodec.EnvelopeError)
    assert.deepInclude(failed, { cause })
    const date = Codec.standard<Date>({
      "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message: "no date" }] }) }
    })
    fails(() => make(date).decode(bytesOf(name === "sns" ? notification("1") : envelope), {}), "InvalidBody: no date")
  })

  it("shares no bytes with a codec that keeps them", () => {
    const kept = new Uint8Array([1, 2, 3])
    const own: Codec.Codec<Uint8Array> = { contentType: undefined, encode: () => kept, decode: (given) => given }
    const codec = make(own)
    assert.notStrictEqual(codec.encode(kept), kept)
    assert.notStrictEqual(codec.decode(kept, {}), kept)
  })

  it.each([{ bare: "raw" }, { bear: "read" }, null])("refuses the options %j", (options) => {
    const wrong = options as EnvelopeCodec.Options // on purpose
    assert.throws(() => make(Codec.bytes, wrong), RangeError, `EnvelopeCodec.${name}: `)
  })
})
