import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { AsyncLocalStorage } from "node:async_hooks"
import { inspect } from "node:util"
import { RabbitMqOptions } from "../src/index.ts"

const decode = RabbitMqOptions.decode
const ok = (options: RabbitMqOptions.Options) => Result.getOrThrow(decode(options))

describe("an address", () => {
  it.each([
    ["amqp://h", ["h", 5672, "/", "guest", "guest", false]],
    ["amqps://u:p@h", ["h", 5671, "/", "u", "p", true]],
    ["amqp://u:p%40%2F@h:1234/my%2Fhost", ["h", 1234, "my/host", "u", "p@/", false]],
    ["amqp://u@[::1]/v", ["::1", 5672, "v", "u", "", false]]
  ] as const)("%s", (url, expected) => {
    const { hostname, password, port, secure, username, vhost } = ok({ url }).address
    const seen: ReadonlyArray<unknown> = [hostname, port, vhost, username, Redacted.value(password), secure]
    assert.deepStrictEqual(seen, expected)
  })

  it("takes user and password from elsewhere", () => {
    const { password, username } = ok({ url: "amqp://h", username: "u", password: Redacted.make("s") }).address
    assert.deepStrictEqual([username, Redacted.value(password)], ["u", "s"])
  })
})

describe("options", () => {
  it("come from the query as well, and code beats the query", () => {
    const settings = ok({ url: "amqp://h?queueType=classic&publishTimeout=500&deliveryLimit=50", publishTimeout: 700 })
    assert.deepInclude(settings, { queueType: "classic", publishTimeout: 700, deliveryLimit: 50 })
  })

  it("have defaults", () =>
    assert.deepInclude(ok({}), { queueType: "quorum", topology: "auto", assert: "declare", deliveryLimit: 1000 }))

  it.each([
    ["nonsense", "url"],
    ["http://h", "url"],
    ["amqp://", "url"],
    ["amqp://h/a/b", "url"],
    ["amqp://u:%zz@h", "url"],
    ["amqp://h?queueType=mirrored", "queueType"],
    ["amqp://h?heartbeat=0", "heartbeat"],
    ["amqp://h?heartbeat=abc", "heartbeat"],
    ["amqp://h?deliveryLimit=1.5", "deliveryLimit"],
    ["amqp://h?nonsense=1", "url"],
    ["amqp://h#x", "url"],
    ["amqp://u:pa/ss@h", "url"],
    ["amqp://h?prefix=a%20b", "prefix"],
    ["amqp://h?topology=native&queueType=classic", "topology"],
    ["amqp://h?reconnectFirst=600", "reconnectMax"],
    ["amqp://h?prefix=a&prefix=b", "url"]
  ])("refuse %s", (url, field) => {
    const refused = decode({ url })
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) assert.strictEqual(refused.failure.field, field)
  })

  it.each<[string, RegExp]>([
    ["rabbit hunter2", /^url .*the value is not a valid URL.*amqp:\/\/user/],
    ["http://me:hunter2@host", /scheme http: is not amqp: or amqps:/],
    ["amqp://", /the URL has no host/],
    ["amqp://me:hunter2@host/a/b", /Write the slash as %2F/],
    ["amqp://me:hunter2%@host", /a % that encodes no character/],
    ["amqp://me:hunter2@host?prefetch=5", /a parameter that is not an option.*Allowed:/],
    [`amqp://me:hunter2@host/${"x".repeat(256)}`, /the virtual host has 256 bytes, AMQP carries at most 255/],
    ["amqp://me:hunter2@host?heartbeat=5", /heartbeat/]
  ])("say what is wrong with a URL, without its secret: %s", (url, words) => {
    const refused = decode({ url })
    const told = Result.isFailure(refused) ? refused.failure.message : ""
    assert.match(told, words)
    assert.notInclude(told, "hunter2")
  })

  it.each<[string, unknown]>([
    ["password", 271828],
    ["password", true],
    ["password", null],
    ["password", ["x"]],
    ["password", Buffer.from("x")],
    ["password", Redacted.make(271828)],
    ["username", 271828]
  ])("refuse %s where it is no text, as YAML makes it of digits: %o", (field, given) => {
    const refused = decode({ url: "amqp://h", [field]: given } as RabbitMqOptions.Options)
    if (Result.isSuccess(refused)) assert.fail(field)
    else assert.deepInclude(refused.failure, { field, detail: "must be text", remedy: "Put the value in quotes" })
  })

  it.each([
    ["passwort", /Did you mean password\?/],
    ["colour", /Allowed: url, username, password, credentials, tls, auth,/]
  ])("tell all names of options beside the unknown %s", (name, words) => {
    const refused = decode({ url: "amqp://h", [name]: "hunter2" } as RabbitMqOptions.Options)
    const told = Result.isFailure(refused) ? refused.failure.message : ""
    assert.match(told, words)
    assert.notInclude(told, "hunter2")
  })

  it.each<[RabbitMqOptions.Options, RegExp]>([
    [{ queues: { q: { exclusive: true, type: "quorum" } } }, /queues\.q\.exclusive.*a quorum queue cannot/],
    [{ queues: { q: { exclusive: true, assert: "passive" } } }, /queues\.q\.exclusive.*Set its assert: "declare"/],
    [{ queues: { q: { exclusive: true } }, assert: "never" }, /queues\.q\.exclusive/],
    [{ queues: { q: { deliveryLimit: 20, type: "classic" } } }, /queues\.q\.deliveryLimit/],
    [{ queueType: "classic", queues: { q: { deliveryLimit: 20 } } }, /queues\.q\.deliveryLimit.*type: "quorum"/],
    [{ credentials: "x" as never }, /must be a function/],
    [{ credentials: () => ({ password: "x" }), password: "y" }, /password is given as well/],
    [{ credentials: () => ({ password: "x" }), username: "y" }, /username is given as well/],
    [{ credentials: () => ({ password: "x" }), auth: "external" }, /logs in by certificate/]
  ])("are refused beside others that they do not go with: %o", (options, words) => {
    const refused = decode(options)
    assert.match(Result.isFailure(refused) ? refused.failure.message : "", words)
  })

  it.each<[RabbitMqOptions.Options, string]>([
    [{ url: "amqp://h", tls: { ca: "-----BEGIN A" } }, "tls"],
    [{ url: "amqps://h", tls: { cart: "a" } as RabbitMqOptions.Tls }, "tls.cart"],
    [{ url: "amqps://h", tls: { rejectUnauthorized: "no" } as never }, "tls.rejectUnauthorized"],
    [{ url: "amqps://h", tls: true as never }, "tls"],
    [{ url: "amqps://h", tls: { cert: "-----BEGIN A" } }, "tls.cert"],
    [{ url: "amqps://h", tls: { key: "-----BEGIN A" } }, "tls.key"],
    [{ management: "localhost:port" }, "management"],
    [{ management: "http://u:hunter2@h:port" }, "management"]
  ])("refuse what would be less secure than it looks: %o", (options, field) => {
    const refused = decode(options)
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) assert.strictEqual(refused.failure.field, field)
  })

  it.each<[RabbitMqOptions.Options, RegExp]>([
    [{ deliveryLimit: 5 }, /^deliveryLimit .*from 10 to 1000000, got 5/],
    [{ queues: { orders: { deliveryLimit: 5 } } }, /^queues\.orders\.deliveryLimit .*from 10 to 1000000, got 5/],
    [{ queues: { orders: { tpye: "classic" } as never } }, /^queues\.orders\.tpye .*Did you mean type\?$/],
    [{ names: { retryQueeu: "r" } as never }, /^names\.retryQueeu .*Did you mean retryQueue\?$/],
    [
      { queues: { orders: { bindings: [{ exchange: 5 as never }] } } },
      /^queues\.orders\.bindings\[0\]\.exchange .*, got 5/
    ]
  ])("are told with their place and the value: %o", (options, words) => {
    const refused = decode(options)
    assert.match(Result.isFailure(refused) ? refused.failure.message : "", words)
  })

  it.each<[RabbitMqOptions.Options, string]>([
    [{ queues: { "orders\n": {} } }, "queues"],
    [{ exchanges: { "events\r\n": { type: "topic" } } }, "exchanges"],
    [{ names: { retryQueue: "re\ntry" } }, "names.retryQueue"],
    [{ queues: { orders: { bindings: [{ exchange: "events\n" }] } } }, "queues.orders.bindings[0].exchange"],
    [
      { queues: { orders: { bindings: [{ exchange: "events", routingKey: "a\n" }] } } },
      "queues.orders.bindings[0].routingKey"
    ]
  ])("refuse a name that the server would change: %o", (options, field) => {
    const refused = decode(options)
    assert.isTrue(Result.isFailure(refused))
    if (!Result.isFailure(refused)) return
    assert.strictEqual(refused.failure.field, field)
    assert.include(refused.failure.message, "has a line break")
  })

  it("take certificates as text and as bytes", () => {
    const key = { key: Buffer.from("-----BEGIN C"), cert: "-----BEGIN E", passphrase: Redacted.make("d") }
    const tls = { ca: ["-----BEGIN A", Buffer.from("-----BEGIN B")], ...key, servername: "h" }
    assert.deepStrictEqual(ok({ url: "amqps://h", tls }).tls, tls)
  })

  it.each<[RabbitMqOptions.Tls, RegExp]>([
    [{ ca: "/etc/ca.pem" }, /^tls\.ca .*must be PEM text.* Set caFile to the path of a file$/],
    [{ cert: "a.pem", key: "b.pem" }, /^tls\.cert .*Set certFile to the path of a file$/],
    [{ ca: ["-----BEGIN A", "/etc/ca.pem"] }, /^tls\.ca .*Set caFile to the path of a file$/],
    [{ ca: Buffer.from("DER") }, /^tls\.ca .*must be PEM text/],
    [{ caFile: "/etc/ca.pem", ca: "-----BEGIN A" }, /^tls\.caFile .*ca is given as well/],
    [{ certFile: "/etc/cert.pem" }, /^tls\.certFile .*there is no key/]
  ])("take paths for what they are: %o", (tls, words) => {
    const refused = decode({ url: "amqps://h", tls })
    assert.match(Result.isFailure(refused) ? refused.failure.message : "", words)
  })

  it("have paths of certificates, which are read for each connection", () => {
    const tls = { caFile: "/etc/ca.pem", certFile: "/etc/cert.pem", key: "-----BEGIN K" }
    assert.deepStrictEqual(ok({ url: "amqps://h", tls }).tls, tls)
  })

  it("of TLS can be text of an environment variable", () =>
    assert.deepStrictEqual(ok({ url: "amqps://h", tls: { rejectUnauthorized: "false" } as never }).tls, {
      rejectUnauthorized: false
    }))

  it("never show a password", () => {
    const secret = "hunter2"
    const settings = ok({ url: `amqp://u:${secret}@h`, management: `http://u:${secret}@h:15672` })
    assert.notInclude(inspect(settings, { depth: 9 }), secret)
    assert.notInclude(JSON.stringify(settings), secret)
    for (const url of [`amqp://u:${secret}@h?queueType=x`, `amqp://u:${secret}@h/a/b`, `ampq://u:${secret}@h`]) {
      const refused = decode({ url })
      if (Result.isFailure(refused)) assert.notInclude(inspect(refused.failure), secret)
    }
  })
})

it.each(["5s", "5 seconds", "5000ms", "5000"])("a duration is written as everywhere else: %s", (text) => {
  assert.strictEqual(ok({ url: `amqp://h?requestTimeout=${encodeURIComponent(text)}` }).requestTimeout, 5000)
  assert.strictEqual(ok({ url: "amqp://h", requestTimeout: text as "5s" }).requestTimeout, 5000)
})

it("credentials runs in the async context of the options, and not in that of a send or of a reconnect", async () => {
  const storage = new AsyncLocalStorage<string>()
  const credentials = () => ({ password: storage.getStore() ?? "none" })
  const settings = storage.run("client", () => ok({ credentials }))
  assert.deepStrictEqual(await storage.run("request", async () => settings.credentials?.()), { password: "client" })
})
