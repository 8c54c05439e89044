/** The real RabbitMQ with a harness that looks behind the adapter, by the driver alone. */
import type { Command } from "@requeue/brokers"
import { Harness } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import { connect, type ChannelModel } from "amqplib"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { randomUUID } from "node:crypto"
import { toDelivery } from "../../src/internal/consume/toDelivery.ts"
import { clean } from "../../src/clean.ts"
import { RabbitMqBroker, RabbitMqOptions, RabbitMqPlan } from "../../src/index.ts"
import { get } from "./adoptedBooks.ts"
import { Adapter } from "./cases/Adapter.ts"
import type { Server } from "./server.ts"

/** Milliseconds by which a due message may be late, beyond the delays' resolution. */
export const lateness = 100

export const settingsOf = (options: RabbitMqOptions.Options) => Result.getOrThrow(RabbitMqOptions.decode(options))

/** A connection of the harness's own, made again after a restart. */
const client = (url: string) => {
  let model: ChannelModel | undefined
  const open = async (): Promise<ChannelModel> => {
    if (model !== undefined) return model
    const fresh = await connect(url)
    fresh.on("error", () => {})
    fresh.on("close", () => (model = undefined))
    model = fresh
    return fresh
  }
  return {
    use: async <A>(
      run: (channel: Awaited<ReturnType<ChannelModel["createConfirmChannel"]>>) => Promise<A>
    ): Promise<A> => {
      const channel = await (await open()).createConfirmChannel()
      channel.on("error", () => {})
      try {
        return await run(channel)
      } finally {
        await channel.close().catch(() => {})
      }
    },
    version: async () => String((await open()).connection.serverProperties["version"]),
    close: async () => model?.close().catch(() => {})
  }
}

/** What consumers have, as the management interface tells it some seconds later. */
const unacknowledged = async (management: string, queue: string): Promise<number> => {
  const info = (await get(management, `queues/%2F/${encodeURIComponent(queue)}`)) as Record<string, unknown> // As RabbitMQ documents it.
  return Number(info["messages_unacknowledged"] ?? 0)
}

/**
 * A command that is lost, or whose answer is: the connection breaks. What RabbitMQ refuses, it refuses by closing the
 * channel, and nothing between us and the server can do that in its name.
 */
const failNext =
  ({ proxy }: Server): Harness.FailNext =>
  (operation, failure, queue) =>
    failure === "refused" || !(failure === "lateAnswer" ? ["publish"] : ["publish", "settle"]).includes(operation)
      ? undefined
      : Effect.map(
          Effect.acquireRelease(
            Effect.sync(() => {
              const concerns = ({ about, name }: Command) => name === operation && about.includes(queue)
              return failure === "lateAnswer"
                ? proxy.delayNext(concerns)
                : proxy.loseNext(concerns, failure === "lostRequest" ? "command" : "answer")
            }),
            ({ end }) => Effect.sync(end)
          ),
          ({ happened }) => happened
        )

export const layer = (server: Server, options: RabbitMqOptions.Options = {}) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const settings = settingsOf(options)
      const raw = yield* Effect.acquireRelease(
        Effect.sync(() => client(server.url)),
        ({ close }) => Effect.promise(close)
      )
      const version = yield* Effect.promise(raw.version)
      // The first foreign queue is adopted, as the remedy says; any other is refused.
      const adopted = `foreign-${randomUUID().slice(0, 8)}`
      const names = [adopted]
      const open = RabbitMqBroker.make({
        maxBodySize: 1024 * 1024,
        // A machine on which everything is slow still connects in time.
        connectTimeout: 60_000,
        ...options,
        queues: { ...options.queues, [adopted]: { assert: "passive" } },
        url: server.proxied,
        connectionName: "conformance"
      })
      const broker = yield* open
      const declare = async (queue: string) => {
        const options = { durable: true, arguments: RabbitMqPlan.queue(queue, settings).arguments }
        await raw.use((channel) => channel.assertQueue(queue, options))
      }
      /**
       * Every message once, and each back to the tail as it was: giving it back would count as a delivery on servers
       * before 4.3, and a letter that was browsed would not be as it was.
       */
      const read = (queue: string) =>
        raw.use(async (channel) => {
          const letters = []
          const { messageCount } = await channel.checkQueue(queue)
          for (let left = messageCount; left > 0; left--) {
            const message = await channel.get(queue)
            if (message === false) break
            const { "x-delivery-count": _, ...headers } = message.properties.headers ?? {}
            channel.sendToQueue(queue, message.content, { ...message.properties, headers, persistent: true })
            await channel.waitForConfirms()
            channel.ack(message)
            letters.push(
              toDelivery(message, {
                type: settings.queueType,
                serverVersion: version,
                keepsNotBefore: true,
                now: Date.now
              })
            )
          }
          return letters.map((letter) => ({ ...letter, receipt: undefined }))
        })
      const harness = Harness.Harness.of({
        name: `rabbitmq ${version} ${settings.queueType}`,
        uniqueQueue: (base) =>
          Effect.promise(async () => {
            const queue = `${base}-${randomUUID().slice(0, 8)}`
            await declare(queue)
            return queue
          }),
        publishRaw: (queue, body, headers) =>
          Effect.promise(() =>
            raw.use(async (channel) => {
              const timestamp = Math.floor(Date.now() / 1000)
              channel.sendToQueue(queue, Buffer.from(body), { persistent: true, headers: { ...headers }, timestamp })
              await channel.waitForConfirms()
            })
          ),
        deadLetters: (queue) => Effect.promise(() => read(queue).catch(() => [])),
        pending: (queue) =>
          Effect.promise(async () => {
            const found = await raw.use((channel) => channel.checkQueue(queue)).catch(() => ({ messageCount: 0 }))
            const { management } = options
            const inFlight = management === undefined ? undefined : await unacknowledged(management, queue)
            return { ready: found.messageCount, inFlight, delayed: undefined }
          }),
        cutConnections: Effect.sync(server.proxy.cut),
        restart: server.broker.nodes.length === 0 ? undefined : Effect.promise(server.broker.restart),
        another: open,
        failNext: failNext(server),
        deleteQueue: (queue) => Effect.promise(() => raw.use((channel) => channel.deleteQueue(queue))),
        foreignQueue: (base) =>
          Effect.promise(async () => {
            const queue = names.pop() ?? `${base}-${randomUUID().slice(0, 8)}`
            const other = settings.queueType === "classic" ? "quorum" : "classic"
            await raw.use((channel) =>
              channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": other } })
            )
            return queue
          }),
        // The deep tests kill nodes and clusters.
        crash: undefined,
        powerCut: undefined,
        transactions: undefined,
        lateness,
        settleTime: 50
      })
      const adapter = { server, open: RabbitMqBroker.make, clean }
      return Context.make(Broker.Broker, broker).pipe(
        Context.add(Harness.Harness, harness),
        Context.add(Adapter, adapter)
      )
    })
  )
