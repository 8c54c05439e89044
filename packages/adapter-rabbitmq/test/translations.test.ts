import { assert, describe, it } from "@effect/vitest"
import { Metadata, Outgoing, Settlement } from "@requeue/core/port"
import type { Incoming, Properties } from "../src/internal/client.ts"
import { timedOut, unconnected, unreached } from "../src/internal/connect/request.ts"
import * as Names from "../src/internal/names.ts"
import { textOf, toBrokerError } from "../src/internal/toBrokerError.ts"
import { type Input, mustReplace, toCommand } from "../src/internal/settle/toCommand.ts"
import { toDelivery } from "../src/internal/consume/toDelivery.ts"
import { direct, toPublication } from "../src/internal/publish/toPublication.ts"
import { countsReleases } from "../src/internal/version.ts"
import * as Frames from "./frames.ts"
import { bytes } from "./world.ts"

const now = Date.UTC(2030, 0, 1)

const incoming = (properties: Properties, redelivered = false, body = "{}"): Incoming => ({
  content: Buffer.from(body),
  fields: { deliveryTag: 1, exchange: "", routingKey: "q", redelivered },
  properties
})

const source = { type: "quorum", serverVersion: "4.2.0", keepsNotBefore: false, now: () => now } as const

const metadata = { ...Metadata.make("m1", now - 1000), attempts: 2, notBefore: now + 500 }

const ours = (headers: Record<string, unknown> = {}, redelivered = false) =>
  incoming(
    { messageId: "m1", headers: { requeue: Metadata.encode(metadata), "requeue-copy": "c1", ...headers } },
    redelivered
  )

describe("toDelivery", () => {
  it.each([
    ["the first delivery of a copy", "4.3.6", false, {}, 3],
    ["a copy that failed twice", "4.2.0", true, { "x-delivery-count": 2 }, 5],
    [
      "a copy that failed twice, and was given back",
      "4.3.6",
      true,
      { "x-delivery-count": 2, "x-acquired-count": 3 },
      5
    ],
    ["a count of 0, as older servers send it", "3.10.8", false, { "x-delivery-count": 0 }, 3],
    ["what was acquired and given back", "4.3.6", true, { "x-acquired-count": 7 }, 3],
    [
      "a count of former returns that somebody made up",
      "4.2.0",
      true,
      { "x-delivery-count": 2, "requeue-returns": 8 },
      5
    ],
    [
      "a text of former returns that somebody made up",
      "4.2.0",
      false,
      { "requeue-returns": `8 ${"A".repeat(43)}=` },
      3
    ],
    // A dead letter that was browsed, and moved back by a shovel with its headers.
    ["a count that somebody sent", "4.2.0", false, { "x-delivery-count": 50 }, 3],
    ["counts that somebody sent", "4.3.6", false, { "x-delivery-count": 50, "x-acquired-count": 60 }, 3],
    [
      "a count that somebody sent, given back once",
      "4.3.6",
      true,
      { "x-delivery-count": 50, "x-acquired-count": 1 },
      3
    ],
    ["an acquired count that somebody sent", "4.2.0", true, { "x-delivery-count": 5, "x-acquired-count": 1 }, 8],
    ["a count that is none", "4.2.0", true, { "x-delivery-count": "many" }, 3],
    ["a count that is no primitive", "4.2.0", true, { "x-delivery-count": { toString: "x" } }, 3],
    ["a negative count", "4.2.0", true, { "x-delivery-count": -4, "requeue-returns": -1 }, 3]
  ] as const)("attempts of %s, on %s", (_, serverVersion, redelivered, headers, attempts) =>
    assert.strictEqual(toDelivery(ours(headers, redelivered), { ...source, serverVersion }).attempts, attempts)
  )

  it.each([[[null]], [["yes", 5]], ["yes"], [{ reason: "expired" }]])("survives a foreign x-death: %j", (deaths) => {
    const message = ours({ "x-death": deaths })
    assert.strictEqual(toDelivery(message, source).metadata.notBefore, now + 500)
    const original = toPublication(
      Outgoing.make({ queue: "q", id: "m", body: bytes(""), headers: {}, delay: 0 }, now),
      direct("q"),
      { copy: "c", isDelay: () => false },
      message.properties
    )
    assert.notProperty(original.headers, "x-death")
  })

  it("gives up what brings out a fault of ours, with its bytes, rather than to throw", () => {
    const fault = {
      toJSON: (): never => {
        throw new TypeError("a fault")
      }
    }
    const { body, unreadable } = toDelivery(incoming({ headers: { fault } }), source)
    assert.strictEqual(new TextDecoder().decode(body), "{}")
    assert.deepStrictEqual(unreadable, { name: "TypeError", message: "a fault" })
  })

  it("counts the flag where a queue has no count", () => {
    const classic = { ...source, type: "classic" } as const
    assert.strictEqual(toDelivery(incoming({}, true), classic).attempts, 2)
    assert.strictEqual(toDelivery(incoming({}, false), classic).attempts, 1)
  })

  it("reads what belongs to us, and shows none of it", () => {
    const headers = { "x-tenant": "a", "x-death": [], "x-first-death-queue": "q", "requeue-level-3": "1", CC: ["b"] }
    const delivery = toDelivery(ours(headers), source)
    assert.deepStrictEqual(delivery.headers, { "x-tenant": "a" })
    assert.strictEqual(delivery.metadata.id, "m1")
  })

  it("trusts the server's clock when a delay queue has kept the copy", () => {
    const waited = { "x-death": [{ queue: "requeue.v1.q.delay.500", reason: "expired", count: 1 }] }
    assert.strictEqual(toDelivery(ours(waited), source).metadata.notBefore, 0)
    assert.strictEqual(toDelivery(ours(waited), { ...source, keepsNotBefore: true }).metadata.notBefore, now + 500)
    const rejected = { "x-death": [{ queue: "q", reason: "rejected", count: 1 }] }
    assert.strictEqual(toDelivery(ours(rejected), source).metadata.notBefore, now + 500)
    assert.strictEqual(toDelivery(ours(), source).metadata.notBefore, now + 500)
  })

  it("takes a foreign message as it is", () => {
    const properties = { messageId: "f1", timestamp: 1_000_000, contentType: "text/plain", headers: { n: 5, b: true } }
    const { headers, metadata: made } = toDelivery(incoming(properties), source)
    assert.deepStrictEqual(headers, { "content-type": "text/plain", n: "5", b: "true" })
    assert.deepStrictEqual([made.id, made.firstPublished, made.attempts], ["f1", 1_000_000_000, 0])
  })

  it("shows bytes in a header as text, and in base64 where they are none", () => {
    const headers = { text: Buffer.from("ü"), bytes: Buffer.of(0xff, 1) }
    assert.deepStrictEqual(toDelivery(incoming({ headers }), source).headers, { text: "ü", bytes: "/wE=" })
  })

  it("knows no time of a foreign message that has none", () => {
    const made = (properties: Properties) => toDelivery(incoming(properties), source).metadata
    assert.strictEqual(Metadata.publishedAt(made({ timestamp: 1_000_000 })), 1_000_000_000)
    assert.deepStrictEqual([made({}).firstPublished, Metadata.publishedAt(made({}))], [now, undefined])
  })

  it("derives the id of a foreign message without one: the same at every delivery", () => {
    const id = (body: string, properties: Properties = {}) =>
      toDelivery(incoming(properties, false, body), source).metadata.id
    assert.strictEqual(id("a"), id("a"))
    assert.notStrictEqual(id("a"), id("b"))
    assert.notStrictEqual(id("a"), id("a", { correlationId: "x" }))
    assert.match(id(""), /^content-[0-9a-f]{16}$/)
  })

  it.each([null, 5, "", {}, [], "{", `{"v":2}`])("survives a foreign requeue header: %j", (header) =>
    assert.strictEqual(toDelivery(incoming({ messageId: "f", headers: { requeue: header } }), source).metadata.id, "f")
  )

  it("knows where giving back counts", () => {
    const servers = ["3.10.8", "3.13.7", "4.2.0", "4.3.0", "5.0.0"]
    assert.deepStrictEqual(
      servers.map((version) => countsReleases("quorum", version)),
      [true, true, true, false, false]
    )
    assert.isTrue(countsReleases("classic", "4.3.0"))
  })
})

const delivery = { ...toDelivery(ours(), source), receipt: undefined }

const input: Input = {
  queue: "orders",
  type: "quorum",
  isSettled: false,
  returns: 0,
  isUncounted: false,
  deliveryLimit: 20,
  native: undefined,
  now: () => now
}

const failed = { name: "Error", message: "no" }

describe("toCommand", () => {
  const linear = (count: number) => Math.min(count * 500, 1200)

  it.each([
    ["ack", Settlement.Ack, {}, "Ack"],
    ["drop", Settlement.Drop("dropped", failed), {}, "Ack"],
    ["retry at once", Settlement.Retry(0), {}, "Reject"],
    ["retry at once, on a classic queue", Settlement.Retry(0), { type: "classic" }, "Copy"],
    ["retry at once, on a queue of unknown type", Settlement.Retry(0), { type: "unknown" }, "Copy"],
    ["retry at once, where nobody has told the limit", Settlement.Retry(0), { deliveryLimit: undefined }, "Copy"],
    ["retry at once, near the server's limit", Settlement.Retry(0), { returns: 9 }, "Copy"],
    ["retry at once, where the returns may be looks", Settlement.Retry(0), { isUncounted: true }, "Copy"],
    ["retry later", Settlement.Retry(100), {}, "Copy"],
    ["retry when the queue would", Settlement.Retry(1000), { native: linear, returns: 1 }, "Reject"],
    ["retry at its cap", Settlement.Retry(1200), { native: linear, returns: 7 }, "Reject"],
    ["retry otherwise than the queue would", Settlement.Retry(700), { native: linear }, "Copy"],
    ["retry at once where the queue delays", Settlement.Retry(0), { native: linear }, "Copy"],
    ["dead letter", Settlement.DeadLetter("permanent", "orders.dlq", failed), {}, "Copy"],
    ["release", Settlement.Release(), {}, "Nack"],
    ["release until later", Settlement.Release(100), {}, "Copy"],
    ["retry later of what was settled", Settlement.Retry(100), { isSettled: true }, "Ack"],
    ["retry at once of what was settled", Settlement.Retry(0), { isSettled: true }, "Ack"],
    ["release of what was settled", Settlement.Release(), { isSettled: true }, "Ack"]
  ] as const)("%s", (_, settlement, more, command) =>
    assert.strictEqual(toCommand(delivery, settlement, { ...input, ...more })._tag, command)
  )

  it.each([
    ["quorum", 0, 1, false],
    ["quorum", 7, 10, false],
    ["quorum", 8, 10, true],
    ["quorum", 1, 1, true],
    ["quorum", 5000, Number.POSITIVE_INFINITY, false],
    ["classic", 0, 10, false],
    ["classic", 1, 10, true],
    ["unknown", 0, 10, false],
    ["unknown", 1, Number.POSITIVE_INFINITY, true],
    ["quorum", 1, undefined, true]
  ] as const)("on a %s queue, after %d returns of at most %d, a copy takes its place: %s", (...input) => {
    const [type, returns, deliveryLimit, expected] = input
    const facts = { type, returns, deliveryLimit, isUncounted: false, isLimited: true }
    assert.strictEqual(mustReplace(facts), expected)
  })

  it.each([
    ["quorum", 1, 1000, true, true],
    ["quorum", 1, 1000, false, false],
    ["quorum", 750, 1000, false, true],
    ["classic", 1, Number.POSITIVE_INFINITY, true, true],
    ["classic", 1, Number.POSITIVE_INFINITY, false, false],
    ["unknown", 1, undefined, false, true]
  ] as const)("on a %s queue, a letter with %d looks of %d, for one who counts (%s): %s", (...input) => {
    const [type, returns, deliveryLimit, isLimited, expected] = input
    assert.strictEqual(mustReplace({ type, returns, deliveryLimit, isUncounted: true, isLimited }), expected)
  })

  it("a retry uses the attempt up, a release does not", () => {
    const attempts = (settlement: Settlement.Settlement) => {
      const command = toCommand(delivery, settlement, input)
      return command._tag === "Copy" ? command.outgoing.metadata.attempts : undefined
    }
    assert.deepStrictEqual([attempts(Settlement.Retry(5)), attempts(Settlement.Release(5))], [3, 2])
  })
})

describe("toPublication", () => {
  const message = Outgoing.make({ queue: "q", id: "m1", body: bytes("x"), headers: { a: "1" }, delay: 0 }, now)
  const isDelay = Names.isOfDelay({ prefix: "requeue", names: { waitingQueue: "later-{queue}" } }, "q")
  const publish = (original?: Properties, change: Partial<Outgoing.Outgoing> = {}) =>
    toPublication({ ...message, ...change }, direct("q"), { copy: "c2", isDelay }, original)
  const headersOf = (original: Properties) => publish(original).headers
  /** Headers that are integers, as they come. */
  const integers = (headers: Readonly<Record<string, number>>): Properties => ({
    headers,
    table: Frames.join(
      ...Object.entries(headers).map(([name, n]) => Frames.entry(name, Frames.value("l", Frames.u64(BigInt(n)))))
    )
  })

  it("is durable, must be routable, and goes past every exchange", () => {
    const { exchange, options, routingKey } = publish()
    assert.deepStrictEqual([exchange, routingKey], ["", "q"])
    assert.deepInclude(options, { deliveryMode: 2, mandatory: true, messageId: "m1", timestamp: now / 1000 })
  })

  it("keeps what the core does not know of", () => {
    const original = { priority: 4, correlationId: "c", replyTo: "r", type: "t", appId: "p", contentEncoding: "gzip" }
    assert.deepInclude(publish(original).options, original)
    const numbers = integers({ a: 1, b: 2, "x-delivery-count": 3, "requeue-level-1": 4 })
    const { headers, kept } = publish(numbers, { headers: { a: "1", b: "2" } })
    assert.deepStrictEqual(
      kept.map(({ bytes }) => bytes.toString("latin1")),
      ["\x01al\0\0\0\0\0\0\0\x01", "\x01bl\0\0\0\0\0\0\0\x02"]
    )
    assert.hasAllKeys(headers, ["requeue", "requeue-copy"])
  })

  it("writes what the core has changed, and leaves out what it has left out", () => {
    const { headers, kept } = publish(integers({ a: 1, b: 2 }), { headers: { a: "changed", c: "new" } })
    assert.deepInclude(headers, { a: "changed", c: "new" })
    assert.deepStrictEqual([kept, "b" in headers], [[], false])
    const typed = { contentType: "a/b" }
    assert.strictEqual(publish(typed, { headers: { "content-type": "a/b" } }).options["contentType"], "a/b")
    assert.strictEqual(publish(typed, { headers: { "content-type": "c/d" } }).options["contentType"], "c/d")
  })

  it("has the id and the time of its producer, and is stored unless that has asked for less", () => {
    const options = (original: Properties) => publish(original).options
    const { deliveryMode, messageId, timestamp } = options({ messageId: "i".repeat(255), timestamp: 5 })
    assert.deepStrictEqual([messageId, timestamp, deliveryMode], ["i".repeat(255), 5, 2])
    assert.strictEqual(options({ deliveryMode: 1 })["deliveryMode"], 1)
    assert.isUndefined(options({})["messageId"])
    // Bytes that are no text take more when they are read as text.
    assert.isUndefined(options({ correlationId: "\ufffd".repeat(100) })["correlationId"])
  })

  it("leaves behind what would lose the copy or lie about it", () => {
    const copied = publish({ headers: { "x-death": [], "x-delivery-count": 7, "x-acquired-count": 1, CC: ["x"] } })
    assert.hasAllKeys(copied.headers, ["a", "requeue", "requeue-copy"])
    assert.isUndefined(publish({ expiration: "5", userId: "guest" } as Properties).options["expiration"])
    assert.notProperty(publish({ userId: "guest" } as Properties).options, "userId")
  })

  it("keeps the record of a foreign death under our own name", () => {
    const deaths = [
      { queue: "requeue.v1.q.delay.5", reason: "expired", count: 1 },
      { queue: "legacy", reason: "rejected", exchange: "x", count: 2 }
    ]
    const death = headersOf({ headers: { "x-death": deaths } })["requeue-death"]
    assert.strictEqual(death, JSON.stringify([{ queue: "legacy", reason: "rejected", exchange: "x", count: 2 }]))
    assert.strictEqual(headersOf({ headers: { "requeue-death": "kept" } })["requeue-death"], "kept")
  })

  it.each(["requeue.v1.q.delay.5", "q.wait.v1.1500", "q_dlq_2", "q.retry", "later-q"])(
    "keeps no record of a delay in our queue %s",
    (queue) => {
      const deaths = [{ queue, reason: "expired", exchange: "", count: 1 }]
      assert.isUndefined(headersOf({ headers: { "x-death": deaths } })["requeue-death"])
      const foreign = [{ queue: `my${queue}`, reason: "expired", exchange: "", count: 1 }]
      assert.isDefined(headersOf({ headers: { "x-death": foreign } })["requeue-death"])
    }
  )

  it("tells people what became of a dead letter", () => {
    const letter = Outgoing.deadLetter(
      delivery,
      { _tag: "DeadLetter", reason: "permanent", queue: "q.dlq", error: failed },
      "q",
      now
    )
    assert.deepInclude(publish({}, letter).headers, {
      "requeue-attempts": "3",
      "requeue-reason": "permanent",
      "requeue-origin": "q",
      "requeue-error": "Error: no"
    })
  })

  it("does without an id that AMQP cannot carry", () =>
    assert.isUndefined(publish({}, { metadata: Metadata.make("ü".repeat(200), now) }).options["messageId"]))
})

describe("toBrokerError", () => {
  const login = `Handshake terminated by server: 403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN."`
  const inequivalent = `Operation failed: QueueDeclare; 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none but current is '5'"`

  it.each([
    [login, "AccessRefused", /user name and password/],
    [login.replace("PLAIN", "EXTERNAL"), "AccessRefused", /^Check the client certificate in tls/],
    [
      `Connection closed: 530 (NOT-ALLOWED) with message "NOT_ALLOWED - vhost x not found"`,
      "AccessRefused",
      /virtual host/
    ],
    [
      `Connection closed: 530 (NOT-ALLOWED) with message "NOT_ALLOWED - access to vhost '/' refused for user 'u': connection limit (1) is reached"`,
      "AccessRefused",
      /^Raise that limit/
    ],
    ["Expected ConnectionOpenOk; got <ConnectionClose channel:0>", "AccessRefused", /virtual host.*max-connections/],
    ["No channels left to allocate", "AccessRefused", /channel_max/],
    [
      `Operation failed: QueueDeclare; 403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - access to queue 'q' refused"`,
      "AccessRefused",
      /set_permissions/
    ],
    [
      `Operation failed: QueueDeclare; 403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"`,
      "AccessRefused",
      /^Use another name: only the server/
    ],
    [
      `Operation failed: QueueBind; 404 (NOT-FOUND) with message "NOT_FOUND - no queue 'amq.rabbitmq.reply-to.x' in vhost '/'"`,
      "QueueMissing",
      /RabbitMqNative\.make\({ exchange: "", routingKey: replyTo }\)/
    ],
    [inequivalent, "QueueMismatch", /queues\["q"\]\.assert: "passive"/],
    [
      `Operation failed: QueueDeclare; 404 (NOT-FOUND) with message "NOT_FOUND - no queue 'q'"`,
      "QueueMissing",
      /Create the queue/
    ],
    ["connect ECONNREFUSED 127.0.0.1:1", "ConnectionFailed", /host, port/],
    ["getaddrinfo ENOTFOUND nowhere.invalid", "ConnectionFailed", /host, port/],
    ["self-signed certificate", "ConnectionFailed", /certificate/],
    ["message nacked", "QueueFull", /room/],
    [`Channel closed by server: 404 (NOT-FOUND) with message "NOT_FOUND - no exchange 'x'"`, "QueueMissing", /declare/],
    [
      `Channel closed by server: 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - message size 200 is larger than configured max size 100"`,
      "BodyTooLarge",
      /max_message_size/
    ],
    [
      `Channel closed by server: 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}"`,
      "Unsupported",
      undefined
    ],
    [
      `Operation failed: QueueDeclare; 406 (PRECONDITION-FAILED) with message "PRECONDITION_FAILED - cannot declare queue 'q': queue limit in vhost 'small' (4) is reached"`,
      "AccessRefused",
      /^Raise that limit, such as max-queues/
    ],
    [`Channel closed by server: 541 (INTERNAL-ERROR) with message "INTERNAL_ERROR"`, "ConnectionLost", /again/],
    ["Frame size 1345270062 exceeds maxFrameSize 67108864", "ConnectionFailed", /AMQP/],
    ["SASL mechanism PLAIN is not provided by the server", "AccessRefused", /^Enable the mechanism .* set auth/],
    ["channel closed", "ConnectionLost", /the same id/],
    ["Channel ended, no reply will be forthcoming", "ConnectionLost", /the same id/],
    ["something nobody has seen", "ConnectionLost", /the same id/]
  ] as const)("%s", (text, reason, remedy) => {
    const error = toBrokerError(new Error(text), { operation: "test", queue: "q" })
    assert.strictEqual(error.reason, reason)
    if (remedy !== undefined) assert.match(error.remedy ?? "", remedy)
    assert.strictEqual(error.operation, "test")
  })

  it.each([
    ["error:05800074:x509 certificate routines::key values mismatch", /tls\.keyFile .*tls\.certFile/],
    ["error:1C800064:Provider routines::bad decrypt", /tls\.passphrase/],
    ["TLS: caFile cannot be read: ENOENT: no such file or directory, open 'ca.pem'", /Set tls\.caFile to the path/]
  ])("of our own certificates and keys names the option: %s", (text, remedy) => {
    const error = toBrokerError(new Error(text), { operation: "connect" }, "ConnectionFailed")
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.remedy ?? "", remedy)
  })

  it.each([
    ["Frame size 1345270062 exceeds maxFrameSize 67108864", true],
    ["Unknown frame type 21", true],
    ["self-signed certificate", true],
    ["Socket closed abruptly during opening handshake", false],
    ["connect ECONNREFUSED 127.0.0.1:1", false]
  ])("tells what waiting for the server cannot solve: %s", (text, isMisconfigured) =>
    assert.strictEqual(toBrokerError(new Error(text), { operation: "connect" }).isMisconfigured, isMisconfigured)
  )

  it("where there is no connection, the server's words for refusing it and their remedy are told", () => {
    const refused = toBrokerError(new Error("Expected ConnectionOpenOk; got <ConnectionClose channel:0>"), {
      operation: "connect",
      vhost: "full"
    })
    const { detail, remedy } = unconnected(2000, "publishTimeout", refused)
    assert.match(detail, /^no connection: NOT_ALLOWED - vhost full: .* a limit of connections is reached$/)
    assert.match(remedy ?? "", /raise max-connections/)
    const away = toBrokerError(new Error("connect ECONNREFUSED 127.0.0.1:1"), { operation: "connect" })
    assert.deepStrictEqual(unconnected(2000, "publishTimeout", away), {
      detail: "no connection: connect ECONNREFUSED 127.0.0.1:1",
      remedy:
        "Check host, port and TLS; is the server running? The connection is reopened automatically: try again then"
    })
    assert.deepStrictEqual(unconnected(2000, "requestTimeout", undefined), {
      detail: "no connection within 2s",
      remedy: unreached("requestTimeout")
    })
  })

  it("names a code once, of one attempt and of several", () => {
    const refused = (address: string) =>
      Object.assign(new Error(`connect ECONNREFUSED ${address}`), { code: "ECONNREFUSED" })
    const several = Object.assign(new AggregateError([refused("::1:1"), refused("127.0.0.1:1")], ""), {
      code: "ECONNREFUSED"
    })
    assert.deepStrictEqual(
      [refused("127.0.0.1:1"), several].map((cause) => toBrokerError(cause, { operation: "connect" }).detail),
      ["connect ECONNREFUSED 127.0.0.1:1", "connect ECONNREFUSED ::1:1; connect ECONNREFUSED 127.0.0.1:1"]
    )
    assert.strictEqual(textOf(Object.assign(new Error("no route"), { code: "EHOSTUNREACH" })), "EHOSTUNREACH no route")
  })

  it.each([
    ["Socket closed abruptly during opening handshake", false],
    ["Frame size 1345270062 exceeds maxFrameSize 67108864", true]
  ])("of another port has the address: %s", (text, isMisconfigured) => {
    const error = toBrokerError(new Error(text), { operation: "connect", node: "h:15672" }, "ConnectionFailed")
    assert.match(error.detail, new RegExp(`^h:15672: ${text.split(" ")[0]}`))
    assert.match(error.remedy ?? "", /15672 is for HTTP/)
    assert.strictEqual(error.isMisconfigured, isMisconfigured)
  })

  it.each([
    [new Error('Dynamic require of "node:url" is not supported'), /createRequire as toRequire .* --banner:js/],
    [new TypeError("Cannot read properties of undefined (reading 'x')"), /check the bundle and the package amqplib/],
    [Object.assign(new Error("Cannot find package 'amqplib'"), { code: "ERR_MODULE_NOT_FOUND" }), /package amqplib/]
  ])("of the program is not waited for: %s", (cause, remedy) => {
    const error = toBrokerError(cause, { operation: "connect", node: "h:1" }, "ConnectionFailed")
    assert.deepStrictEqual([error.reason, error.isMisconfigured], ["ConnectionFailed", true])
    assert.match(error.remedy ?? "", remedy)
  })

  it.each([
    "Socket closed abruptly during opening handshake",
    "Handshake terminated by server: 541 (INTERNAL-ERROR)",
    "Expected ConnectionTune; got <ConnectionClose channel:0>",
    "Unexpected close",
    "Heartbeat timeout",
    "write EPIPE",
    "read ECONNRESET",
    "connect ETIMEDOUT",
    "Client network socket disconnected before secure TLS connection was established"
  ])("of a server that may answer later is waited for: %s", (text) => {
    const error = toBrokerError(new Error(text), { operation: "connect", node: "h:1" }, "ConnectionFailed")
    assert.isTrue(error.isRetryable)
    assert.isFalse(error.isMisconfigured)
  })

  it("prints what cannot be printed", () => {
    const cause = { toString: () => Symbol("no") as unknown as string, toJSON: () => 1n }
    assert.strictEqual(toBrokerError(cause, { operation: "test" }).reason, "ConnectionLost")
  })

  it("has one full stop between the server's words and the remedy", () =>
    assert.include(
      toBrokerError(new Error(login), { operation: "connect" }).message,
      "mechanism PLAIN. Check user name"
    ))

  it("shows the server's own words", () =>
    assert.match(
      toBrokerError(new Error(inequivalent), { operation: "declare" }).detail,
      /^PRECONDITION_FAILED - ineq/
    ))
})

describe("a request without an answer in time", () => {
  it("is tried again, and only a publish is sent again", () => {
    assert.strictEqual(
      timedOut({ operation: "counts", queue: "q" }, 300).message,
      "rabbitmq: counting messages on queue q: Timeout: no answer within 300ms. " +
        "Check the load of the server and try again, or raise requestTimeout"
    )
    assert.match(
      timedOut({ operation: "publish" }, 300, "publishTimeout").message,
      /with the same id, or raise publishTimeout$/
    )
  })
})
