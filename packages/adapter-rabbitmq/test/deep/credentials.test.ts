/** Credentials by a function: for every connection, and again before a token ends. */
import { proxy, start } from "@requeue/brokers"
import { BrokerError, Consumer } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { generateKeyPairSync, sign } from "node:crypto"
import { afterAll, assert, describe, test } from "vitest"
import { RabbitMqBroker, RabbitMqOptions } from "../../src/index.ts"
import { on, outgoing, queueName, until } from "../world.ts"

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
const broker = await start("rabbitmq", {
  version: process.env["REQUEUE_RABBITMQ_VERSION"] ?? "newest",
  tokenKey: publicKey.export({ type: "spki", format: "pem" }).toString()
})
afterAll(broker.dispose)
const url = `amqp://${new URL(broker.url).host}`

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")

/** A token that ends after so many milliseconds, rounded up to seconds. */
const token = (life: number) => {
  const expiresAt = Math.ceil((Date.now() + life) / 1000) * 1000
  const scope = ["configure", "read", "write"].map((right) => `requeue.${right}:*/*`)
  const claims = { sub: "tests", client_id: "tests", aud: ["requeue"], scope, exp: expiresAt / 1000 }
  const text = `${part({ alg: "RS256", typ: "JWT", kid: "tests" })}.${part(claims)}`
  return { password: `${text}.${sign("sha256", Buffer.from(text), privateKey).toString("base64url")}`, expiresAt }
}

const failureOf = (options: RabbitMqOptions.Options) =>
  Effect.runPromise(Effect.scoped(Effect.flip(RabbitMqBroker.make(options))))

describe("credentials by a function", () => {
  test("log in, and do so again with every connection", async () => {
    const { password, username } = new URL(broker.url)
    const between = await proxy(broker.nodes[0]!.port)
    let asked = 0
    const credentials = () => ({ username, password: (asked++, password) })
    try {
      await on({ url: `amqp://127.0.0.1:${between.port}`, credentials }, (made) =>
        Effect.gen(function* () {
          yield* made.publish([outgoing(queueName("asked"), "a")])
          const before = asked
          assert.strictEqual(before, 2)
          between.cut()
          yield* until("two more connections", () => asked >= before + 2)
          yield* until("a connection", () => made.connection().state === "up")
          yield* made.publish([outgoing(queueName("asked"), "b")])
        })
      )
    } finally {
      await between.close()
    }
  })

  test("that are tokens are renewed before they end: the connections stay, and work goes on", async () => {
    const queue = queueName("token")
    const made: Array<number> = []
    const handled: Array<string> = []
    const credentials = async () => {
      const fresh = token(5000)
      made.push(fresh.expiresAt)
      return fresh
    }
    await on({ url, credentials }, (one) =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, {}, (message) => void handled.push(message.id))
        const since = one.connection()
        const first = made[1]!
        for (let count = 0; Date.now() < first + 6000; count++) {
          yield* one.publish([outgoing(queue, `m${count}`)])
          yield* until("it is handled", () => handled.length > count)
          yield* Effect.sleep(100)
        }
        // It is up since the start: no connection has ended.
        assert.deepStrictEqual(one.connection(), since)
      })
    )
    assert.isAtLeast(made.length, 6)
  })

  // RabbitMQ 4.3 ends a connection whose token has ended. 3.10 leaves it open.
  test("that are not renewed in time are asked for again, and then work goes on", async () => {
    const queue = queueName("ended")
    let answers = 0
    const credentials = async () => {
      answers++
      if (answers > 2 && answers < 8) throw new Error("the identity provider is away")
      return token(3000)
    }
    const handled: Array<string> = []
    await on({ url, credentials }, (one) =>
      Effect.gen(function* () {
        yield* Consumer.start(queue, {}, (message) => void handled.push(message.id))
        yield* until("the provider to be back", () => answers >= 8)
        yield* Effect.retry(one.publish([outgoing(queue, "a")]), Schedule.spaced(100))
        yield* until("it is handled", () => handled.includes("a"))
      })
    )
  })

  test.each<[string, RabbitMqOptions.Options["credentials"], RegExp]>([
    ["fails", () => Promise.reject(new Error("with hunter2")), /credentials: the function has failed with Error;/],
    [
      "fails with a code",
      () => Promise.reject(Object.assign(new TypeError("hunter2"), { cause: { code: "ECONNREFUSED" } })),
      /failed with TypeError \(ECONNREFUSED\);/
    ],
    [
      "fails with names that are secrets",
      () => Promise.reject(Object.assign(new Error("x"), { name: "token hunter2", code: "it is hunter2" })),
      /failed with an error;/
    ],
    [
      "throws",
      () => {
        throw new TypeError("with hunter2")
      },
      /credentials: the function has failed with TypeError;/
    ],
    ["hangs", () => new Promise(() => {}), /credentials: the function did not return within 1s/],
    ["answers nothing", () => undefined as never, /credentials: the function did not return an object/],
    ["answers no text", () => ({ password: 5 as never }), /credentials: the password is not a string/],
    [
      "answers no time",
      () => ({ password: "x", expiresAt: "soon" as never }),
      /credentials: expiresAt is not a number/
    ],
    ["answers a wrong token", () => ({ password: "hunter2" }), /AccessRefused/]
  ])("that are of a function that %s are an error of the start", async (_, credentials, message) => {
    const error = await failureOf({ url, credentials, connectTimeout: 1000 })
    assert.instanceOf(error, BrokerError.BrokerError)
    assert.match(error.message, message)
    assert.notInclude(error.message, "hunter2")
  })
})
