/** What is wrong is said at start, with what to do about it. */
import { BrokerError } from "@requeue/core/BrokerError"
import { ConfigurationError } from "@requeue/core/ConfigurationError"
import * as RetryPolicy from "@requeue/core/RetryPolicy"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { connect } from "amqplib"
import { inspect } from "node:util"
import { assert, describe, test } from "vitest"
import { RabbitMqBroker, RabbitMqOptions, RabbitMqPlan } from "../src/index.ts"
import { server } from "./server.ts"
import { queueName } from "./world.ts"

const one = await server()

/** What both kinds of errors may have. */
interface Refused {
  readonly reason: string
  readonly operation: string
  readonly queue: string
  readonly detail: string
  readonly remedy: string
}

const fail = async (options: RabbitMqOptions.Options, queue = queueName("bad")) => {
  const exit = await Effect.runPromiseExit(
    Effect.flatMap(RabbitMqBroker.make(options), (broker) =>
      broker.subscribe({
        queue,
        retry: RetryPolicy.make(),
        deadLetterQueues: [`${queue}.dlq`],
        maxCredit: 1,
        onDelivery: () => {},
        onReconnect: () => {}
      })
    ).pipe(Effect.scoped)
  )
  assert.isTrue(Exit.isFailure(exit), "it should have failed")
  const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  assert.isTrue(error instanceof BrokerError || error instanceof ConfigurationError, inspect(error))
  return error as unknown as Refused
}

const change = (edit: (url: URL) => void): string => {
  const url = new URL(one.url)
  edit(url)
  return url.href
}

const raw = async (
  run: (channel: Awaited<ReturnType<Awaited<ReturnType<typeof connect>>["createChannel"]>>) => Promise<unknown>
) => {
  const model = await connect(one.url)
  await run(await model.createChannel())
  await model.close()
}

describe("a start with", () => {
  test("a wrong password", async () => {
    const url = change((it) => (it.password = "hunter2"))
    const error = await fail({ url })
    assert.deepStrictEqual([error.reason, error.operation], ["AccessRefused", "connect"])
    assert.match(error.remedy, /password/)
    assert.notInclude(inspect(error), "hunter2")
  })

  test("a missing virtual host", async () => {
    const error = await fail({ url: change((it) => (it.pathname = "/nowhere")) })
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(`${error.detail} ${error.remedy}`, /nowhere.*virtual host/i)
  })

  test("nobody listening", async () => {
    const error = await fail({ url: "amqp://guest:guest@127.0.0.1:1" })
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.remedy, /host, port/)
  })

  test("something that does not speak AMQP", async () => {
    const { createServer } = await import("node:net")
    const mute = createServer(() => {})
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve))
    const { port } = mute.address() as { port: number }
    const error = await fail({ url: `amqp://127.0.0.1:${port}`, connectTimeout: 300 })
    assert.strictEqual(error.reason, "ConnectionFailed")
    mute.close()
  })

  test.runIf(one.broker.nodes.length > 0)("no permission", async () => {
    const node = one.broker.nodes[0]!
    await node.ctl("add_user", "limited", "s3cret")
    await node.ctl("set_permissions", "limited", "^nothing$", "^nothing$", "^nothing$")
    const error = await fail({ url: one.url, username: "limited", password: Redacted.make("s3cret") })
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(error.remedy, /set_permissions/)
    assert.notInclude(inspect(error), "s3cret")
  })

  test("a queue that has other arguments; it can still be used as it is", async () => {
    const queue = queueName("other")
    await raw((channel) => channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "classic" } }))
    const error = await fail({ url: one.url }, queue)
    assert.deepStrictEqual([error.reason, error.queue], ["QueueMismatch", queue])
    assert.match(error.remedy, /assert: "never"/)
    const exit = await Effect.runPromiseExit(
      Effect.flatMap(RabbitMqBroker.make({ url: one.url, queues: { [queue]: { assert: "never" } } }), (broker) =>
        broker.subscribe({
          queue,
          retry: RetryPolicy.make(),
          deadLetterQueues: [],
          maxCredit: 1,
          onDelivery: () => {},
          onReconnect: () => {}
        })
      ).pipe(Effect.scoped)
    )
    assert.isTrue(Exit.isSuccess(exit), inspect(exit))
  })

  test("a queue that must exist and does not", async () => {
    const error = await fail({ url: one.url, assert: "passive" }, queueName("missing"))
    assert.strictEqual(error.reason, "QueueMissing")
  })

  test("native delays on a server that has none", async () => {
    const settings = Result.getOrThrow(RabbitMqOptions.decode({ topology: "native" }))
    const plan = RabbitMqPlan.make({ queue: "q" }, settings, "4.2.1")
    assert.instanceOf(plan, ConfigurationError)
  })
})
