/**
 * Requests of a removal, all on one connection: the lock of the removal is lost with it.
 *
 * No release of RabbitMQ deletes a quorum queue with `if-empty` or `if-unused`: it answers NOT_IMPLEMENTED and closes the
 * connection (3.10.8, 4.0.5, 4.3.6). So messages are diverted first, and a consumer receives what enters the queue in its
 * last moment.
 */
import { BrokerError } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Channel } from "../client.ts"
import type { Connection, Live } from "../connect/connection.ts"
import { openChannel } from "../connect/openChannel.ts"
import { request } from "../connect/request.ts"
import type { BindingInfo, ExchangeInfo, QueueInfo } from "../inspect/management.ts"
import type { Move } from "../inspect/moving.ts"
import { toBrokerError } from "../toBrokerError.ts"

type Result<A> = Effect.Effect<A, BrokerError.BrokerError>

/** Requests, each on a new channel. Each fails with `ConnectionLost` once the connection has been replaced. */
export interface Server {
  readonly ask: <A>(name: string, run: (channel: Channel) => Promise<A>) => Result<A>
  readonly check: (queue: string) => Result<Awaited<ReturnType<Channel["checkQueue"]>>>
  /**
   * Moves the messages that are in a queue now, or fewer once `isStopped`, and returns their number. Fails with the
   * error of a message that cannot be moved, which stays in the queue.
   */
  readonly drain: (queue: string, move: Move, isStopped?: () => boolean) => Result<number>
  /**
   * Deletes an empty queue, and moves messages that enter it during the deletion. Returns why the queue is kept, if it
   * is.
   */
  readonly deleteQueue: (queue: Pick<QueueInfo, "name" | "type">, move: Move) => Result<string | undefined>
  /** Deletes an exchange with its bindings. */
  readonly deleteExchange: (name: string) => Result<void>
  readonly bind: (binding: BindingInfo, queue: string) => Result<void>
  readonly unbind: (binding: BindingInfo, queue: string) => Result<void>
  /** Declares objects as they were. */
  readonly restore: (objects: {
    readonly queues: ReadonlyArray<QueueInfo>
    readonly exchanges: ReadonlyArray<ExchangeInfo>
    readonly bindings: ReadonlyArray<BindingInfo>
  }) => Result<void>
}

/**
 * Messages moved at a time. Each is fetched by `basic.get`. A channel that closes loses settlements beyond 32 that it
 * has not begun (tested on 4.3.6).
 */
const batchSize = 30

/** How long the server may take to notify a consumer that its queue is deleted. */
const cancelTimeout = Duration.seconds(5)

const connectionLost = new BrokerError.BrokerError({
  broker: "rabbitmq",
  operation: "clean",
  reason: "ConnectionLost",
  detail: "the connection was lost during a removal",
  remedy: "Run clean again: it continues where it was"
})

const messageOf = (fields: object) => ({ fields }) as Parameters<Channel["ack"]>[0] // The driver reads no more.

type Taken = Parameters<Move>[0][number]

/** Acks the messages that were moved and returns the others. Fails with the first error. */
const settle = (
  channel: Channel,
  queue: string,
  taken: ReadonlyArray<Taken>,
  errors: ReadonlyArray<BrokerError.BrokerError | undefined>
) =>
  Effect.gen(function* () {
    const send = (): void => {
      for (const [index, { fields }] of taken.entries())
        if (errors[index] !== undefined) channel.nack(messageOf(fields), false, true)
      // The server rejects a multiple ack whose last message was returned, and then acks none.
      const last = taken.findLast((_, index) => errors[index] === undefined)
      if (last !== undefined) channel.ack(messageOf(last.fields), true)
    }
    // The driver throws where the channel has been closed.
    yield* Effect.try({ try: send, catch: (cause) => toBrokerError(cause, { operation: "clean", queue }) })
    const failed = errors.find((error) => error !== undefined)
    if (failed !== undefined) return yield* failed
  })

const getBatch = async (channel: Channel, queue: string): Promise<ReadonlyArray<Taken>> => {
  const taken: Array<Taken> = []
  while (taken.length < batchSize) {
    const message = await channel.get(queue)
    if (message === false) break
    taken.push(message)
  }
  return taken
}

/** A request on a channel that is open, with a time limit. */
type Call = <A>(queue: string, run: () => Promise<A>) => Result<A>

const drain = (
  channel: Channel,
  call: Call,
  queue: string,
  move: Move,
  isStopped: (() => boolean) | undefined
): Result<number> =>
  Effect.gen(function* () {
    // Limited to this count, because publishers may fill the queue faster than it drains.
    const { messageCount } = yield* call(queue, () => channel.checkQueue(queue))
    for (let count = 0; ; ) {
      const taken = yield* call(queue, () => getBatch(channel, queue))
      const errors = yield* move(taken, queue)
      yield* settle(channel, queue, taken, errors)
      count += taken.length
      if (taken.length < batchSize || count >= messageCount || isStopped?.() === true) return count
    }
  })

const deleteQuorumQueue = (channel: Channel, call: Call, name: string, move: Move): Result<undefined> =>
  Effect.gen(function* () {
    const taken: Array<Taken> = []
    const cancelled = Promise.withResolvers<void>()
    yield* call(name, () =>
      channel.consume(name, (message) => void (message === null ? cancelled.resolve() : taken.push(message)))
    )
    // The server first delivers what was enqueued before the deletion, then cancels the consumer.
    yield* call(name, () => channel.deleteQueue(name))
    yield* Effect.ignore(
      Effect.timeout(
        Effect.promise(() => cancelled.promise),
        cancelTimeout
      )
    )
    const failed = (yield* move(taken, name, true)).find((error) => error !== undefined)
    if (failed !== undefined) return yield* failed
    return undefined
  }).pipe(Effect.uninterruptible)

/** Makes the requests on the live connection. */
export const make = (connection: Connection, live: Live, requestTimeout: number): Server => {
  const onChannel = <A, E>(name: string, use: (channel: Channel) => Effect.Effect<A, E>) =>
    Effect.suspend(() =>
      connection.current() !== live
        ? Effect.fail(connectionLost)
        : Effect.acquireUseRelease(
            openChannel(live, { operation: "clean", queue: name }, requestTimeout, (driver) => driver.channel()),
            use,
            (channel) => Effect.ignore(Effect.tryPromise(() => channel.close()))
          )
    )
  const call: Call = (queue, run) => request({ operation: "clean", queue }, 3 * requestTimeout, run)
  const ask: Server["ask"] = (name, run) => onChannel(name, (channel) => call(name, () => run(channel)))
  const check: Server["check"] = (queue) => ask(queue, (channel) => channel.checkQueue(queue))

  const deleteClassicQueue = (name: string) =>
    ask(name, (channel) => channel.deleteQueue(name, { ifEmpty: true, ifUnused: true })).pipe(
      Effect.as(undefined),
      Effect.catchIf(
        ({ reason }) => reason === "QueueMismatch",
        () => Effect.succeed("messages or a consumer arrived during its removal")
      )
    )

  return {
    ask,
    check,
    drain: (queue, move, isStopped) => onChannel(queue, (channel) => drain(channel, call, queue, move, isStopped)),
    deleteQueue: ({ name, type }, move) =>
      type === "quorum"
        ? onChannel(name, (channel) => deleteQuorumQueue(channel, call, name, move))
        : deleteClassicQueue(name),
    deleteExchange: (name) => Effect.asVoid(ask(name, (channel) => channel.deleteExchange(name))),
    bind: ({ arguments: args, key, source }, queue) =>
      Effect.asVoid(ask(queue, (channel) => channel.bindQueue(queue, source, key, args))),
    unbind: ({ arguments: args, key, source }, queue) =>
      Effect.asVoid(ask(queue, (channel) => channel.unbindQueue(queue, source, key, args))).pipe(
        Effect.catchIf(
          ({ reason }) => reason === "QueueMissing",
          () => Effect.void
        )
      ),
    restore: ({ bindings, exchanges, queues }) =>
      ask("restore", async (channel) => {
        for (const { arguments: args, name, type } of exchanges.toReversed())
          await channel.assertExchange(name, type, { durable: true, arguments: args })
        for (const { arguments: args, name } of queues)
          await channel.assertQueue(name, { durable: true, arguments: args })
        for (const { arguments: args, key, queue, source } of bindings)
          await channel.bindQueue(queue, source, key, args)
      })
  }
}
