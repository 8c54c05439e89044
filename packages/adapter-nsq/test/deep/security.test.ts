/** TLS that is asked for is had, and a secret goes to nobody in the clear, whoever is between us and nsqd. */
import { certificate, nsqProxy, type NsqFrame, type NsqProxy } from "@requeue/brokers"
import { BrokerError } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer as createHttp } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, test } from "vitest"
import { NsqBroker, type NsqOptions } from "../../src/index.ts"
import { server } from "./server.ts"
import { consume, on, outgoing, publishAll, queueName, until, type Run } from "../world.ts"

const secret = "hunter2"

/** Lets everybody do everything who knows the secret. https://nsq.io/components/nsqd.html#auth */
const authority = createHttp((request, response) => {
  const given = new URL(request.url ?? "/", "http://host").searchParams.get("secret")
  if (given !== secret) return void response.writeHead(403).end("{}")
  const authorizations = [{ topic: ".*", channels: [".*"], permissions: ["subscribe", "publish"] }]
  response.end(JSON.stringify({ ttl: 3600, identity: "test", authorizations }))
})
await new Promise<void>((resolve) => authority.listen(0, "127.0.0.1", resolve))
afterAll(() => authority.close())
const auth = { "auth-http-address": `127.0.0.1:${(authority.address() as AddressInfo).port}` }

const folder = mkdtempSync(join(tmpdir(), "requeue-nsq-security-"))
afterAll(() => rmSync(folder, { recursive: true }))
const file = (name: string, pem: string): string => {
  writeFileSync(join(folder, name), pem)
  return join(folder, name)
}
const { cert: ca, key } = certificate("nsqd.test")
const encrypted = { "tls-cert": file("cert.pem", ca), "tls-key": file("key.pem", key) }
const tls = { ca, servername: "nsqd.test" }

const plain = await server()
const guarded = await server({ flags: auth })
const secure = await server({ flags: { ...encrypted, ...auth } })
const uncompressed = await server({ flags: { snappy: "false", deflate: "false" } })

/** The addresses of an nsqd behind a proxy that does this with its answers. */
const behind = async (
  { broker, http }: typeof plain,
  change?: Parameters<typeof nsqProxy>[1]
): Promise<NsqProxy & { readonly at: NsqOptions.Options }> => {
  const between = await nsqProxy(broker.nodes[0]!.port, change)
  afterAll(() => between.close())
  return { ...between, at: { nsqd: [`127.0.0.1:${between.port}`], nsqdHttp: [http[0]] } }
}

/** Changes nsqd's answer to `IDENTIFY`. */
const saying =
  (claims: Readonly<Record<string, unknown>>) =>
  (frame: NsqFrame, index: number): ReadonlyArray<NsqFrame> =>
    index > 0
      ? [frame]
      : [{ ...frame, data: Buffer.from(JSON.stringify({ ...JSON.parse(frame.data.toString()), ...claims })) }]

const text = (data: string): NsqFrame => ({ type: "response", data: Buffer.from(data) })

/** A message that nobody has asked for. */
const stray: NsqFrame = { type: "message", data: Buffer.alloc(30) }

/** Starts a broker and publishes one message, which must fail before anything but `IDENTIFY` has left us. */
const refusal = async (options: NsqOptions.Options) => {
  const started = Effect.flatMap(NsqBroker.make(options), (broker) =>
    broker.publish([outgoing(queueName("refused"), "m")])
  )
  const error = await Effect.runPromise(Effect.flip(Effect.scoped(started)))
  assert.notInclude(String(error), secret)
  return error
}

const insistOnNothingSent = ({ commands, hasSeen }: NsqProxy): void => {
  assert.deepStrictEqual([...new Set(commands().map(({ name }) => name))], ["IDENTIFY"])
  assert.isFalse(hasSeen(secret))
}

const insistOn = (error: unknown, reason: BrokerError.Reason, detail: RegExp, remedy: RegExp): void => {
  assert.instanceOf(error, BrokerError.BrokerError)
  assert.strictEqual(error.reason, reason)
  assert.match(error.detail, detail)
  assert.match(error.remedy ?? "", remedy)
}

describe("TLS that is asked for", () => {
  test("of an nsqd that has none", async () => {
    const between = await behind(plain)
    const error = await refusal({ ...between.at, tls: true })
    insistOn(error, "AccessRefused", /tls is set.*does not offer TLS/, /--tls-cert.*tls/)
    insistOnNothingSent(between)
  })

  test.each<[string, (frame: NsqFrame, index: number) => ReadonlyArray<NsqFrame>]>([
    ["that there is none", saying({ tls_v1: false })],
    ["no word of it", (frame, index) => (index > 0 ? [frame] : [text("OK")])],
    [
      "that there is none, after a message",
      (frame, index) => (index > 0 ? [frame] : [stray, ...saying({ tls_v1: false })(frame, 0)])
    ],
    ["more than it may before TLS begins", (frame, index) => (index > 0 ? [frame] : [frame, text("OK"), text("OK")])]
  ])("and somebody between who says %s", async (_, change) => {
    const between = await behind(secure, change)
    const error = await refusal({ ...between.at, tls, authSecret: secret })
    insistOn(error, "AccessRefused", /TLS/, /tls|between/)
    insistOnNothingSent(between)
  })

  test("protects the secret", async () => {
    const between = await behind(secure)
    const runs: Array<Run> = []
    const queue = queueName("protected")
    await on({ ...between.at, tls, authSecret: secret }, (broker) =>
      Effect.gen(function* () {
        yield* consume(queue, runs)
        yield* publishAll(broker, queue, ["m"])
        yield* until("a run", () => runs.length === 1)
      })
    )
    insistOnNothingSent(between)
  })

  test("is wanted again of a connection that is made again", async () => {
    let isTampering = false
    const lies = saying({ tls_v1: false })
    const between = await behind(secure, (frame, index) => (isTampering ? lies(frame, index) : [frame]))
    await on({ ...between.at, tls, authSecret: secret, reconnectFirst: 20 }, (broker) =>
      Effect.gen(function* () {
        isTampering = true
        const before = between.commands().length
        between.cut()
        yield* until("some attempts", () => between.commands().length > before + 2)
        const { because, state } = broker.connection()
        assert.strictEqual(state, "down")
        assert.match(because ?? "", /AccessRefused/)
        assert.notInclude(because, secret)
        isTampering = false
        yield* broker.publish([outgoing(queueName("again"), "m")])
      })
    )
    insistOnNothingSent(between)
  })
})

describe("a secret", () => {
  const echo = (frame: NsqFrame): NsqFrame => ({
    ...frame,
    type: "error",
    data: Buffer.from(`E_AUTH_FAILED ${secret}`)
  })

  test.each([0, 1])("is in no error, though nsqd sends it back as its answer %i", async (place) => {
    const between = await behind(guarded, (frame, index) => [index === place ? echo(frame) : frame])
    insistOn(await refusal({ ...between.at, authSecret: secret }), "AccessRefused", /<redacted>/, /authSecret/)
  })

  test("that is refused while the program runs makes its consumer down, and says so; a send says it as well", async () => {
    let isRefusing = false
    const between = await behind(guarded, (frame, index) =>
      isRefusing && index === 1 ? [{ type: "error", data: Buffer.from("E_AUTH_FAILED revoked") }] : [frame]
    )
    const options = { ...between.at, authSecret: secret, reconnectFirst: 20, publishTimeout: 1000 }
    const queue = queueName("revoked")
    await on(options, (broker) =>
      Effect.gen(function* () {
        const { health } = yield* consume(queue, [])
        isRefusing = true
        between.cut()
        // It is down before the first attempt to connect again is refused.
        const isRefused = () => /AccessRefused.*revoked/.test(health().trouble?.because ?? "")
        yield* until("a consumer that says what is refused", isRefused)
        assert.strictEqual(health().state, "down")
        const error = yield* Effect.flip(broker.publish([outgoing(queue, "m")]))
        insistOn(error, "ConnectionFailed", /E_AUTH_FAILED revoked/, /authSecret/)
        isRefusing = false
        yield* until("a consumer that runs", () => health().state === "running")
        yield* broker.publish([outgoing(queue, "m")])
      })
    )
  })
})

describe("a secret in the clear", () => {
  const elsewhere = { nsqd: [guarded.direct.nsqd![0]!.replace("127.0.0.1", "0.0.0.0")] }

  test("goes to nobody that nsqlookupd names", async () => {
    const own = await behind(guarded)
    const named = { host: "0.0.0.0", port: own.port, httpPort: Number(guarded.http[0].split(":")[1]) }
    const error = await refusal({ ...guarded.found, resolveAddress: () => named, authSecret: secret })
    insistOn(error, "AccessRefused", /authSecret.*clear/, /tls.*authInClear/)
    assert.deepStrictEqual(own.commands(), [])
  })

  test.each<[string, NsqOptions.Options]>([
    ["this machine", guarded.direct],
    ["anybody, if that is asked for", { ...elsewhere, authInClear: true }]
  ])("may go to %s", async (_, options) => {
    await on({ ...options, authSecret: secret }, (broker) => broker.publish([outgoing(queueName("clear"), "m")]))
  })
})

describe("an nsqd", () => {
  test("that wants a secret where none is given refuses a start that only publishes", async () => {
    const between = await behind(guarded)
    const error = await Effect.runPromise(Effect.flip(Effect.scoped(NsqBroker.make(between.at))))
    insistOn(error, "AccessRefused", /secret/, /authSecret/)
    insistOnNothingSent(between)
  })

  test("that refuses the secret refuses the start", async () => {
    const error = await Effect.runPromise(
      Effect.flip(Effect.scoped(NsqBroker.make({ ...guarded.direct, authSecret: "wrong" })))
    )
    insistOn(error, "AccessRefused", /E_AUTH/, /authSecret/)
  })

  const logged = async (options: NsqOptions.Options, connections = 1): Promise<ReadonlyArray<string>> => {
    const lines: Array<string> = []
    const logs = Logger.layer([
      Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
    ])
    for (let count = 0; count < connections; count++) {
      await Effect.runPromise(Effect.scoped(NsqBroker.make(options)).pipe(Effect.provide(logs)))
    }
    return lines
  }

  test("that wants no secret is not told it, and that is logged", async () => {
    const between = await behind(plain)
    const lines = await logged({ ...between.at, authSecret: secret })
    assert.deepStrictEqual(lines, ["Warn nsqd does not require a secret: authSecret was not sent"])
    insistOnNothingSent(between)
  })

  test.each(["snappy", "deflate"] as const)("that has no %s is used without it, and that is logged", async (how) => {
    const lines = await logged({ ...uncompressed.direct, compression: how })
    assert.deepStrictEqual(lines, [`Warn nsqd does not offer ${how}: this connection is not compressed`])
  })
})
