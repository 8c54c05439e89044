import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { AsyncLocalStorage } from "node:async_hooks"
import { inspect } from "node:util"
import { NsqOptions } from "../src/index.ts"

const decode = NsqOptions.decode
const ok = (options: NsqOptions.Options) => Result.getOrThrow(decode(options))

describe("addresses", () => {
  it.each([
    ["nsq://h", ["h:4150"], ["http://h:4151"], []],
    ["nsq://h:1", ["h:1"], ["http://h:2"], []],
    ["nsq://[::1]:1", ["::1:1"], ["http://[::1]:2"], []],
    ["nsq://h:1?nsqd=i,j:5", ["h:1", "i:4150", "j:5"], ["http://h:2", "http://i:4151", "http://j:6"], []],
    ["nsq://h:1?nsqdHttp=x:9", ["h:1"], ["http://x:9"], []],
    ["nsq://h:1?nsqdHttp=https://x/nsqd/", ["h:1"], ["https://x/nsqd"], []],
    ["nsq://h:1?http=false", ["h:1"], [undefined], []],
    ["nsq://?lookupd=a,b:7", [], [], ["http://a:4161", "http://b:7"]],
    ["nsq:?lookupd=a", [], [], ["http://a:4161"]],
    ["nsq://h?lookupd=a", ["h:4150"], ["http://h:4151"], ["http://a:4161"]]
  ] as const)("%s", (url, nsqd, http, lookupd) => {
    const settings = ok({ url })
    assert.deepStrictEqual(
      settings.nsqd.map(({ host, port }) => `${host}:${port}`),
      [...nsqd]
    )
    assert.deepStrictEqual(
      settings.nsqd.map((address) => address.http?.url),
      [...http]
    )
    assert.deepStrictEqual(
      settings.lookupd.map((each) => each.url),
      [...lookupd]
    )
  })

  it("are that of this machine when there is none", () =>
    assert.deepStrictEqual(ok({}).nsqd, [
      { host: "127.0.0.1", port: 4150, http: { url: "http://127.0.0.1:4151", tls: {} } }
    ]))

  it("come from lists in code, too", () =>
    assert.deepInclude(ok({ nsqd: ["a:1"], lookupd: ["b"] }).nsqd, {
      host: "a",
      port: 1,
      http: { url: "http://a:2", tls: {} }
    }))
})

describe("options", () => {
  it("come from the query as well, and code beats the query", () => {
    const url = "nsq://h?retry=exact&publishTimeout=500&channel=billing&create=false&tls=true"
    const settings = ok({ url, publishTimeout: 700 })
    assert.deepInclude(settings, { retry: "exact", publishTimeout: 700, channel: "billing", create: false })
    assert.deepStrictEqual(settings.tls, {})
  })

  it("have defaults", () =>
    assert.deepInclude(ok({}), {
      retry: "native",
      envelope: "always",
      channel: "requeue",
      create: true,
      http: true,
      publishOver: "first",
      publishTo: 1,
      authInClear: false,
      tls: undefined
    }))

  it("take the secret from the URL or from elsewhere", () => {
    assert.strictEqual(Redacted.value(ok({ url: "nsq://:s%2Fx@localhost" }).secret!), "s/x")
    assert.strictEqual(Redacted.value(ok({ url: "nsq://:s@[::1]", authSecret: Redacted.make("t") }).secret!), "t")
    assert.isUndefined(ok({ url: "nsq://h" }).secret)
  })

  it.each([
    ["nonsense", "url"],
    ["http://h", "url"],
    ["nsq://h/orders", "url"],
    ["nsq://user:secret@h", "url"],
    ["nsq://:%zz@h", "url"],
    ["nsq://a:1,b:2", "url"],
    ["nsq://h?retry=a&retry=b", "url"],
    ["nsq://h?nonsense=1", "url"],
    ["nsq://h#x", "url"],
    ["nsq://:pa/ss@h", "url"],
    ["nsq://h?retry=often", "retry"],
    ["nsq://h?heartbeat=0", "heartbeat"],
    ["nsq://h?heartbeat=abc", "heartbeat"],
    ["nsq://h?messageTimeout=999", "messageTimeout"],
    ["nsq://h?channel=a/b", "channel"],
    ["nsq://h?channel=", "channel"],
    ["nsq://h?nsqd=a:b:c", "nsqd[0]"],
    ["nsq://h?lookupd=", "lookupd[0]"],
    ["nsq://h?tls=maybe", "tls"],
    ["nsq://h?publishTo=3", "publishTo"],
    ["nsq://h?publishTo=2", "publishTo"],
    ["nsq://h?nsqdHttp=a,b", "nsqdHttp"],
    ["nsq://h?reconnectFirst=600&reconnectMax=500", "reconnectMax"]
  ])("refuse %s", (url, field) => {
    const refused = decode({ url })
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) assert.strictEqual(refused.failure.field, field)
  })

  it.each<[string, RegExp]>([
    ["nsq hunter2", /url.*the value is not a valid URL.*nsq:\/\//],
    ["amqp://:hunter2@host", /scheme amqp: is not nsq:/],
    ["nsq://hunter2:x@host", /user name/],
    ["nsq://:hunter2@host/orders", /path/],
    ["nsq://:hunter2@host?prefetch=5", /a parameter that is not an option.*Allowed:/],
    ["nsq://:hunter2@host?heartbeat=5", /heartbeat/]
  ])("say what is wrong with a URL, without its secret: %s", (url, words) => {
    const refused = decode({ url })
    const told = Result.isFailure(refused) ? refused.failure.message : ""
    assert.match(told, words)
    assert.notInclude(told, "hunter2")
  })

  it.each<[keyof NsqOptions.Options, string]>([
    ["nsqd", "127.0.0.1:70000"],
    ["nsqd", "h:0"],
    ["nsqd", "h\0"],
    ["nsqdHttp", "h:70000"],
    ["lookupd", "http://h:70000"]
  ])("refuse what nothing can be connected to: %s %s", (name, address) => {
    const refused = decode({ [name]: [address] })
    assert.strictEqual(Result.isFailure(refused) ? refused.failure.field : "", `${name}[0]`)
  })

  it("keep a secret from those between, unless that is asked for", () => {
    for (const options of [{ url: "nsq://:s@h" }, { url: "nsq://:s@127.0.0.1?nsqd=10.0.0.1" }]) {
      const refused = decode(options)
      assert.strictEqual(Result.isFailure(refused) ? refused.failure.field : "", "authSecret")
      assert.isTrue(Result.isSuccess(decode({ ...options, tls: true })))
      assert.isTrue(Result.isSuccess(decode({ ...options, authInClear: true })))
    }
    for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"]) ok({ url: `nsq://:s@${host}` })
  })

  it.each<[NsqOptions.Options, string]>([
    [{ tls: { cart: "a" } as NsqOptions.Tls }, "tls.cart"],
    [{ tls: { rejectUnauthorized: "no" } as never }, "tls.rejectUnauthorized"],
    [{ tls: { serverName: "a" } as NsqOptions.Tls }, "tls.serverName"],
    [{ tls: { cert: "-----BEGIN A" } }, "tls.cert"],
    [{ tls: { key: "-----BEGIN A" } }, "tls.key"],
    [{ tls: "yes" as never }, "tls"],
    [{ httpTls: { cart: "a" } as NsqOptions.Tls }, "httpTls.cart"],
    [{ httpTls: true as never }, "httpTls"],
    [{ resolveAddress: "host" as never, lookupd: ["a"] }, "resolveAddress"],
    [{ resolveAddress: () => undefined }, "resolveAddress"],
    [{ authSecret: "" }, "authSecret"]
  ])("refuse what would be less than it looks: %o", (options, field) => {
    const refused = decode(options)
    assert.strictEqual(Result.isFailure(refused) ? refused.failure.field : "", field)
  })

  it("check HTTP interfaces as connections, and other names by their own", () => {
    const tls = { ca: "-----BEGIN A", servername: "nsqd" }
    const shared = ok({ url: "nsq://h?lookupd=l", tls })
    assert.deepStrictEqual([shared.nsqd[0]?.http?.tls, shared.lookupd[0]?.tls], [tls, { ca: "-----BEGIN A" }])
    const own = ok({ url: "nsq://h?lookupd=l", tls, httpTls: { ca: "-----BEGIN B" } })
    assert.deepStrictEqual(
      [own.nsqd[0]?.http?.tls, own.lookupd[0]?.tls],
      [{ ca: "-----BEGIN B" }, { ca: "-----BEGIN B" }]
    )
    assert.deepStrictEqual([own.httpTls, own.tls], [{ ca: "-----BEGIN B" }, tls])
  })

  it("take a passphrase as text, and show it no more", () =>
    assert.notInclude(
      inspect(ok({ tls: { cert: "-----BEGIN C", key: "-----BEGIN K", passphrase: "hunter2" } }), { depth: 9 }),
      "hunter2"
    ))

  it("never show a secret", () => {
    const secret = "hunter2"
    const settings = ok({ url: `nsq://:${secret}@h?tls=true` })
    assert.notInclude(inspect(settings, { depth: 9 }), secret)
    assert.notInclude(JSON.stringify(settings), secret)
    for (const url of [`nsq://:${secret}@h?retry=x`, `nsq://:${secret}@h/a/b`, `nsg://:${secret}@h`]) {
      const refused = decode({ url })
      if (Result.isFailure(refused)) assert.notInclude(inspect(refused.failure), secret)
    }
  })
})

it.each(["5s", "5 seconds", "5000ms", "5000"])("a duration is written as everywhere else: %s", (text) => {
  assert.strictEqual(ok({ url: `nsq://h?requestTimeout=${encodeURIComponent(text)}` }).requestTimeout, 5000)
  assert.strictEqual(ok({ url: "nsq://h", requestTimeout: text as "5s" }).requestTimeout, 5000)
})

it("resolveAddress runs in the async context of the options, and not in that of a send or of a lookup", () => {
  const storage = new AsyncLocalStorage<string>()
  const resolveAddress = (found: NsqOptions.Discovered) => ({ ...found, host: storage.getStore() ?? "none" })
  const settings = storage.run("client", () => ok({ lookupd: ["a"], resolveAddress }))
  const found = { host: "h", port: 4150, httpPort: 4151, hostname: "h", version: "1.3.0" }
  const located = storage.run("request", () => settings.resolveAddress?.(found))
  assert.deepStrictEqual(located, { ...found, host: "client" })
})
