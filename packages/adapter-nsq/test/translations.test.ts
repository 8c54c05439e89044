import { assert, describe, expect, it } from "@effect/vitest"
import { BrokerError } from "@requeue/core"
import { Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as fc from "fast-check"
import * as NsqdClock from "../src/internal/connect/nsqdClock.ts"
import type { Receipt } from "../src/internal/consume/receipt.ts"
import * as Remembered from "../src/internal/consume/remembered.ts"
import * as Limits from "../src/internal/limits.ts"
import { closedText, refusedId, toBrokerError } from "../src/internal/toBrokerError.ts"
import { type CommandContext, toCommand } from "../src/internal/settle/toCommand.ts"
import { type Frame, toDelivery, toFrame } from "../src/internal/consume/toDelivery.ts"
import { type PublicationContext, toPublication } from "../src/internal/publish/toPublication.ts"
import * as Wire from "../src/internal/wire.ts"
import { bytes } from "./world.ts"

const now = Date.UTC(2030, 0, 1)

const metadata = { ...Metadata.make("m1", now - 1000), attempts: 2, notBefore: now + 500 }

const frame = (body: Uint8Array, change: Partial<Frame> = {}): Frame => ({
  timestamp: BigInt(now - 100) * 1_000_000n + 42n,
  attempts: 1,
  id: "0a1b2c3d4e5f6071",
  name: "0a1b2c3d4e5f6071",
  body: Buffer.from(body),
  ...change
})

const wrapped = (change: Partial<Wire.Envelope> = {}) =>
  Wire.encode({
    metadata,
    headers: { "x-tenant": "ü" },
    deferred: undefined,
    nonce: undefined,
    body: bytes("{}"),
    ...change
  })

/** An envelope of this JSON, whose characters are bytes. */
const enveloped = (json: string) => Buffer.from(`\x00RK\x01\x00${String.fromCharCode(json.length)}${json}`, "latin1")

describe("the envelope", () => {
  it("is what docs/nsq.md says, byte by byte", () => {
    const made = Wire.encode({
      metadata: Metadata.make("m", 1),
      headers: { a: "b" },
      deferred: 5,
      nonce: "n0",
      body: Uint8Array.of(0, 255)
    })
    const json = `{"m":{"v":1,"id":"m","a":0,"t0":1},"h":{"a":"b"},"d":5,"n":"n0"}`
    assert.strictEqual(made.toString("latin1"), `\x00RK\x01${String.fromCharCode(0, json.length)}${json}\x00\xff`)
  })

  it("gives back what went in", () =>
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 300 }),
        fc.dictionary(fc.string(), fc.string(), { maxKeys: 5 }),
        fc.option(fc.nat(), { nil: undefined }),
        fc.option(fc.string(), { nil: undefined }),
        (body, headers, deferred, nonce) => {
          const read = Wire.decode(Wire.encode({ metadata, headers, deferred, nonce, body }))!
          expect({ ...read, body: [...read.body] }).toEqual({ metadata, headers, deferred, nonce, body: [...body] })
        }
      )
    ))

  it.each([
    ["nothing", Buffer.alloc(0)],
    ["text", Buffer.from("{}")],
    ["the beginning alone", Buffer.from("\x00RK\x01", "latin1")],
    ["another version", Buffer.from("\x00RK\x02\x00\x02{}", "latin1")],
    ["less than it says", Buffer.from("\x00RK\x01\x00\xff{}", "latin1")],
    ["no JSON", Buffer.from("\x00RK\x01\x00\x01{", "latin1")],
    ["no metadata", Buffer.from("\x00RK\x01\x00\x02{}", "latin1")],
    ["JSON that is no object", Buffer.from("\x00RK\x01\x00\x04null", "latin1")],
    ["headers that are none", enveloped(`{"m":{"v":1,"id":"m","a":0,"t0":1},"h":["a"]}`)],
    ["JSON with bytes that are no text", enveloped(`{"m":{"v":1,"id":"m","a":0,"t0":1},"h":{"a":"\xff"}}`)]
  ])("is not seen in %s", (_, input) => assert.isUndefined(Wire.decode(input)))

  it("has headers of other types as text", () => {
    const { headers } = Wire.decode(
      enveloped(`{"m":{"v":1,"id":"m","a":0,"t0":1},"h":{"a":1,"b":{},"__proto__":"p"}}`)
    )!
    assert.deepStrictEqual(Object.entries(headers), [
      ["a", "1"],
      ["b", "{}"],
      ["__proto__", "p"]
    ])
  })

  it("never fails on foreign bytes", () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 50 }), (tail) => {
        Wire.decode(Buffer.concat([Buffer.from("\x00RK\x01", "latin1"), tail]))
      })
    ))

  it("has a limit for headers", () => {
    const headers = { big: "x".repeat(Wire.jsonLimit) }
    assert.throws(() => wrapped({ headers }), RangeError)
  })
})

describe("toFrame", () => {
  it("reads attempts as an unsigned number, and gives all deliveries of a copy the same name", () =>
    fc.assert(
      fc.property(fc.nat(65_535), (attempts) => {
        const payload = Buffer.alloc(28)
        payload.writeBigInt64BE(5n, 0)
        payload.writeUInt16BE(attempts, 8)
        payload.write("0a1b2c3d4e5f6071", 10)
        const id = "0a1b2c3d4e5f6071"
        assert.deepInclude(toFrame(payload), { timestamp: 5n, attempts, id, name: `${"\0".repeat(7)}\x05${id}` })
      })
    ))
})

describe("toDelivery", () => {
  const context = { now, nsqdNow: now, due: undefined }

  it("adds nsqd's count to what the message knows", () => {
    const read = toDelivery(frame(wrapped(), { attempts: 40_000 }), context)
    assert.strictEqual(read.attempts, 40_002)
    assert.deepStrictEqual(read.headers, { "x-tenant": "ü" })
    assert.strictEqual(read.metadata.id, "m1")
  })

  it("gives up what brings out a fault of ours, with its bytes, rather than to throw", () => {
    const text = "longer than the head of an envelope"
    const raw = frame(bytes(text), { attempts: 3 })
    raw.body.compare = () => {
      throw new TypeError("a fault")
    }
    const { attempts, body, metadata, unreadable } = toDelivery(raw, context)
    assert.isUndefined(Metadata.publishedAt(metadata))
    assert.deepStrictEqual([Buffer.from(body).toString(), attempts], [text, 3])
    assert.deepStrictEqual(unreadable, { name: "TypeError", message: "a fault" })
  })

  it("takes a foreign message as it is, under an id that stays the same", () => {
    const one = toDelivery(frame(bytes("raw"), { attempts: 3 }), context)
    assert.deepStrictEqual([Buffer.from(one.body).toString(), one.headers, one.attempts], ["raw", {}, 3])
    assert.match(one.metadata.id, /^nsq-0a1b2c3d4e5f6071-[0-9a-z]+$/)
    assert.strictEqual(one.metadata.firstPublished, now - 100)
    assert.strictEqual(toDelivery(frame(bytes("raw")), context).metadata.id, one.metadata.id)
    const other = toDelivery(frame(bytes("raw"), { timestamp: 1n }), context)
    assert.notStrictEqual(other.metadata.id, one.metadata.id)
  })

  it("a publisher's clock that is two hours ahead is set back to that of nsqd, which stored the message", () => {
    const ahead = now + 7_200_000
    const read = toDelivery(frame(wrapped({ metadata: Metadata.make("m1", ahead, ahead + 10_000) })), context)
    expect(read.metadata).toEqual(Metadata.make("m1", now - 100, now + 9_900))
  })

  it.each([
    ["before its time", {}, undefined, now + 500],
    ["before its time, by nsqd's clock", { deferred: 200 }, undefined, now + 100],
    ["when nsqd's clock says that its time has come", { deferred: 100 }, undefined, 0],
    ["earlier than this process asked for it", { deferred: 100 }, now + 700, now + 700]
  ] as const)("%s", (_, change, due, notBefore) =>
    assert.strictEqual(toDelivery(frame(wrapped(change)), { ...context, due }).metadata.notBefore, notBefore)
  )

  it.each([-3_600_000, -20_000, 0, 20_000, 3_600_000])(
    "what nsqd has held to its end is due, and what it has not waits for the rest, by a consumer's clock that is wrong by %d ms",
    (wrong) => {
      const notBeforeOf = (deferred: number) => {
        // The publisher's clock is nsqd's, which stored the message 100 ms ago.
        const own = { ...metadata, notBefore: now - 100 + deferred }
        const wall = now + wrong
        const { metadata: read } = toDelivery(frame(wrapped({ deferred, metadata: own })), {
          now: wall,
          nsqdNow: now,
          due: undefined
        })
        return read.notBefore === 0 ? 0 : read.notBefore - wall
      }
      assert.strictEqual(notBeforeOf(100), 0)
      assert.strictEqual(notBeforeOf(600), 500)
    }
  )

  it("what nsqd has held to its end is due though nsqd's clock was set an hour ahead meanwhile", () => {
    const own = { ...metadata, notBefore: now }
    const timestamp = BigInt(now + 3_600_000) * 1_000_000n
    const read = toDelivery(frame(wrapped({ deferred: 10_000, metadata: own }), { timestamp }), context)
    assert.strictEqual(read.metadata.notBefore, 0)
  })

  it("remembers for a foreign message when it is to come, too", () =>
    assert.strictEqual(toDelivery(frame(bytes("raw")), { ...context, due: now + 7 }).metadata.notBefore, now + 7))
})

const delivery = { ...toDelivery(frame(wrapped()), { now, nsqdNow: now, due: undefined }), receipt: undefined }

const commandContext: CommandContext = {
  queue: "orders",
  retry: "native",
  cap: 1000,
  deliveries: 1,
  isFinished: false,
  now
}

const failed = { name: "Error", message: "no" }

describe("toCommand", () => {
  it.each([
    ["ack", Settlement.Ack, {}, "Fin"],
    ["drop", Settlement.Drop("dropped", failed), {}, "Fin"],
    ["retry at once", Settlement.Retry(0), {}, "Req 0"],
    ["retry later", Settlement.Retry(999), {}, "Req 999"],
    ["retry at the cap", Settlement.Retry(1000), {}, "Req 1000"],
    ["retry after a fraction", Settlement.Retry(0.1), {}, "Req 1"],
    ["retry beyond the cap", Settlement.Retry(1000.5), {}, "Copy retry"],
    ["retry where nsqd's count may end", Settlement.Retry(0), { deliveries: 0x8000 }, "Copy retry"],
    ["retry exactly", Settlement.Retry(0), { retry: "exact" }, "Copy retry"],
    ["dead letter", Settlement.DeadLetter("permanent", "orders.dlq", failed), {}, "Copy queue"],
    ["release", Settlement.Release(), {}, "Req 0"],
    ["release exactly", Settlement.Release(), { retry: "exact" }, "Req 0"],
    ["release until later", Settlement.Release(5), {}, "Copy retry"],
    ["retry at once of what was finished", Settlement.Retry(0), { isFinished: true }, "Fin"],
    ["retry exactly of what was finished", Settlement.Retry(5), { isFinished: true, retry: "exact" }, "Fin"],
    ["release of what was finished", Settlement.Release(5), { isFinished: true }, "Fin"]
  ] as const)("%s", (_, settlement, change, expected) => {
    const command = toCommand(delivery, settlement, () => ({ ...commandContext, ...change }))
    const shown = { Fin: "", Req: "delay" in command && command.delay, Copy: "into" in command && command.into }
    assert.strictEqual(`${command._tag} ${shown[command._tag]}`.trim(), expected)
  })

  it("writes whole milliseconds within the cap, whatever is asked", () =>
    fc.assert(
      fc.property(fc.double({ min: 0, max: 86_400_000, noNaN: true }), (delay) => {
        const command = toCommand(delivery, Settlement.Retry(delay), () => commandContext)
        // What a copy that is refused becomes, too.
        const requeue = command._tag === "Copy" ? command.instead : command
        if (requeue?._tag !== "Req") return assert.fail(command._tag)
        assert.isTrue(Number.isInteger(requeue.delay) && requeue.delay <= commandContext.cap)
        assert.isTrue(requeue.delay >= Math.min(delay, commandContext.cap))
        assert.strictEqual(requeue.wait, delay)
      })
    ))

  it("has nothing instead of a dead letter", () => {
    const command = toCommand(delivery, Settlement.DeadLetter("permanent", "orders.dlq", failed), () => commandContext)
    assert.isTrue(command._tag === "Copy" && command.instead === undefined)
  })

  it("counts the attempt of a retry, and none of a hop", () => {
    const retried = toCommand(delivery, Settlement.Retry(5000), () => commandContext)
    const hopped = toCommand(delivery, Settlement.Release(5000), () => commandContext)
    assert.deepStrictEqual(
      [retried, hopped].map((command) => "outgoing" in command && command.outgoing.metadata.attempts),
      [3, 2]
    )
  })
})

describe("toPublication", () => {
  const own = { topic: "orders.requeue.retry", channel: "requeue", isOwn: true }
  const source = { topic: "orders", channel: "requeue", isOwn: false }
  const context: PublicationContext = { limits: { maxReqTimeout: 1000, maxMsgSize: 10_000 }, envelope: "always", now }
  const message = (change: Partial<Outgoing.Outgoing> = {}): Outgoing.Outgoing => ({
    ...Outgoing.make({ queue: "orders", id: "m", body: bytes("x"), headers: {}, delay: 0 }, now),
    ...change
  })
  const publication = (item: Parameters<typeof toPublication>[0], change: Partial<PublicationContext> = {}) => {
    const made = toPublication(item, { ...context, ...change })
    if (made instanceof BrokerError.BrokerError) throw made
    return made
  }
  const delayed = (delay: number, at = now) =>
    Outgoing.make({ queue: "orders", id: "m", body: bytes("x"), headers: {}, delay }, at)

  it.each([
    ["no delay", message(), 0, undefined],
    ["a delay", delayed(500), 500, 500],
    ["a fraction", delayed(499.2), 500, 500],
    ["the cap", delayed(1000), 1000, 1000],
    ["more than the cap", delayed(5000), 1000, undefined],
    ["what is left after waiting for a connection", delayed(500, now - 200), 300, 300],
    ["what is over already", delayed(500, now - 900), 1, 1]
  ] as const)("defers for %s", (_, outgoing, defer, told) => {
    const made = publication({ message: outgoing, target: source, isCopy: false })
    assert.strictEqual(made.defer, defer)
    assert.strictEqual(Wire.decode(made.payload)!.deferred, told)
  })

  it("a hop is due when the clock that set its time says so as well", () => {
    const made = publication({ message: delayed(500), target: own, isCopy: true, isHop: true })
    assert.deepStrictEqual([made.defer, Wire.decode(made.payload)!.deferred], [500, undefined])
  })

  it("leaves the body raw in a topic of others when asked to, and never in its own", () => {
    const item = { message: message(), target: source, isCopy: false }
    const never = { envelope: "never" } as const
    assert.strictEqual(publication(item, never).payload.toString(), "x")
    assert.isDefined(Wire.decode(publication({ ...item, target: own, isCopy: true }, never).payload))
    const empty = toPublication({ ...item, message: message({ body: new Uint8Array() }) }, { ...context, ...never })
    assert.instanceOf(empty, BrokerError.BrokerError)
  })

  const raise = "raise --max-msg-size of nsqd, and the option maxMsgSize where it is set"

  it.each([
    ["a body at the limit", 10_000 - Wire.reserve(10_000), {}, undefined],
    ["a body over the limit", 10_000 - Wire.reserve(10_000) + 1, {}, `Send a smaller body, or ${raise}`],
    ["headers over the limit", 1, { h: "x".repeat(10_000) }, `Send a smaller body, less in headers, or ${raise}`],
    ["headers over the envelope's limit", 1, { h: "x".repeat(70_000) }, "Send less in headers"]
  ] as const)("of %s", (_, size, headers, remedy) => {
    const outgoing = message({ body: new Uint8Array(size), headers })
    const made = toPublication({ message: outgoing, target: source, isCopy: false }, context)
    const refused = made instanceof BrokerError.BrokerError ? made : undefined
    assert.deepStrictEqual(
      [refused?.reason, refused?.remedy],
      [remedy === undefined ? undefined : "BodyTooLarge", remedy]
    )
  })

  it("keeps a foreign message of the largest size as a dead letter, without its story", () => {
    const outgoing = message({ body: new Uint8Array(10_000) })
    assert.strictEqual(publication({ message: outgoing, target: own, isCopy: true }).payload.length, 10_000)
  })

  const story: Metadata.Metadata = {
    ...Metadata.make("m".repeat(Metadata.idLimit), now, now + 1),
    attempts: Metadata.countLimit,
    redrives: Metadata.countLimit,
    history: Array.from({ length: 20 }, () => ({ attempt: 1, at: now, error: "ü".repeat(300), delay: 1 })),
    deadLetter: {
      queue: "q".repeat(100),
      attempts: 1,
      reason: "permanent",
      at: now,
      error: { name: "E", message: "ü".repeat(300) }
    }
  }

  it("accepts nothing that has no room for the longest story of a copy", () =>
    fc.assert(
      fc.property(fc.nat(100_000), fc.nat(70_000), (body, header) => {
        const limits = { ...context.limits, maxMsgSize: 100_000 }
        const sent = message({ body: new Uint8Array(body), headers: { h: "x".repeat(header) } })
        const item = { message: sent, target: source, isCopy: false, nonce: "n".repeat(20) }
        if (toPublication(item, { ...context, limits }) instanceof BrokerError.BrokerError) return
        const copy = { ...item, message: { ...sent, metadata: story }, target: own, isCopy: true }
        const { metadata } = Wire.decode(publication(copy, { limits }).payload)!
        assert.isDefined(metadata.deadLetter)
      }),
      { numRuns: 300 }
    ))

  it("accepts nothing, however small the limit, whose dead letter cannot keep its id and its headers", () =>
    fc.assert(
      fc.property(fc.integer({ min: 512, max: 8192 }), fc.nat(4000), fc.nat(2000), (maxMsgSize, body, header) => {
        const limits = { ...context.limits, maxMsgSize }
        const sent = message({ body: new Uint8Array(body), headers: { h: "x".repeat(header) } })
        const made = toPublication({ message: sent, target: source, isCopy: false }, { ...context, limits })
        if (made instanceof BrokerError.BrokerError) {
          // A body without headers may have a quarter of it, whatever the limit.
          return assert.isTrue(header > 0 || body > maxMsgSize / 4)
        }
        const metadata = Metadata.reduce({ ...story, id: sent.metadata.id }, "all")
        const copy = { message: { ...sent, metadata }, target: own, isCopy: true }
        const kept = Wire.decode(publication(copy, { limits }).payload)!
        assert.deepStrictEqual([kept.metadata.id, kept.headers], [sent.metadata.id, sent.headers])
      })
    ))

  it("refuses a copy without room for its story, until the story is cut short; it never leaves out headers or attempts", () => {
    const full = { ...story, id: "m" }
    const least = Buffer.byteLength(
      Wire.json({ headers: { h: "1" }, metadata: Metadata.reduce(full, "all"), deferred: undefined, nonce: undefined })
    )
    const outgoing = message({ body: new Uint8Array(10_000 - Wire.size(least, 0)), headers: { h: "1" } })
    const copy = (cut: Metadata.Truncation | undefined) =>
      toPublication(
        { message: { ...outgoing, metadata: Metadata.reduce(full, cut) }, target: own, isCopy: true },
        context
      )
    for (const cut of [undefined, ...Metadata.truncations.slice(0, -1)]) {
      const made = copy(cut)
      assert.isTrue(made instanceof BrokerError.BrokerError && made.reason === "BodyTooLarge", cut)
    }
    const made = copy("all")
    assert.isTrue(!(made instanceof BrokerError.BrokerError) && Wire.decode(made.payload)?.headers["h"] === "1")
    const one = { ...outgoing, body: new Uint8Array(outgoing.body.length + 1), metadata: Metadata.reduce(full, "all") }
    assert.instanceOf(toPublication({ message: one, target: own, isCopy: true }, context), BrokerError.BrokerError)
  })
})

describe("toBrokerError", () => {
  it.each([
    ["E_AUTH_FAILED AUTH failed", "AccessRefused"],
    ['E_UNAUTHORIZED AUTH failed for SUB on "a" "b"', "AccessRefused"],
    ['E_BAD_TOPIC PUB topic name "a b" is not valid', "Unsupported"],
    ["E_BAD_MESSAGE PUB message too big 2 > 1", "BodyTooLarge"],
    ["E_BAD_BODY IDENTIFY msg timeout (1) is invalid", "Unsupported"],
    ["E_INVALID cannot SUB in current state (TLS required)", "AccessRefused"],
    ["E_PUB_FAILED PUB failed exiting", "Throttled"],
    ["E_FIN_FAILED FIN 0a1b2c3d4e5f6071 failed ID not in flight", "LeaseLost"],
    ["connect ECONNREFUSED 127.0.0.1:1", "ConnectionFailed"],
    ["self-signed certificate", "ConnectionFailed"],
    ["socket hang up", "ConnectionLost"]
  ] as const)("%s is %s", (text, reason) => {
    const error = toBrokerError(new Error(text), { operation: "publish", node: "h:1" })
    assert.strictEqual(error.reason, reason)
    assert.include(error.detail, "h:1")
  })

  it.each([
    ["error:05800074:x509 certificate routines::key values mismatch", /tls\.keyFile .*tls\.certFile/],
    ["error:1C800064:Provider routines::bad decrypt", /tls\.passphrase/],
    ["TLS: caFile cannot be read: ENOENT: no such file or directory, open 'ca.pem'", /Set tls\.caFile to the path/]
  ])("of our own certificates and keys names the option: %s", (text, remedy) => {
    const error = toBrokerError(new Error(text), { operation: "connect", node: "h:1" }, "ConnectionFailed")
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.remedy ?? "", remedy)
  })

  it("of the HTTP port, which closes the connection, names the TCP port", () => {
    const context = { operation: "connect", node: "h:4151" }
    const error = toBrokerError(new Error(closedText), context, "ConnectionFailed")
    assert.strictEqual(error.detail, "nsqd h:4151: nsqd closed the connection")
    assert.match(error.remedy ?? "", /TCP address, 4150 by default; port 4151 is for HTTP/)
    assert.isUndefined(toBrokerError(new Error(closedText), context).remedy)
  })

  it("names a code once", () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" })
    const { detail } = toBrokerError(refused, { operation: "connect", node: "127.0.0.1:1" })
    assert.strictEqual(detail, "nsqd 127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1")
  })

  it("says that a server does not speak NSQ, where the driver reads past its buffer", () => {
    const cause = Object.assign(new RangeError("outside of buffer bounds"), { code: "ERR_BUFFER_OUT_OF_BOUNDS" })
    const error = toBrokerError(cause, { operation: "connect", node: "h:1" }, "ConnectionFailed")
    assert.deepStrictEqual([error.reason, error.isMisconfigured], ["ConnectionFailed", true])
    assert.match(error.message, /nsqd h:1: the server does not speak NSQ.*Check host and port/)
    assert.notInclude(error.message, "ERR_")
  })

  it("is made of anything that was thrown", () => {
    const unprintable = Object.create(null) as object
    const error = toBrokerError(unprintable, { operation: "publish" })
    assert.strictEqual(error.reason, "ConnectionLost")
    assert.isNotEmpty(error.detail)
  })

  it("reads which message a refusal was about", () => {
    const id = "0a1b2c3d4e5f6071"
    for (const command of ["FIN", "REQ", "TOUCH"]) {
      assert.strictEqual(refusedId(`E_${command}_FAILED ${command} ${id} failed ID not in flight`), id)
    }
    assert.isUndefined(refusedId("E_INVALID invalid command"))
  })

  it("tell the limit of a delay, and of sizes", () => {
    assert.deepStrictEqual(Limits.refused("E_INVALID DPUB timeout 5000 out of range 0-1000"), { maxReqTimeout: 1000 })
    assert.deepStrictEqual(Limits.refused("E_BAD_MESSAGE PUB message too big 2 > 1"), { maxMsgSize: 1 })
    assert.deepStrictEqual(Limits.refused("E_INVALID invalid command"), {})
  })
})

describe("limits", () => {
  const identity = { version: "1.3.0", maxRdyCount: 2500, msgTimeout: 60_000, maxMsgTimeout: 900_000, notes: [] }
  const none = { maxReqTimeout: undefined, maxMsgSize: undefined, maxBodySize: undefined }

  it("come from the options, from nsqd, else from its defaults; the smaller one counts", () => {
    const of = (configured: Limits.Configured, settings: object) =>
      Limits.of(identity, configured, { ...none, ...settings } as Parameters<typeof Limits.of>[2]).maxReqTimeout
    assert.deepStrictEqual(
      [
        of({}, {}),
        of({ maxReqTimeout: 5 }, {}),
        of({}, { maxReqTimeout: 7 }),
        of({ maxReqTimeout: 5 }, { maxReqTimeout: 7 })
      ],
      [3_600_000, 5, 7, 5]
    )
  })

  it("of several nsqd are the smallest of each", () => {
    const one = { maxReqTimeout: 1, maxMsgSize: 20, maxBodySize: 3, msgTimeout: 40, maxMsgTimeout: 5 }
    const other = { maxReqTimeout: 10, maxMsgSize: 2, maxBodySize: 30, msgTimeout: 4, maxMsgTimeout: 50 }
    assert.deepStrictEqual(Limits.least(one, other), {
      maxReqTimeout: 1,
      maxMsgSize: 2,
      maxBodySize: 3,
      msgTimeout: 4,
      maxMsgTimeout: 5
    })
  })
})

describe("what is to come again", () => {
  const topic = { topic: "orders", channel: "requeue", isOwn: false }
  const address = { host: "h", port: 4150, http: undefined }
  const node = { name: "h:4150", address, clock: NsqdClock.make(), identity: "h" }
  const receipt = (id: string, change: Partial<Receipt["session"]> = {}, nonce?: string): Receipt => ({
    session: { node, topic, ...change } as Receipt["session"],
    id,
    name: id,
    deliveries: 1,
    nonce,
    receivedAt: 0,
    leaseEnds: 0
  })

  it("is remembered once, and the oldest are forgotten", () => {
    const remembered = Remembered.make(2)
    remembered.requeued(receipt("a"), 1)
    remembered.requeued(receipt("b"), 2)
    remembered.requeued(receipt("a"), 3)
    remembered.requeued(receipt("c"), 4)
    assert.deepStrictEqual(["a", "b", "c", "c"].map(remembered.takeDue), [3, undefined, 4, undefined])
  })

  it("is remembered for each nsqd, and found whatever its address", () => {
    const remembered = Remembered.make(1)
    const other = { node: { ...node, name: "localhost:4150" } }
    remembered.requeued(receipt("a"), 1)
    remembered.requeued(receipt("b", other), 2)
    remembered.finished(receipt("c", other))
    assert.deepStrictEqual(["a", "b", "b"].map(remembered.takeDue), [1, 2, undefined])
    assert.deepStrictEqual(["a", "c"].map(remembered.isFinished), [false, true])
  })

  it("twins have the same nonce on different nsqd; a message without a nonce has no twin", () => {
    const twins = Remembered.makeDuplicates()
    const other = { node: { ...node, name: "h:4250", identity: "other" } }
    twins.finished(receipt("a", {}, "n"))
    twins.finished(receipt("b"))
    // Published once more on the same nsqd, by somebody who copies bytes.
    assert.isFalse(twins.takeFinished(receipt("d", {}, "n")))
    assert.isFalse(twins.takeFinished(receipt("e", other, "m")))
    assert.isFalse(twins.takeFinished(receipt("b", other)))
    // Another address of the same nsqd.
    const alias = { node: { ...node, name: "localhost:4150" } }
    assert.isFalse(twins.takeFinished(receipt("h", alias, "n")))
    const twin = receipt("c", other, "n")
    assert.isTrue(twins.takeFinished(twin))
    // There is one twin, however often somebody copies its bytes.
    twins.finished(twin)
    assert.isFalse(twins.takeFinished(receipt("f", {}, "n")))
    assert.isFalse(twins.takeFinished(receipt("g", other, "n")))
  })

  it("twins that both ran have no further one", () => {
    const twins = Remembered.makeDuplicates()
    const other = { node: { ...node, name: "h:4250", identity: "other" } }
    twins.finished(receipt("a", {}, "n"))
    twins.finished(receipt("b", other, "n"))
    assert.isFalse(twins.takeFinished(receipt("c", {}, "n")))
    assert.isFalse(twins.takeFinished(receipt("d", other, "n")))
  })
})
