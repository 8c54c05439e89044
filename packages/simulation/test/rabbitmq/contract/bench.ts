/** What scripts of the contract work with: connections of the driver, and short ways to declare, publish and consume. */
import { RabbitMqOptions } from "@requeue/adapter-rabbitmq"
import type { Channel, ConfirmChannel, Driver, DriverConnection, Incoming } from "@requeue/adapter-rabbitmq/driver"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Bench, Row } from "../../contract/Contract.ts"

/** A server, and the driver that leads to it. */
export interface Server {
  readonly driver: Context.Service.Shape<typeof Driver>
  readonly url: string
}

type Arguments = Readonly<Record<string, unknown>>

/** A message as rows show it. */
export interface Seen {
  readonly id: unknown
  readonly redelivered: boolean
  readonly headers: Arguments
  readonly message: Incoming
}

/** The tools of a script. */
export interface Tools {
  readonly name: (base: string) => string
  readonly connection: () => Promise<DriverConnection>
  readonly channel: () => Promise<Channel>
  readonly confirms: () => Promise<ConfirmChannel>
  /** Declares a queue, and returns its name. */
  readonly queue: (args?: Arguments, base?: string) => Promise<string>
  /** Declares an exchange, and returns its name. */
  readonly exchange: (type: string, args?: Arguments) => Promise<string>
  /** Runs requests on a new channel; returns the error's text instead of throwing it. */
  readonly ask: (run: (channel: Channel) => Promise<unknown>) => Promise<unknown>
  /** Publishes to an exchange, and returns `stored`, `returned`, or the error's text. */
  readonly publish: (exchange: string, key: string, id: string, options?: Arguments) => Promise<string>
  /** Publishes to a queue. */
  readonly send: (queue: string, id: string, options?: Arguments) => Promise<string>
  /** Consumes this many messages on a new channel, and leaves them unsettled. */
  readonly take: (
    queue: string,
    count: number
  ) => Promise<{
    readonly channel: Channel
    readonly seen: ReadonlyArray<Seen>
    /** Ends the consumer, which otherwise gets again what it returns. */
    readonly cancel: () => Promise<unknown>
  }>
  /** Consumes this many messages, acks them, and returns their ids. */
  readonly ids: (queue: string, count: number) => Promise<ReadonlyArray<unknown>>
  /** Waits until a queue has this many ready messages, and returns the answer of the passive declare. */
  readonly ready: (
    queue: string,
    count: number
  ) => Promise<{ readonly messageCount: number; readonly consumerCount: number }>
  readonly sleep: (millis: number) => Promise<void>
}

/** Milliseconds to wait for a number of messages. Then the answer is another one. */
const longest = 20_000

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Message ids, properties and text of a message. */
const toSeen = (message: Incoming): Seen => ({
  id: message.properties.messageId,
  redelivered: message.fields.redelivered,
  headers: message.properties.headers ?? {},
  message
})

const connect = ({ driver, url }: Server): Effect.Effect<DriverConnection, never, Scope.Scope> => {
  const settings = Result.getOrThrow(RabbitMqOptions.decode({ url }))
  const { address } = settings
  const on = { signal: new AbortController().signal, closed: () => {}, blocked: () => {}, unblocked: () => {} }
  return Effect.acquireRelease(
    Effect.promise(() => driver.connect(settings, address, { ...address, expiresAt: Infinity }, "contract", on)),
    (connection) => Effect.promise(() => connection.close().catch(() => {}))
  )
}

/** Makes the tools of one script. */
const toolsOf = (
  { driver: server, name }: Bench<Server>,
  run: <A>(effect: Effect.Effect<A, never, Scope.Scope>) => Promise<A>
): Tools => {
  let first: Promise<DriverConnection> | undefined
  let queues = 0
  const open = () => run(connect(server))
  const own = () => (first ??= open())
  const channel = async () => (await own()).channel()
  const confirms = async () => (await own()).confirmChannel()
  const sleep = (millis: number) => run(Effect.sleep(millis))

  const ask: Tools["ask"] = async (given) => {
    const used = await channel()
    try {
      return await given(used)
    } catch (error) {
      return textOf(error)
    } finally {
      await used.close().catch(() => {})
    }
  }

  const publish: Tools["publish"] = async (exchange, key, id, options = {}) => {
    const used = await confirms()
    let isReturned = false
    used.on("return", () => (isReturned = true))
    const outcome = await new Promise<string>((resolve) => {
      used.once("error", (error) => resolve(textOf(error)))
      const done = (error: unknown) => resolve(error === null ? (isReturned ? "returned" : "stored") : textOf(error))
      used.publish(exchange, key, Buffer.from(id), { persistent: true, messageId: id, ...options }, done)
    })
    await used.close().catch(() => {})
    return outcome
  }

  const take: Tools["take"] = async (queue, count) => {
    const used = await channel()
    const seen: Array<Seen> = []
    await used.prefetch(count)
    await new Promise<void>((resolve, reject) => {
      used
        .consume(
          queue,
          (message) => {
            if (message === null) return resolve()
            seen.push(toSeen(message))
            if (seen.length === count) resolve()
          },
          { consumerTag: "taking" }
        )
        .catch(reject)
    })
    return { channel: used, seen, cancel: () => used.cancel("taking") }
  }

  return {
    name,
    connection: open,
    channel,
    confirms,
    ask,
    publish,
    take,
    sleep,
    send: (queue, id, options) => publish("", queue, id, options),
    queue: async (args = {}, base = "q") => {
      const queue = name(`${base}${++queues}`)
      await ask((used) => used.assertQueue(queue, { arguments: args }))
      return queue
    },
    exchange: async (type, args = {}) => {
      const exchange = name(`x${++queues}`)
      await ask((used) => used.assertExchange(exchange, type, { arguments: args }))
      return exchange
    },
    ids: async (queue, count) => {
      const { channel: used, seen } = await take(queue, count)
      used.ackAll()
      await used.close()
      return seen.map(({ id }) => id)
    },
    ready: async (queue, count) => {
      for (let waited = 0; ; waited += 20) {
        const answer = (await ask((used) => used.checkQueue(queue))) as Awaited<ReturnType<Tools["ready"]>> // The queue exists.
        if (answer.messageCount === count || waited > longest) return answer
        await sleep(20)
      }
    }
  }
}

/** Removes the parts of names that differ from run to run. */
const plain = (value: unknown): unknown =>
  value === undefined ? undefined : JSON.parse(JSON.stringify(value).replaceAll(/-[0-9a-f]{8}-\d+/g, ""))

/** Makes a row. */
export const row = (
  name: string,
  source: string,
  script: (tools: Tools) => Promise<unknown>,
  answer: unknown
): Row<Server> => ({
  name,
  source,
  script: (bench) =>
    Effect.gen(function* () {
      const context = yield* Effect.context<Scope.Scope>()
      return plain(yield* Effect.promise(() => script(toolsOf(bench, Effect.runPromiseWith(context)))))
    }),
  answer
})
