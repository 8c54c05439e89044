/** Wrong options are errors of the start, with a remedy, and without the secrets that were part of them. */
import { BrokerError, ConfigurationError, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { createServer, type AddressInfo } from "node:net"
import { inspect } from "node:util"
import { afterEach, assert, describe, test } from "vitest"
import { isAtLeast } from "../../src/internal/version.ts"
import { RabbitMqBroker, RabbitMqOptions } from "../../src/index.ts"
import { shared } from "../real/server.ts"
import { raw } from "./traps/trap.ts"
import { drainIds, on, outgoing, queueName, until } from "../world.ts"

const { broker, proxied, proxy, url, version } = await shared()
const [node] = broker.nodes
const secrets = ["hunter2", "s3cret", new URL(url).password]

const logged: Array<string> = []
const logs = Logger.layer([Logger.make((line) => void logged.push(inspect(line, { depth: 6 })))])

const insistOnSecrecy = (what: unknown) => {
  for (const secret of secrets) assert.notInclude(inspect(what, { depth: 9, showHidden: true }), secret)
}

afterEach(() => insistOnSecrecy(logged.splice(0)))

/** A start, as a consumer has it: the broker and one subscription. */
const start = (options: RabbitMqOptions.Options, queue: string) =>
  Effect.flatMap(RabbitMqBroker.make(options), (service) =>
    service.subscribe({
      queue,
      retry: RetryPolicy.make(),
      deadLetterQueues: [`${queue}.dlq`],
      onDelivery: () => {},
      onReconnect: () => {}
    })
  )

/** The fields of an error of either kind. */
interface Refused {
  readonly message: string
  readonly reason: string
  readonly operation: string
  readonly queue: string
  readonly detail: string
  readonly remedy: string
}

const fail = async (options: RabbitMqOptions.Options, queue = queueName("bad")) => {
  const error = await Effect.runPromise(Effect.flip(Effect.scoped(start(options, queue))).pipe(Effect.provide(logs)))
  assert.isTrue(
    error instanceof BrokerError.BrokerError || error instanceof ConfigurationError.ConfigurationError,
    inspect(error)
  )
  insistOnSecrecy([error, error.message, error.stack, JSON.stringify(error)])
  return error as unknown as Refused
}

const change = (edit: (url: URL) => void): string => {
  const changed = new URL(url)
  edit(changed)
  return changed.href
}

const allow = async (user: string, password: string, what: string) => {
  await node!.ctl("add_user", user, password)
  await node!.ctl("set_permissions", user, what, what, what)
}

describe("a start with", () => {
  test("a wrong password", async () => {
    const error = await fail({ url: change((it) => (it.password = "hunter2")) })
    assert.deepStrictEqual([error.reason, error.operation], ["AccessRefused", "connect"])
    assert.match(error.remedy, /password/)
  })

  test("a missing virtual host", async () => {
    const error = await fail({ url: change((it) => (it.pathname = "/nowhere")) })
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(`${error.detail} ${error.remedy}`, /nowhere.*virtual host/i)
  })

  test("nobody listening", async () => {
    const error = await fail({ url: "amqp://me:hunter2@127.0.0.1:1" })
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.remedy, /host, port/)
  })

  test("a host that does not exist", async () => {
    const error = await fail({ url: "amqp://me:hunter2@nowhere.invalid" })
    assert.strictEqual(error.reason, "ConnectionFailed")
    assert.match(error.message, /nowhere\.invalid/)
  })

  test("something that does not speak AMQP", async () => {
    const mute = createServer(() => {})
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve))
    const { port } = mute.address() as AddressInfo
    const error = await fail({ url: `amqp://me:hunter2@127.0.0.1:${port}`, connectTimeout: 300 })
    assert.strictEqual(error.reason, "ConnectionFailed")
    mute.close()
  })

  test.runIf(node)("no permission", async () => {
    await allow("limited", "s3cret", "^nothing$")
    const error = await fail({ url, username: "limited", password: Redacted.make("s3cret") })
    assert.strictEqual(error.reason, "AccessRefused")
    assert.match(error.remedy, /set_permissions/)
  })

  // Older servers take the arguments of native delays and do not delay: every retry would come at once.
  test.runIf(!isAtLeast(version, "4.3"))("native delays on a server that has none", async () => {
    const error = await fail({ url, topology: "native" })
    assert.instanceOf(error, ConfigurationError.ConfigurationError)
    assert.match(error.message, new RegExp(`topology.*4\\.3.*${version}.*topology: "auto"`))
  })
})

test.runIf(node)("a password that is changed while we run is told of, and not told", async () => {
  await allow("changing", "s3cret", ".*")
  const options = { url: proxied, username: "changing", password: "s3cret" }
  const outage = Effect.gen(function* () {
    yield* start(options, queueName("changing"))
    yield* Effect.promise(() => node!.ctl("change_password", "changing", "another"))
    proxy.cut()
    yield* until("a warning", () => logged.some((line) => line.includes("AccessRefused")))
  })
  await Effect.runPromise(Effect.scoped(outage).pipe(Effect.provide(logs)))
})

test.runIf(node)("a limit of channels is told as it is, and a raised one is made use of", async () => {
  await allow("narrow", "s3cret", ".*")
  const limit = (channels: number) =>
    Effect.promise(() => node!.ctl("set_user_limits", "narrow", JSON.stringify({ "max-channels": channels })))
  const queue = queueName("narrow")
  const options = { url, username: "narrow", password: "s3cret", reconnectFirst: 20 }
  await on({ ...options, queues: { [queue]: { assert: "never" } } }, (service) =>
    Effect.gen(function* () {
      yield* Effect.promise(() => raw(url, (channel) => channel.assertQueue(queue)))
      yield* service.publish([outgoing(queue, "a")])
      yield* limit(0)
      // A browser needs a channel of its own; sends and declarations have theirs already.
      const browser = yield* service.admin.browse({ queue, from: "ready", limit: 1 })
      const error = yield* Effect.flip(browser.next(1))
      assert.match(error.message, /AccessRefused: .*number of channels.*Raise that limit/)
      yield* limit(-1)
      yield* until("a message to be taken", () =>
        Effect.runPromise(Effect.isSuccess(service.publish([outgoing(queue, "c")])))
      )
    })
  )
})

test.each(["CC", "BCC"])("a text header %s is refused before anything is written, with its remedy", async (name) => {
  const queue = queueName("copies")
  await on({ url }, (service) =>
    Effect.gen(function* () {
      const batch = [outgoing(queue, "a"), outgoing(queue, "b", { headers: { [name]: "audit" } })]
      const error = yield* Effect.flip(service.publish(batch))
      assert.strictEqual(error.reason, "Unsupported")
      assert.match(error.message, new RegExp(`header ${name}.*another name`))
      yield* service.publish([outgoing(queue, "c")])
    })
  )
  assert.deepStrictEqual(await drainIds(url, queue), ["c"])
})
