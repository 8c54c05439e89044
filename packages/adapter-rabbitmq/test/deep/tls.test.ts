/** TLS as it was asked for, or no connection: certificates of servers and of clients. */
import { certificate, start } from "@requeue/brokers"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { afterAll, assert, describe, test } from "vitest"
import { RabbitMqBroker, type RabbitMqOptions } from "../../src/index.ts"
import { outgoing, queueName } from "../world.ts"

const ours = certificate("ours")
const theirs = certificate("theirs")
const own = certificate("rabbit.test", ours)
const requeue = certificate("requeue", ours)
const nobody = certificate("nobody", ours)
const stranger = certificate("stranger", theirs)

const broker = await start("rabbitmq", {
  version: process.env["REQUEUE_RABBITMQ_VERSION"] ?? "newest",
  tls: { ca: ours.cert, ...own }
})
afterAll(broker.dispose)

const plain = new URL(broker.url)
const url = broker.nodes[0]!.tlsUrl!
const trusted = { ca: ours.cert, servername: "rabbit.test" }
const account = { url, username: plain.username, password: plain.password }

/** Publishes a message, and answers what that failed with. */
const failureOf = (options: RabbitMqOptions.Options): Promise<string> => {
  const sent = Effect.gen(function* () {
    const connected = yield* RabbitMqBroker.make(options)
    yield* connected.publish([outgoing(queueName("tls"), "a")])
  })
  const told = Effect.match(sent, { onSuccess: () => "", onFailure: ({ message }) => message })
  return Effect.runPromise(Effect.scoped(told))
}

describe("a connection by amqps:", () => {
  test("is made where authority and name are the server's", async () => {
    assert.strictEqual(await failureOf({ ...account, tls: trusted }), "")
  })

  test.each<[string, RabbitMqOptions.Tls, RegExp]>([
    ["an authority that is not known", { servername: "rabbit.test" }, /certificate.*certificate authority/s],
    ["another authority", { ca: theirs.cert, servername: "rabbit.test" }, /certificate.*certificate authority/s],
    ["another name", { ca: ours.cert, servername: "other.test" }, /altnames.*host name/s],
    ["the name of the address", { ca: ours.cert }, /altnames.*host name/s]
  ])("is refused with %s", async (_, tls, message) => {
    assert.match(await failureOf({ ...account, tls }), message)
  })

  test("is not waited for with an untrusted certificate, nor with a wrong password", async () => {
    const refused = (options: RabbitMqOptions.Options) => connect(RabbitMqBroker.layer(options)).catch(String)
    const certificates = await refused({ ...account, tls: { ca: theirs.cert, servername: "rabbit.test" } })
    assert.match(String(certificates), /certificate authority/)
    const password = await refused({ ...account, password: "wrong", tls: trusted })
    assert.match(String(password), /AccessRefused/)
    for (const error of [certificates, password]) assert.notMatch(String(error), /attempts? in/)
  })

  test("is refused where the server speaks no TLS, and by amqp: where it speaks nothing else", async () => {
    const [without, only] = [`amqps://127.0.0.1:${plain.port}`, `amqp://127.0.0.1:${new URL(url).port}`]
    assert.match(await failureOf({ ...account, url: without, tls: trusted }), /does not support TLS on this port/)
    assert.match(await failureOf({ ...account, url: only }), /ConnectionFailed.*write amqps:/)
  })
})

describe("a client's certificate", () => {
  const external = { url, auth: "external" } as const

  test("logs in as the user that it is made for", async () => {
    assert.strictEqual(await failureOf({ ...external, tls: { ...trusted, ...requeue } }), "")
  })

  test("goes along with a password", async () => {
    assert.strictEqual(await failureOf({ ...account, tls: { ...trusted, ...nobody } }), "")
  })

  test.each<[string, RabbitMqOptions.Tls]>([
    ["is for a user who is not there", { ...trusted, ...nobody }],
    ["is not there", trusted]
  ])("that %s logs nobody in", async (_, tls) => {
    assert.match(await failureOf({ ...external, tls }), /AccessRefused.*Check the client certificate/)
  })

  test("of an authority that the server does not know is refused", async () => {
    assert.match(await failureOf({ ...external, tls: { ...trusted, ...stranger } }), /certificate|unknown ca|TLS/i)
  })
})
