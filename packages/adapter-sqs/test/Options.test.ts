import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { AsyncLocalStorage } from "node:async_hooks"
import { inspect } from "node:util"
import { SqsOptions } from "../src/index.ts"

const decode = SqsOptions.decode
const ok = (options: SqsOptions.Options) => Result.getOrThrow(decode(options))

describe("an address", () => {
  it.each([
    ["sqs://eu-west-1", [undefined, "eu-west-1", undefined, undefined]],
    ["sqs://eu-west-1/", [undefined, "eu-west-1", undefined, undefined]],
    ["sqs://us-gov-east-1/123456789012", [undefined, "us-gov-east-1", "123456789012", undefined]],
    ["sqs://key:s%2Fcret@eu-west-1", [undefined, "eu-west-1", undefined, ["key", "s/cret"]]],
    ["sqs://k:s@localhost:9324?region=eu-west-1", ["http://localhost:9324", "eu-west-1", undefined, ["k", "s"]]],
    ["sqs://k:s@[::1]:9324?region=elsewhere", ["http://[::1]:9324", "elsewhere", undefined, ["k", "s"]]],
    [
      "sqs://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/123456789012?region=eu-west-1&tls=true",
      ["https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com", "eu-west-1", "123456789012", undefined]
    ]
  ] as const)("%s", (url, expected) => {
    const { account, credentials, endpoint, region } = ok({ url }).address
    const who = credentials && [credentials.accessKeyId, Redacted.value(credentials.secretAccessKey)]
    assert.deepStrictEqual([endpoint, region, account, who], expected as unknown)
  })

  it("takes key and secret from elsewhere", () => {
    const { credentials } = ok({
      url: "sqs://eu-west-1",
      accessKeyId: "k",
      secretAccessKey: Redacted.make("s")
    }).address
    assert.deepStrictEqual([credentials?.accessKeyId, Redacted.value(credentials!.secretAccessKey)], ["k", "s"])
  })
})

describe("options", () => {
  it("come from the query as well, and code beats the query", () => {
    const url = "sqs://eu-west-1?queues=use&visibilityTimeout=60000&waitTime=1000"
    assert.deepInclude(ok({ url, waitTime: 2000 }), { queues: "use", visibilityTimeout: 60_000, waitTime: 2000 })
  })

  it("have defaults", () =>
    assert.deepInclude(ok({ url: "sqs://eu-west-1" }), {
      queues: "create",
      waitTime: 20_000,
      visibilityTimeout: 30_000,
      fifoRetry: "block",
      encryption: "sqs"
    }))

  it.each([
    ["nonsense", "url"],
    ["http://h", "url"],
    ["sqs:", "url"],
    ["sqs://localhost:9324", "url"],
    ["sqs://eu-west-1?region=eu-west-2", "url"],
    ["sqs://eu-west-1/orders", "url"],
    ["sqs://k:%zz@eu-west-1", "url"],
    ["sqs://k@eu-west-1", "url"],
    ["sqs://h:1?region=eu-west-1&tls=yes", "url"],
    ["sqs://eu-west-1?waitTime=1000&waitTime=2000", "url"],
    ["sqs://eu-west-1?waitTime=1500", "waitTime"],
    ["sqs://eu-west-1?waitTime=21000", "waitTime"],
    ["sqs://eu-west-1?waitTime=0", "waitTime"],
    ["sqs://eu-west-1?visibilityTimeout=0", "visibilityTimeout"],
    ["sqs://eu-west-1?visibilityTimeout=43201000", "visibilityTimeout"],
    ["sqs://eu-west-1?visibilityTimeout=abc", "visibilityTimeout"],
    ["sqs://eu-west-1?maxReceiveCount=1001", "maxReceiveCount"],
    ["sqs://eu-west-1?fifoRetry=maybe", "fifoRetry"],
    ["sqs://eu-west-1?nonsense=1", "url"],
    ["sqs://eu-west-1#x", "url"],
    ["sqs://k:12/ss@eu-west-1", "url"],
    ["sqs://eu-west-1?constructor=1", "url"],
    ["sqs://eu-west-1?deadLetterRetention=60000", "deadLetterRetention"]
  ])("refuse %s", (url, field) => {
    const refused = decode({ url })
    assert.isTrue(Result.isFailure(refused))
    if (Result.isFailure(refused)) assert.strictEqual(refused.failure.field, field)
  })

  it.each<[string, RegExp]>([
    ["sqs hunter2", /^url .*the value is not a valid URL.*sqs:\/\/<region>/],
    ["http://me:hunter2@host", /scheme http: is not sqs:/],
    ["sqs://me:hunter2@127.0.0.1:9324", /needs \?region=/],
    ["sqs://hunter2@127.0.0.1:9324?region=eu-west-1", /an access key requires its secret/],
    ["sqs://me:hunter2@h?region=eu-west-1&prefetch=5", /a parameter that is not an option.*Allowed:/],
    ["sqs://me:hunter2@h?region=eu-west-1&visibilityTimeout=43201000", /visibilityTimeout/]
  ])("say what is wrong with a URL, without its secret: %s", (url, words) => {
    const refused = decode({ url })
    const told = Result.isFailure(refused) ? refused.failure.message : ""
    assert.match(told, words)
    assert.notInclude(told, "hunter2")
  })

  it.each(["accessKeyId", "secretAccessKey"])("refuse a number as %s, as YAML makes it of digits", (field) => {
    const keys = { accessKeyId: "k", secretAccessKey: "s", [field]: 271828 }
    const refused = decode({ url: "sqs://eu-west-1", ...keys })
    if (Result.isSuccess(refused)) assert.fail(field)
    else assert.deepInclude(refused.failure, { field, detail: "must be text" })
  })

  const broken = ["accessKeyId", "secretAccessKey", "sessionToken"].flatMap((field) =>
    ["hunter2\n", "hunter2\r\n", "hunter2\r"].map((value) => [field, value] as const)
  )

  it.each(broken)("refuse a line break at the end of %s, as of a file: %j", (field, value) => {
    const keys = { accessKeyId: "k", secretAccessKey: "s", sessionToken: "t", [field]: value }
    const refused = decode({ url: "sqs://eu-west-1", ...keys })
    if (Result.isSuccess(refused)) assert.fail(field)
    else {
      assert.deepInclude(refused.failure, { field, detail: "the value is text with a line break at its end" })
      assert.notInclude(inspect(refused.failure), "hunter2")
    }
  })

  it("refuse a line break in the key of a URL", () => {
    const refused = decode({ url: "sqs://k:hunter2%0A@eu-west-1" })
    const told = Result.isFailure(refused) ? refused.failure.message : ""
    assert.match(told, /^url .*its secretAccessKey is text with a line break/)
    assert.notInclude(told, "hunter2")
  })

  it("never show a secret", () => {
    const secret = "hunter2"
    const settings = ok({ url: `sqs://key:${secret}@h:1?region=eu-west-1` })
    assert.notInclude(inspect(settings, { depth: 9 }), secret)
    assert.notInclude(JSON.stringify(settings), secret)
    for (const url of [`sqs://k:${secret}@h:1`, `sqs://k:${secret}@eu-west-1?x=1`, `sq://k:${secret}@h`]) {
      const refused = decode({ url })
      if (Result.isSuccess(refused)) assert.fail(url)
      else assert.notInclude(inspect(refused.failure), secret)
    }
  })
})

it.each(["5s", "5 seconds", "5000ms", "5000"])("a duration is written as everywhere else: %s", (text) => {
  assert.strictEqual(ok({ url: `sqs://eu-west-1?waitTime=${encodeURIComponent(text)}` }).waitTime, 5000)
  assert.strictEqual(ok({ url: "sqs://eu-west-1", waitTime: text as "5s" }).waitTime, 5000)
})

it("credentials and endpoint run in the async context of the options, and not in that of a send or of a poll", async () => {
  const storage = new AsyncLocalStorage<string>()
  const current = () => storage.getStore() ?? "none"
  const credentials = async () => ({ accessKeyId: current(), secretAccessKey: "s" })
  const endpoint = async () => `http://${current()}`
  const { sdk } = storage.run("client", () => ok({ url: "sqs://eu-west-1", credentials, endpoint }))
  const seen = await storage.run("request", async () => [
    (await sdk.credentials?.({}))?.accessKeyId,
    typeof sdk.endpoint === "function" && (await sdk.endpoint())
  ])
  assert.deepStrictEqual(seen, ["client", "http://client"])
})
