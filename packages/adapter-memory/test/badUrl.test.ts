/** Brokers that cannot be connected to; no error shows a password. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigurationError, connect } from "@requeue/core/promise"
import { program } from "./program.ts"

const refusal = async (broker: unknown): Promise<ConfigurationError> => {
  const error = await connect(broker as string).then(
    () => assert.fail("it was accepted"),
    (error: unknown) => error
  )
  assert.instanceOf(error, ConfigurationError)
  return error
}

describe("connect", () => {
  it.each<readonly [unknown, string]>([
    ["", `url: the value is not a valid URL. Write a URL such as "memory:"`],
    ["localhost", `url: the value is not a valid URL. Write a URL such as "memory:"`],
    [
      undefined,
      `url: the broker must be a URL, an object with a url, or a Layer, got undefined. Write a URL such as "memory:"`
    ],
    [null, `url: the broker must be a URL, an object with a url, or a Layer, got null. Write a URL such as "memory:"`],
    [
      { URL: "memory:" },
      `url: the broker must be a URL, an object with a url, or a Layer, got an object. Write a URL such as "memory:"`
    ],
    ["memory:?maxMessages=many", `maxMessages (broker memory): must be a whole number >= 1 or Infinity, got a text.`],
    [
      "memory:?maxMesages=5",
      "url (broker memory): the URL has a parameter that is not an option. Did you mean maxMessages?"
    ]
  ])("%o", async (broker, message) => {
    assert.include((await refusal(broker)).message, message)
  })

  it("a scheme that no adapter serves", async () => {
    const { message } = await refusal("gopher://localhost")
    assert.include(message, "url: no adapter serves the scheme gopher:. Known schemes: memory:")
    assert.include(message, "For another adapter, set the option adapter to the name of its package")
  })

  it.each([
    ["ampq://me:hunter2@host", "no adapter serves the scheme ampq:. Did you mean amqp:?"],
    [
      "rabbitmq://me:hunter2@host",
      "no adapter serves the scheme rabbitmq:. Known schemes: memory:, sqlite:, postgres:, postgresql:, amqp:, amqps:, nsq:, sqs:."
    ],
    [
      "kafka://host",
      "no adapter serves the scheme kafka:. Known schemes: memory:, sqlite:, postgres:, postgresql:, amqp:, amqps:, nsq:, sqs:."
    ]
  ])("%s, and no package that may be anybody's", async (url, words) => {
    const { message } = await refusal(url)
    assert.include(message, words)
    assert.notMatch(message, /install|requeue-adapter|hunter2/)
  })

  it.each(["https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "http://localhost:4566"])(
    "%s, which is no address of a broker",
    async (url) => {
      const { message } = await refusal(url)
      assert.match(
        message,
        /^url: https?: is not the scheme of a broker\. Write sqs:\/\/eu-west-1\/123456789012 for SQS, /
      )
      assert.notInclude(message, "install")
    }
  )

  it.each(["gopher://user:hunter2@host", "memory://user:hunter2@host", "gopher://user:hunter2@bad host", "hunter2"])(
    "shows nothing of %s that is secret",
    async (url) => {
      const error = await refusal(url)
      for (const shown of [error.message, String(error), JSON.stringify(error), error.stack ?? ""]) {
        assert.notInclude(shown, "hunter2")
      }
    }
  )
})

describe("an adapter", () => {
  it("that is not installed: which one, and how to", async () => {
    assert.strictEqual(
      await program({}, `"memory:"`),
      "ConfigurationError: url: the adapter for memory: is not installed. Run: npm install @requeue/adapter-memory. In a bundle, pass the package's adapter: { adapters: [adapter] }"
    )
  })

  it("that throws what cannot be printed when it is imported is told as well", async () => {
    const source = "throw Object.assign(Object.create(null), { toJSON() { throw 1 } })"
    assert.strictEqual(
      await program({ "@requeue/adapter-memory": source }, `"memory:"`),
      "ConfigurationError: adapter: @requeue/adapter-memory cannot be imported: an unprintable object. Install what " +
        "the package needs, or import the package and pass its adapter"
    )
  })

  it("that is installed is found from the program's main file, and its own failure is shown as it is", async () => {
    const said = await program({ "@requeue/adapter-memory": `import "missing-driver"` }, `"memory:"`)
    assert.match(
      said,
      /^ConfigurationError: adapter: @requeue\/adapter-memory cannot be imported: Cannot find package 'missing-driver' imported from .*\. Install what the package needs/
    )
  })
})
