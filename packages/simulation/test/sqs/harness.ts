/** The SQS adapter on a simulated SQS, with a harness that reads the server's state. */
import { SqsBroker } from "@requeue/adapter-sqs"
import { Driver } from "@requeue/adapter-sqs/driver"
import { Harness } from "@requeue/conformance"
import { Broker } from "@requeue/core"
import { type Delivery, Metadata } from "@requeue/core/port"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { isUtf8 } from "node:buffer"
import * as Host from "../../src/servers/Host.ts"
import * as Api from "../../src/servers/sqs/Api.ts"
import * as SqsDriver from "../../src/servers/sqs/Driver.ts"
import type { Message } from "../../src/servers/sqs/Message.ts"
import * as Network from "../../src/servers/sqs/Network.ts"
import * as Server from "../../src/servers/sqs/Server.ts"

/** The adapter to test: that of the package, or a mutant. */
export interface Adapter {
  readonly SqsBroker: Pick<typeof SqsBroker, "make">
}

export const options = {
  url: "sqs://eu-west-1",
  waitTime: 1000,
  visibilityTimeout: 10_000,
  // A call that gets no answer ends before the lease does.
  requestTimeout: 4000
} as const

/** A server and the network to it, in virtual time. */
export const open = (settings: Server.Options = {}, network: Network.Options = {}) =>
  Effect.map(Random.withSeed(Host.make, "sqs"), (host) => {
    const server = Server.make(host, settings)
    return { host, server, network: Network.make(host, server, network) }
  })

/** The server below the adapter of a case. */
export const Simulated = Context.Reference<Effect.Success<ReturnType<typeof open>>>("simulation/test/sqs/Simulated", {
  defaultValue: () => {
    throw new Error("the case runs on no simulated SQS")
  }
})

/** The name on SQS of a queue of the program. */
export const nameOf = (queue: string): string => {
  const [first, ...rest] = queue.split(".")
  const fifo = rest.includes("fifo") ? ".fifo" : ""
  return [first, ...rest.filter((part) => part !== "fifo")].join("-") + fifo
}

const text = (StringValue: string): Api.Attribute => ({ DataType: "String", StringValue })

/** A body as a producer sends it: SQS takes no bytes that are not text. */
const encoded = (body: Uint8Array): { readonly text: string; readonly encoding: Readonly<Record<string, string>> } =>
  isUtf8(body)
    ? { text: Buffer.from(body).toString(), encoding: {} }
    : { text: Buffer.from(body).toString("base64"), encoding: { "requeue-encoding": "base64" } }

/** A letter as the next consumer would see it, read without the adapter. */
const letterOf = ({ content, sent }: Message): Delivery.Delivery => {
  const { "requeue-encoding": encoding, "requeue-headers": packed, requeue, ...own } = content.attributes
  const metadata = Metadata.decode(requeue?.StringValue ?? "", sent) ?? Metadata.make("foreign", sent)
  const bodies: Readonly<Record<string, () => Uint8Array>> = {
    base64: () => Buffer.from(content.body, "base64"),
    empty: () => new Uint8Array()
  }
  return {
    body: bodies[encoding?.StringValue ?? ""]?.() ?? Buffer.from(content.body),
    headers: {
      ...JSON.parse(packed?.StringValue ?? "{}"),
      ...Object.fromEntries(Object.entries(own).map(([name, { StringValue = "" }]) => [name, StringValue]))
    },
    attempts: metadata.attempts + 1,
    metadata,
    ...(content.group === undefined ? undefined : { place: { key: content.group } }),
    receipt: undefined
  }
}

/** A call of the tests, beside all clients. */
const ask = (server: Server.Server, action: string, body: Api.Body): Effect.Effect<object> =>
  Effect.callback((resume) =>
    server.handle(Api.call(action, body), (answer) => resume(Effect.orDie(Effect.fromResult(answer))))
  )

const actions: Readonly<Record<Harness.Operation, ReadonlyArray<string>>> = {
  publish: ["SendMessageBatch"],
  settle: ["DeleteMessageBatch"],
  extend: ["ChangeMessageVisibilityBatch"],
  receive: ["ReceiveMessage"]
}

const failNext =
  ({ faults }: Network.Network): Harness.FailNext =>
  (operation, failure, queue) => {
    // The answer would come after the end of the lease.
    if (failure === "lateAnswer") return undefined
    const where = { actions: actions[operation], queues: [nameOf(queue), nameOf(`${queue}.dlq`)] }
    // The SDK does not repeat a call that was refused so.
    const effect = failure === "refused" ? ({ _tag: "refused", error: "KmsThrottled" } as const) : { _tag: failure }
    return Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => faults.add(where, effect)),
        ({ end }) => Effect.sync(end)
      ),
      ({ left }) =>
        () =>
          left() === 0
    )
  }

/** Milliseconds for which a server that restarts is away. */
const away = 1000

/**
 * The adapter and the harness.
 *
 * Long, because each member of the harness is a line of the result.
 */
export const layer = (adapter: Adapter = { SqsBroker }, settings: Server.Options = {}, way: Network.Options = {}) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const simulated = yield* open(settings, way)
      const { host, network, server } = simulated
      let [queues, processes] = [0, 0]
      const make = Effect.suspend(() =>
        Effect.provideService(adapter.SqsBroker.make(options), Driver, SqsDriver.make(host, network, `p${++processes}`))
      )
      const broker = yield* make
      const urlOf = (queue: string) => server.queue(nameOf(queue))?.url
      const create = (QueueName: string, Attributes = {}) => ask(server, "CreateQueue", { QueueName, Attributes })
      const unique = (base: string) => `${base.replaceAll(/[^A-Za-z0-9]+/g, "-").slice(0, 40)}-${++queues}`
      const harness = Harness.Harness.of({
        name: "sqs",
        uniqueQueue: (base) =>
          Effect.suspend(() => {
            const isFifo = base === "keys"
            const name = `${unique(base)}${isFifo ? ".fifo" : ""}`
            return Effect.as(create(name, isFifo ? { FifoQueue: "true" } : {}), name)
          }),
        publishRaw: (queue, body, headers) =>
          Effect.suspend(() => {
            const { encoding, text: MessageBody } = encoded(body)
            const MessageAttributes = Object.fromEntries(
              Object.entries({ ...headers, ...encoding }).map(([name, value]) => [name, text(value)])
            )
            const Entries = [{ Id: "0", MessageBody, MessageAttributes }]
            return ask(server, "SendMessageBatch", { QueueUrl: urlOf(queue), Entries })
          }),
        deadLetters: (queue) =>
          Effect.sync(() => (server.queue(nameOf(queue))?.store.next(Number.POSITIVE_INFINITY) ?? []).map(letterOf)),
        pending: (queue) =>
          Effect.sync(() => server.queue(nameOf(queue))?.store.counts() ?? { ready: 0, inFlight: 0, delayed: 0 }),
        cutConnections: Effect.sync(() => network.cut()),
        restart: Effect.andThen(
          Effect.sync(() => network.restart(away)),
          Effect.sleep(away)
        ),
        another: make,
        failNext: failNext(network),
        deleteQueue: (queue) => Effect.suspend(() => ask(server, "DeleteQueue", { QueueUrl: urlOf(queue) })),
        foreignQueue: (base) =>
          Effect.gen(function* () {
            const name = unique(base)
            yield* create(`${name}-letters`)
            const deadLetterTargetArn = server.queue(`${name}-letters`)?.arn
            yield* create(name, { RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount: 2 }) })
            return name
          }),
        // No crash of the service is visible to its clients.
        crash: undefined,
        powerCut: undefined,
        transactions: undefined,
        lateness: 100,
        settleTime: 0
      })
      return Context.make(Broker.Broker, broker).pipe(
        Context.add(Harness.Harness, harness),
        Context.add(Simulated, simulated)
      )
    })
  )
