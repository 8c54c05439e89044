import { assert, describe, expect, it } from "@effect/vitest"
import { type BrokerError } from "@requeue/core"
import { Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import type { Message, MessageAttributeValue } from "../src/internal/client.ts"
import { fromRefusal, toBrokerError } from "../src/internal/toBrokerError.ts"
import { type Command, type Input, hideFor, toCommand } from "../src/internal/settle/toCommand.ts"
import * as Originals from "../src/internal/consume/originals.ts"
import { messagesIn } from "../src/internal/consume/received.ts"
import * as Remembered from "../src/internal/consume/remembered.ts"
import { toDelivery } from "../src/internal/consume/toDelivery.ts"
import { toPublication } from "../src/internal/publish/toPublication.ts"
import * as Limits from "../src/internal/limits.ts"
import * as Wire from "../src/internal/wire.ts"

const now = Date.UTC(2030, 0, 1)
const context = { uncounted: 0, before: 0, now }
const utf8 = new TextEncoder()

const outgoing = (change: Partial<Outgoing.Outgoing> = {}): Outgoing.Outgoing => ({
  ...Outgoing.make({ queue: "q", id: "m1", body: utf8.encode("{}"), headers: {}, delay: 0 }, now),
  ...change
})

const entryOf = (message: Outgoing.Outgoing, fifo = false, original?: Record<string, MessageAttributeValue>) =>
  Result.getOrThrow(toPublication(message, fifo, original)).entry

const text = (StringValue: string): MessageAttributeValue => ({ DataType: "String", StringValue })

/** What SQS would hand out of an entry. */
const received = (message: Outgoing.Outgoing, fifo = false, count = 1): Message => {
  const { MessageAttributes, MessageBody, MessageGroupId, MessageSystemAttributes } = entryOf(message, fifo)
  return {
    MessageId: "native",
    Body: MessageBody,
    MessageAttributes: MessageAttributes!,
    Attributes: {
      ApproximateReceiveCount: String(count),
      SentTimestamp: String(now - 5000),
      ...(MessageGroupId === undefined ? {} : { MessageGroupId }),
      ...(MessageSystemAttributes === undefined
        ? {}
        : { AWSTraceHeader: MessageSystemAttributes.AWSTraceHeader!.StringValue! })
    }
  }
}

describe("what is sent comes back", () => {
  const header = fc.tuple(fc.string({ unit: "binary", maxLength: 20 }), fc.string({ unit: "binary", maxLength: 40 }))
  const headers = fc
    .array(header, { maxLength: 15 })
    .map((entries) => Object.fromEntries(entries.filter(([name]) => !/^(requeue$|message-|x-amzn)/.test(name))))

  it("body and headers, whatever they are; and SQS takes it", () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), headers, fc.boolean(), (body, given, fifo) => {
        const message = outgoing({ body, headers: given })
        const { MessageAttributes = {}, MessageBody } = entryOf(message, fifo)
        assert.isTrue(MessageBody !== "" && Wire.isLegalText(MessageBody))
        assert.isAtMost(Object.keys(MessageAttributes).length, 10)
        for (const [name, { StringValue = "" }] of Object.entries(MessageAttributes)) {
          assert.match(name, /^[A-Za-z0-9_.-]{1,256}$/)
          assert.isTrue(StringValue !== "" && Wire.isLegalText(StringValue), name)
        }
        const delivery = toDelivery(received(message, fifo), context)
        assert.deepStrictEqual([...delivery.body], [...body])
        assert.deepStrictEqual(delivery.headers, given)
        expect(delivery.metadata).toEqual(message.metadata)
      })
    ))

  it("text stays text, with a byte order mark as well", () => {
    for (const body of ["{}", "ü", "\uFEFFx", "\t\r\n", "𝄞"]) {
      assert.strictEqual(entryOf(outgoing({ body: utf8.encode(body) })).MessageBody, body)
    }
  })

  it.each([
    ["no bytes", [], "-", "empty"],
    ["a control character", [0], "AA==", "base64"],
    ["no UTF-8", [0xff], "/w==", "base64"],
    ["U+FFFE", [0xef, 0xbf, 0xbe], "77++", "base64"]
  ] as const)("%s: a mark says how it is written", (_, body, content, encoding) => {
    const { MessageAttributes, MessageBody } = entryOf(outgoing({ body: Uint8Array.from(body) }))
    assert.deepStrictEqual([MessageBody, MessageAttributes?.["requeue-encoding"]], [content, text(encoding)])
  })

  it("group and trace are SQS's own, and headers again", () => {
    const headers = { "message-group-id": "g1", "x-amzn-trace-id": "Root=1-2-3", "x-tenant": "a" }
    for (const fifo of [false, true]) {
      const entry = entryOf(outgoing({ headers }), fifo)
      assert.strictEqual(entry.MessageGroupId, "g1")
      assert.deepStrictEqual(entry.MessageSystemAttributes, { AWSTraceHeader: text("Root=1-2-3") })
      assert.deepStrictEqual(Object.keys(entry.MessageAttributes!), ["x-tenant", "requeue"])
      assert.deepStrictEqual(toDelivery(received(outgoing({ headers }), fifo), context).headers, headers)
    }
  })
})

describe("toPublication", () => {
  it("headers are attributes while there is room, and the rest shares one", () => {
    const named = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`h${index}`, "x"]))
    const nine = Object.keys(entryOf(outgoing({ headers: named(9) })).MessageAttributes!)
    assert.deepStrictEqual([nine.length, nine.includes("requeue-headers")], [10, false])
    const ten = entryOf(outgoing({ headers: named(10) })).MessageAttributes!
    assert.strictEqual(Object.keys(ten).length, 10)
    assert.strictEqual(ten["requeue-headers"]?.StringValue, `{"h8":"x","h9":"x"}`)
  })

  it.each([
    ["an empty value", { a: "" }],
    ["a character that SQS refuses", { a: "\0" }],
    ["a name that is reserved", { "AWS.Trace": "x" }],
    ["a name with two dots", { "a..b": "x" }],
    ["a name of ours", { "requeue-encoding": "base64" }],
    ["a name that is none", { "x tenant": "x" }]
  ])("%s travels with those that have no attribute", (_, headers) =>
    assert.strictEqual(
      entryOf(outgoing({ headers })).MessageAttributes?.["requeue-headers"]?.StringValue,
      JSON.stringify(headers)
    )
  )

  it("attributes of the original that are no text stay what they are, unless their text has changed", () => {
    const original = {
      n: { DataType: "Number", StringValue: "7" },
      b: { DataType: "Binary", BinaryValue: Buffer.of(1) }
    }
    const attributes = entryOf(outgoing({ headers: { n: "7", b: "AQ==" } }), false, original).MessageAttributes!
    assert.deepStrictEqual([attributes["n"], attributes["b"]], [original.n, original.b])
    assert.deepStrictEqual(
      entryOf(outgoing({ headers: { n: "8" } }), false, original).MessageAttributes!["n"],
      text("8")
    )
  })

  it.each([
    [0, undefined],
    [1, 1],
    [1000, 1],
    [1001, 2],
    [900_000, 900],
    [900_001, 900],
    [86_400_000, 900]
  ])("a delay of %d ms is %s seconds", (delay, seconds) =>
    assert.strictEqual(entryOf(outgoing({ delay })).DelaySeconds, seconds)
  )

  it.each([
    ["message-group-id", "a b"],
    ["message-group-id", "legal"],
    ["message-deduplication-id", "ü"],
    ["x-amzn-trace-id", "no trace"]
  ])("a foreign attribute %s: %s is copied as the attribute that it is", (name, value) => {
    const attribute = { DataType: "String.own", StringValue: value }
    const copy = Result.getOrThrow(
      toPublication(outgoing({ headers: { [name]: value } }), false, { [name]: attribute })
    )
    assert.deepStrictEqual(copy.entry.MessageAttributes?.[name], attribute)
    assert.isUndefined(copy.entry.MessageGroupId ?? copy.entry.MessageSystemAttributes)
    // Its redrive knows no attributes.
    const redriven = outgoing({ headers: { [name]: value }, metadata: { ...outgoing().metadata, redrives: 1 } })
    assert.isTrue(Result.isSuccess(toPublication(redriven, false)))
  })

  it("SQS's clock has the last word on a delay that it keeps to the end; the others are watched by ours", () => {
    const notBefore = (delay: number) => {
      const { metadata } = Outgoing.make({ queue: "q", id: "m1", body: utf8.encode("{}"), headers: {}, delay }, now)
      return toDelivery(received(outgoing({ delay, metadata })), context).metadata.notBefore
    }
    assert.deepStrictEqual([notBefore(900_000), notBefore(900_001)], [0, now + 900_001])
    const early = { ...outgoing().metadata, notBefore: now + 1 }
    assert.strictEqual(toDelivery(received(outgoing({ metadata: early })), context).metadata.notBefore, now + 1)
  })

  describe("deduplication in a FIFO queue", () => {
    const { metadata } = outgoing()
    const dead = { queue: "q", attempts: 4, reason: "permanent", at: now, error: { name: "E", message: "m" } } as const
    const message = (change: Partial<Metadata.Metadata>, body = utf8.encode("{}"), headers = {}) =>
      outgoing({ body, headers, metadata: { ...metadata, ...change } })
    const idOf = (sent: Outgoing.Outgoing, source?: string) =>
      Result.getOrThrow(toPublication(sent, true, undefined, source)).entry.MessageDeduplicationId!

    it("a message that is published for the first time goes by its id, or by the one that is given", () => {
      assert.strictEqual(idOf(message({})), "m1")
      assert.strictEqual(idOf(message({}, undefined, { "message-deduplication-id": "mine" })), "mine")
      // A digest is wire format: another one would let a message through twice.
      assert.strictEqual(idOf(message({ id: "é".repeat(200) })), "bd62f1ecfb466f85")
    })

    const changes: ReadonlyArray<Partial<Metadata.Metadata>> = [
      { attempts: 1 },
      { attempts: 2 },
      { deadLetter: dead },
      { redrives: 1, operation: "a:b:1" },
      { redrives: 1, operation: "a:c:1" },
      { redrives: 1, attempts: 1 },
      { redrives: 1, deadLetter: dead },
      { deadLetter: { ...dead, queue: "r" } },
      { truncation: "all" }
    ]

    it("the same copy of the same message of SQS has one id, whoever publishes it; no other copy has it", () => {
      const ids = ["native-1", "native-2"].flatMap((source) => changes.map((change) => idOf(message(change), source)))
      const again = ["native-1", "native-2"].flatMap((source) => changes.map((change) => idOf(message(change), source)))
      assert.deepStrictEqual(again, ids)
      assert.strictEqual(new Set([...ids, "m1"]).size, ids.length + 1)
      for (const id of [...ids, idOf(message({ attempts: 1 }), "é".repeat(200))]) assert.match(id, /^[!-~]{1,128}$/)
    })

    it("a letter that was browsed goes by its own id of SQS, also where it was never given up", () => {
      const bodies = ["native-1", "native-2"].map((id) => {
        const body = utf8.encode("{}")
        Originals.note(body, id)
        return body
      })
      for (const change of [{}, ...changes]) {
        const [one, other] = bodies.map((body) => idOf(message(change, body)))
        assert.notStrictEqual(one, other)
        assert.strictEqual(idOf(message(change, bodies[0])), one)
        assert.strictEqual(idOf(message(change), "native-1"), one)
      }
    })

    it("a copy of a message that nobody browsed here has its own id, and keeps it when it is published again", () => {
      for (const change of changes) {
        const [one, other] = [message(change), message(change)]
        assert.notStrictEqual(idOf(one), idOf(other))
        assert.strictEqual(idOf({ ...one }), idOf(one))
      }
    })
  })

  it("one group by default, and no delay of its own", () => {
    const entry = entryOf(outgoing({ delay: 5000 }), true)
    assert.deepStrictEqual([entry.MessageGroupId, entry.DelaySeconds], ["requeue", undefined])
    assert.deepStrictEqual(toDelivery(received(outgoing(), true), context).headers, {})
  })

  it("a key is the group of a FIFO queue, and of its copies wherever they go", () => {
    const keyed = outgoing({ place: { key: "k", queue: "q" } })
    assert.strictEqual(entryOf(keyed, true).MessageGroupId, "k")
    const delivery = { ...toDelivery(received(keyed, true), context), place: { key: "k" }, receipt: undefined }
    const settlement = Settlement.DeadLetter("permanent", "q.dlq", { name: "E", message: "" })
    if (settlement._tag !== "DeadLetter") return assert.fail()
    const letter = Outgoing.deadLetter(delivery, settlement, "q", now)
    assert.strictEqual(entryOf(letter, true).MessageGroupId, "k")
    assert.strictEqual(entryOf(letter, false).MessageGroupId, "k")
  })

  it.each([
    ["for a standard queue", "k", false, "the queue is not FIFO"],
    ["that SQS does not accept", "a b", true, "a key has 1 to 128 letters, digits and punctuation marks"]
  ])("a key %s is refused", (_, key, fifo, detail) => {
    const refused = toPublication(outgoing({ place: { key, queue: "q" } }), fifo)
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) {
      assert.strictEqual(refused.failure.reason, "Unsupported")
      assert.include(refused.failure.detail, detail)
    }
  })

  it.each([
    ["a group that is none", { headers: { "message-group-id": "a b" } }, "Unsupported", "message-group-id"],
    ["an empty deduplication id", { headers: { "message-deduplication-id": "" } }, "Unsupported", "deduplication"],
    ["too much text", { body: new Uint8Array(1024 * 1024).fill(97) }, "BodyTooLarge", "the limit is 1048576"],
    ["too many bytes", { body: new Uint8Array(774_145) }, "BodyTooLarge", "not text and has 774145 bytes"],
    ["headers as large as that", { headers: { h: "x".repeat(1024 * 1024) } }, "BodyTooLarge", "body and headers"]
  ] as const)("%s is refused", (_, change, reason, detail) => {
    const refused = toPublication(outgoing(change), false)
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) {
      assert.strictEqual(refused.failure.reason, reason)
      assert.include(refused.failure.detail, detail)
    }
  })

  it("the largest body of any bytes fits, with all that a dead letter carries", () => {
    const history = Array.from({ length: 10 }, (_, attempt) => ({ attempt, at: now, error: "e".repeat(256), delay: 1 }))
    const body = new Uint8Array(Limits.bodySize)
    const metadata = { ...outgoing().metadata, history }
    assert.isTrue(Result.isSuccess(toPublication(outgoing({ body, metadata }), false)))
  })
})

it("text fills what SQS leaves beside the attributes", () => {
  const publication = (size: number) =>
    Result.getOrThrow(toPublication(outgoing({ body: new Uint8Array(size).fill(97) }), false))
  const { size } = publication(1000)
  const most = 1024 * 1024 - (size - 1000)
  assert.strictEqual(publication(most).size, 1024 * 1024)
  assert.throws(() => publication(most + 1), /BodyTooLarge/)
})

describe("toDelivery", () => {
  const metadata = { ...Metadata.make("m1", now - 1000), attempts: 2 }
  const ours = (attributes: Message["Attributes"]): Message => ({
    Body: "{}",
    MessageAttributes: { requeue: text(Metadata.encode(metadata)) },
    Attributes: attributes
  })

  it.each([
    ["the first receive of a copy", { ApproximateReceiveCount: "1" }, 0, 3],
    ["the third", { ApproximateReceiveCount: "3" }, 0, 5],
    ["the third, two of which reached no handler", { ApproximateReceiveCount: "3" }, 2, 3],
    ["more of them than receives", { ApproximateReceiveCount: "1" }, 9, 3],
    ["no count", {}, 0, 3],
    ["a count that is none", { ApproximateReceiveCount: "many" }, 0, 3]
  ] as const)("attempts: %s", (_, attributes, uncounted, attempts) =>
    assert.strictEqual(toDelivery(ours(attributes), { uncounted, before: 0, now }).attempts, attempts)
  )

  it("a publisher's clock that is two hours ahead delays nothing: SQS tells when it took the message", () => {
    const ahead = now + 7_200_000
    const delayed = Metadata.encode(Metadata.make("m1", ahead, ahead + 10_000))
    const message = { ...ours({ SentTimestamp: String(now) }), MessageAttributes: { requeue: text(delayed) } }
    expect(toDelivery(message, context).metadata).toEqual(Metadata.make("m1", now, now + 10_000))
  })

  it("a foreign message has SQS's id and time, and its attributes as headers", () => {
    const delivery = toDelivery(
      {
        MessageId: "native",
        Body: "ü",
        MessageAttributes: {
          s: text("x"),
          n: { DataType: "Number.int", StringValue: "7" },
          b: { DataType: "Binary", BinaryValue: Buffer.of(1, 2) }
        },
        Attributes: { SentTimestamp: String(now - 5), ApproximateReceiveCount: "2" }
      },
      context
    )
    assert.deepStrictEqual(delivery.metadata, Metadata.make("native", now - 5))
    assert.deepStrictEqual(delivery.headers, { s: "x", n: "7", b: "AQI=" })
    assert.deepStrictEqual([new TextDecoder().decode(delivery.body), delivery.attempts], ["ü", 2])
  })

  it.each([
    ["metadata that is none", { requeue: text("{}") }],
    ["metadata of bytes", { requeue: { DataType: "Binary", BinaryValue: Buffer.of(1) } }],
    ["an unknown encoding", { "requeue-encoding": text("rot13") }]
  ])("%s is a foreign producer's, and no header", (_, MessageAttributes) => {
    const delivery = toDelivery({ MessageId: "native", Body: "{}", MessageAttributes }, context)
    assert.deepStrictEqual([delivery.metadata.id, delivery.headers], ["native", {}])
    assert.strictEqual(new TextDecoder().decode(delivery.body), "{}")
  })

  it.each([
    ["none", "[", { "requeue-headers": "[" }],
    ["a list", `["a"]`, { "requeue-headers": `["a"]` }],
    [
      "of other kinds",
      `{"a":1,"b":{},"c":null,"__proto__":"p"}`,
      JSON.parse(`{"a":"1","b":"{}","c":"null","__proto__":"p"}`)
    ]
  ] as const)("packed headers that are %s are headers as text, and a copy has them", (_, packed, expected) => {
    const message = { MessageId: "native", Body: "{}", MessageAttributes: { "requeue-headers": text(packed) } }
    const { headers } = toDelivery(message, context)
    expect(Object.entries(headers)).toEqual(Object.entries(expected))
    const copy = { ...outgoing({ headers }), metadata: { ...outgoing().metadata, attempts: 1 } }
    expect(new Map(Object.entries(toDelivery(received(copy), context).headers))).toEqual(
      new Map(Object.entries(expected))
    )
  })

  it.each([
    ["text in base64 that is none", "base64", '{"order":1}'],
    ["a broken character in it", "base64", "AAE*Ag=="],
    ["an end that is cut off", "base64", "AAEC/"],
    ["bits that no byte holds", "base64", "AAF="],
    ["padding in its middle", "base64", "AA==AA=="],
    ["the alphabet of URLs", "base64", "_-8="],
    ["a body marked empty that is not", "empty", '{"order":1}'],
    ["no text at all", undefined, undefined]
  ])("%s is undecodable, with the text as it came", (_, encoding, Body) => {
    const MessageAttributes = {
      tenant: text("a"),
      ...(encoding === undefined ? {} : { "requeue-encoding": text(encoding) })
    }
    const message = { MessageId: "native", Body, MessageAttributes, Attributes: { ApproximateReceiveCount: "2" } }
    const { attempts, body, headers, metadata, unreadable } = toDelivery(message, context)
    assert.strictEqual(new TextDecoder().decode(body), Body ?? "")
    assert.deepStrictEqual([attempts, headers, metadata.id], [2, { tenant: "a" }, "native"])
    assert.strictEqual(unreadable?.name, "UnreadableBody")
  })

  it.each([
    ["-", "empty", ""],
    ["", "empty", ""],
    ["eA==", "base64", "x"],
    ["", "base64", ""]
  ])("%j in %s is read", (Body, encoding, expected) => {
    const { body, unreadable } = toDelivery(
      { Body, MessageAttributes: { "requeue-encoding": text(encoding) } },
      context
    )
    assert.deepStrictEqual([new TextDecoder().decode(body), unreadable], [expected, undefined])
  })

  it("what SQS itself has moved to the dead letters says where it was", () => {
    const DeadLetterQueueSourceArn = "arn:aws:sqs:eu-west-1:123456789012:orders"
    const message = ours({ DeadLetterQueueSourceArn, ApproximateReceiveCount: "13" })
    const moved = toDelivery(message, { ...context, before: 11 })
    assert.strictEqual(moved.attempts, 2)
    assert.deepInclude(moved.metadata.deadLetter, { queue: "orders", attempts: 13, reason: "retries-exhausted" })
  })

  it("gives up what brings out a fault of ours, with its bytes, rather than to throw", () => {
    const message = {
      MessageId: "native",
      Body: "kept",
      get Attributes(): never {
        throw new TypeError("a fault")
      }
    }
    const { body, unreadable } = toDelivery(message, context)
    assert.strictEqual(new TextDecoder().decode(body), "kept")
    assert.deepStrictEqual(unreadable, { name: "TypeError", message: "a fault" })
  })

  it.each([undefined, null, 5, [], {}, { Messages: null }, { Messages: "no" }, { Messages: [null, 5, []] }])(
    "an answer that is none has no messages: %j",
    (answer) => assert.deepStrictEqual(messagesIn(answer), [])
  )

  it("of an answer with values of other kinds, all that can be read is read", () => {
    const MessageAttributes = { none: null, list: [], text: "x", odd: { DataType: 1, StringValue: 2 }, good: text("y") }
    const [message] = messagesIn({
      Messages: [null, { Body: "b", MessageId: 7, Attributes: { SentTimestamp: {} }, MessageAttributes }]
    })
    const { body, headers, metadata } = toDelivery(message!, context)
    assert.deepStrictEqual([new TextDecoder().decode(body), headers], ["b", { odd: "", good: "y" }])
    assert.deepStrictEqual([metadata.id, metadata.firstPublished], ["sqs", now])
    assert.isUndefined(Metadata.publishedAt(metadata))
  })

  it("is total", () =>
    fc.assert(
      fc.property(
        fc.option(fc.string({ unit: "binary" }), { nil: undefined }),
        fc.dictionary(fc.constantFrom("requeue", "requeue-encoding", "requeue-headers", "x"), fc.string()),
        fc.dictionary(fc.constantFrom("ApproximateReceiveCount", "SentTimestamp", "MessageGroupId"), fc.string()),
        (Body, attributes, Attributes) => {
          const MessageAttributes = Object.fromEntries(Object.entries(attributes).map(([k, v]) => [k, text(v)]))
          const message = { Attributes, MessageAttributes, ...(Body === undefined ? {} : { Body }) }
          assert.isAtLeast(toDelivery(message, context).attempts, 1)
        }
      )
    ))
})

describe("toCommand", () => {
  const input: Input = {
    queue: "q",
    fifo: false,
    fifoRetry: "block",
    elapsed: 0,
    receives: 1,
    countsHere: false,
    maxDeliveries: 4,
    isLimitReached: false,
    held: undefined,
    holdFor: 0,
    isLeaseUncertain: false,
    isLeft: false,
    isCopied: false,
    now
  }
  const delivery = {
    ...toDelivery(received(outgoing({ metadata: { ...outgoing().metadata, attempts: 1 } })), context),
    receipt: undefined
  }
  const error = { name: "Error", message: "no" }
  const hours = 3_600_000
  const short = (command: Command): unknown => {
    if (command._tag === "Hide") return command.seconds
    if (command._tag !== "Copy") return command._tag
    const { delay, metadata, queue } = command.outgoing
    return [queue, delay, metadata.attempts]
  }

  it.each<[string, Settlement.Settlement, Partial<Input>, unknown]>([
    ["an ack", Settlement.Ack, {}, "Delete"],
    ["a drop", Settlement.Drop("dropped", error), {}, "Delete"],
    ["a retry at once", Settlement.Retry(0), {}, 0],
    ["a retry within a second", Settlement.Retry(1), {}, 1],
    ["a retry of 1.001 s", Settlement.Retry(1001), {}, 2],
    ["a retry of 11 h", Settlement.Retry(11 * hours), {}, 39_600],
    ["a retry of 12 h", Settlement.Retry(12 * hours), {}, ["q", 12 * hours, 2]],
    [
      "a retry of 11 h, 2 h after its receipt",
      Settlement.Retry(11 * hours),
      { elapsed: 2 * hours },
      ["q", 11 * hours, 2]
    ],
    ["a retry while many are in flight", Settlement.Retry(5000), { isLimitReached: true }, ["q", 5000, 2]],
    [
      "a retry after an extension without an answer",
      Settlement.Retry(5000),
      { isLeaseUncertain: true },
      ["q", 5000, 2]
    ],
    ["a retry of what was received very often", Settlement.Retry(0), { receives: 500 }, ["q", 0, 2]],
    ["a dead letter", Settlement.DeadLetter("permanent", "q.dlq", error), {}, ["q.dlq", 0, 0]],
    ["a release", Settlement.Release(), {}, 0],
    ["a release while a poll goes on that nobody wants", Settlement.Release(), { holdFor: 3200 }, 4],
    ["a release that would use up the last delivery", Settlement.Release(), { maxDeliveries: 2 }, ["q", 0, 1]],
    ["a release after others that were no attempts", Settlement.Release(), { receives: 3 }, ["q", 0, 1]],
    ["what came before its time", Settlement.Release(300), {}, ["q", 300, 1]],
    [
      "a FIFO retry",
      Settlement.Retry(5000),
      { fifo: true, isLimitReached: true, isLeaseUncertain: true, receives: 900 },
      5
    ],
    ["a FIFO retry of 12 h", Settlement.Retry(12 * hours), { fifo: true }, "Refuse"],
    ["a FIFO retry that goes behind", Settlement.Retry(5000), { fifo: true, fifoRetry: "resend" }, ["q", 5000, 2]],
    ["a FIFO release", Settlement.Release(), { fifo: true, maxDeliveries: 2 }, 0],
    ["what came before its time in a FIFO queue", Settlement.Release(300), { fifo: true }, 1],
    ["and long before", Settlement.Release(24 * hours), { fifo: true, elapsed: 1 * hours }, 39_590]
  ])("%s", (_, settlement, change, expected) =>
    assert.deepStrictEqual(short(toCommand(delivery, settlement, { ...input, ...change })), expected)
  )

  it.each([
    Settlement.Ack,
    Settlement.Retry(5000),
    Settlement.Release(),
    Settlement.Release(5000),
    Settlement.DeadLetter("permanent", "q-dlq", { name: "E", message: "m" })
  ])("of a delivery whose copy is stored only the delete is left: %o", (settlement) => {
    const delivery = { ...toDelivery(received(outgoing()), context), receipt: undefined }
    assert.deepStrictEqual(toCommand(delivery, settlement, { ...input, isCopied: true }), { _tag: "Delete" })
  })

  it("hides never for less than was asked, nor beyond what SQS takes", () =>
    fc.assert(
      fc.property(fc.nat(13 * hours), fc.nat(13 * hours), (delay, elapsed) => {
        const seconds = hideFor(delay, elapsed)
        if (seconds === undefined) return assert.isAbove(delay + elapsed, 12 * hours - 11_000)
        assert.isTrue(Number.isInteger(seconds))
        assert.isAtLeast(seconds * 1000, delay)
        assert.isAtMost(seconds * 1000 + elapsed, 12 * hours)
      })
    ))

  it("of 12 hours asked 100 s after the receipt, no call says more than SQS takes", () => {
    assert.strictEqual(hideFor(43_200_000, 100_000), undefined)
    assert.strictEqual(hideFor(43_090_000, 100_000), 43_090)
  })
})

describe("toBrokerError", () => {
  it.each([
    ["QueueDoesNotExist", 400, "QueueMissing"],
    ["AWS.SimpleQueueService.NonExistentQueue", 400, "QueueMissing"],
    ["AWS.SimpleQueueService.QueueDeletedRecently", 400, "QueueMissing"],
    ["QueueNameExists", 400, "QueueMismatch"],
    ["AccessDenied", 403, "AccessRefused"],
    ["AccessDeniedException", 400, "AccessRefused"],
    ["InvalidClientTokenId", 403, "AccessRefused"],
    ["UnrecognizedClientException", 400, "AccessRefused"],
    ["SignatureDoesNotMatch", 403, "AccessRefused"],
    ["com.amazonaws.sqs#KmsAccessDenied", 400, "AccessRefused"],
    ["SomethingNew", 403, "AccessRefused"],
    ["RequestThrottled", 403, "Throttled"],
    ["ThrottlingException", 400, "Throttled"],
    ["KmsThrottled", 400, "Throttled"],
    ["InternalFailure", 500, "ConnectionLost"],
    ["SomethingNew", 503, "ConnectionFailed"],
    ["SomethingNew", 429, "Throttled"],
    ["AWS.SimpleQueueService.PurgeQueueInProgress", 403, "Throttled"],
    ["OverLimit", 403, "QueueFull"],
    ["ReceiptHandleIsInvalid", 400, "LeaseLost"],
    ["AWS.SimpleQueueService.MessageNotInflight", 400, "LeaseLost"],
    ["BatchRequestTooLong", 400, "BodyTooLarge"],
    ["InvalidMessageContents", 400, "Unsupported"],
    ["SomethingNew", 400, "Unsupported"]
  ] as const)("%s with status %d is %s", (code, status, reason) =>
    assert.strictEqual(fromRefusal({ code, text: "said", status }, { operation: "settle" }).reason, reason)
  )

  it.each([
    ["Value AQE for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", "LeaseLost"],
    [
      "Value AQE for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available",
      "LeaseLost"
    ],
    ["Total VisibilityTimeout for the message is beyond the limit [43200 seconds]", "LeaseLost"],
    ["One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.", "BodyTooLarge"],
    ["Value 901 for parameter DelaySeconds is invalid.", "Unsupported"]
  ] as const)("InvalidParameterValue by its text: %s", (said, reason) => {
    const refusal = { code: "InvalidParameterValue", text: said, status: 400 }
    assert.strictEqual(fromRefusal(refusal, { operation: "settle" }).reason, reason)
  })

  const node = (code: string, message = code) => Object.assign(new Error(message), { code })
  const sdk = (name: string, httpStatusCode: number, fields = {}) =>
    Object.assign(new Error("said"), { name, $metadata: { httpStatusCode }, ...fields })

  it.each<[string, unknown, BrokerError.Reason]>([
    ["the SDK's error", sdk("QueueDoesNotExist", 400), "QueueMissing"],
    ["an error that has only a code", sdk("SQSServiceException", 400, { Code: "ThrottlingException" }), "Throttled"],
    // Whoever answers in the place of SQS may have handed the call on.
    ...[302, 408, 499, 500, 502, 503, 504].map((status): [string, unknown, BrokerError.Reason] => [
      `a status alone, ${status}`,
      sdk("Unknown", status),
      status === 408 || status === 499 ? "Timeout" : "ConnectionLost"
    ]),
    ["a gateway that takes no such body", sdk("UnknownError", 413), "BodyTooLarge"],
    ["a gateway that knows no such path", sdk("UnknownError", 404), "Unsupported"],
    ["nobody listening", node("ECONNREFUSED"), "ConnectionFailed"],
    [
      "nobody listening on any address",
      new AggregateError([node("ECONNREFUSED"), node("ECONNREFUSED")]),
      "ConnectionFailed"
    ],
    ["no such host", node("ENOTFOUND"), "ConnectionFailed"],
    ["a reset", node("ECONNRESET", "socket hang up"), "ConnectionLost"],
    ["no answer in time", sdk("TimeoutError", 0), "Timeout"],
    ["a wrong certificate", node("DEPTH_ZERO_SELF_SIGNED_CERT", "self-signed certificate"), "ConnectionFailed"],
    [
      "no credentials",
      Object.assign(new Error("Could not load"), { name: "CredentialsProviderError" }),
      "AccessRefused"
    ],
    ["what is no error", "oops", "ConnectionLost"]
  ])("%s", (_, cause, reason) => {
    const error = toBrokerError(cause, { operation: "publish", queue: "q" })
    assert.deepInclude(error, { reason, broker: "sqs", operation: "publish", queue: "q" })
  })

  const ofSocket = (code: string, message: string) =>
    Object.assign(node(code, message), { name: "TimeoutError", $metadata: { attempts: 3, totalRetryDelay: 150 } })
  it.each<[name: string, cause: unknown, reason: BrokerError.Reason, remedy: RegExp]>([
    ["a reset", ofSocket("ECONNRESET", "socket hang up"), "ConnectionLost", /needs TLS, write tls=true/],
    ["a broken pipe", ofSocket("EPIPE", "write EPIPE"), "ConnectionLost", /needs TLS, write tls=true/],
    ["no answer of the network", ofSocket("ETIMEDOUT", "connect ETIMEDOUT"), "Timeout", /network/],
    ["no answer of a call", sdk("TimeoutError", 0), "Timeout", /raise requestTimeout/],
    [
      "an unknown authority",
      node("DEPTH_ZERO_SELF_SIGNED_CERT", "self-signed certificate"),
      "ConnectionFailed",
      /NODE_EXTRA_CA_CERTS.*requestHandler\.httpsAgent/
    ],
    [
      "a chain without its authority",
      node("UNABLE_TO_VERIFY_LEAF_SIGNATURE", "unable to verify the first certificate"),
      "ConnectionFailed",
      /NODE_EXTRA_CA_CERTS.*requestHandler\.httpsAgent/
    ],
    [
      "a server without TLS",
      node(
        "EPROTO",
        "write EPROTO 00000000:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number"
      ),
      "ConnectionFailed",
      /not support TLS on this port.*tls=true/
    ]
  ])("of the network has a remedy: %s", (_, cause, reason, remedy) => {
    const error = toBrokerError(cause, { operation: "publish" })
    assert.strictEqual(error.reason, reason)
    assert.match(error.remedy ?? "", remedy)
    assert.notMatch(error.detail, /^TimeoutError: (socket|write)/)
  })

  it.each([
    ["KMS.DisabledException", "AccessRefused", /KMS key/],
    ["com.amazonaws.sqs#KMS.InvalidStateException", "AccessRefused", /KMS key/],
    ["KMS.ThrottlingException", "Throttled", /quota/]
  ] as const)("a key of one's own: %s", (code, reason, remedy) => {
    const error = fromRefusal({ code, text: "", status: 400 }, { operation: "publish" })
    assert.strictEqual(error.reason, reason)
    assert.match(error.remedy ?? "", remedy)
  })

  const thrown = (fields: object) => Object.defineProperties(sdk("Oops", 400), Object.getOwnPropertyDescriptors(fields))
  const fail = (): never => {
    throw new Error("no")
  }

  it.each<[string, unknown]>([
    ["an object", Object.create(null)],
    ["a symbol", Symbol("x")],
    ...[{}, 5, true, null, undefined, ["a"]].map((message): [string, unknown] => [
      `an error whose message is ${JSON.stringify(message)}`,
      thrown({ message })
    ]),
    ["an error whose name is an object", thrown({ name: Object.create(null) })],
    ["an error whose name is a symbol", thrown({ name: Symbol("x") })],
    ["an error whose members throw", new Proxy(new Error("x"), { get: fail })],
    ["what may not be looked at", new Proxy({}, { get: fail, getPrototypeOf: fail })],
    ["errors that are no list", Object.assign(new AggregateError([]), { errors: null })],
    ...["constructor", "toString", "__proto__"].map((code): [string, unknown] => [`the code ${code}`, sdk(code, 500)])
  ])("is made of anything that was thrown: %s", (_, cause) => {
    const { detail, reason } = toBrokerError(cause, { operation: "publish" })
    assert.isNotEmpty(detail)
    assert.include(["ConnectionLost", "Unsupported"], reason)
  })

  it("tells a message that is no text", () =>
    assert.strictEqual(toBrokerError(thrown({ message: { a: 1 } }), { operation: "publish" }).detail, 'Oops: {"a":1}'))

  it("says what to do", () => {
    const error = toBrokerError(sdk("UnrecognizedClientException", 400), { operation: "find", queue: "q" })
    assert.include(error.message, "Check the access key and secret")
  })
})

it("a message without an id is not remembered: what is settled for one would be taken for all", () => {
  const { addUncounted, settled, uncounted } = Remembered.make(10)
  for (const id of ["", "a"]) {
    settled.set(id, true)
    addUncounted(id)
  }
  assert.deepStrictEqual([settled.has(""), settled.has("a"), uncounted(""), uncounted("a")], [false, true, 0, 1])
})
