/**
 * Requests of the removal of a queue, on one connection: a lock that is lost with it must end the removal.
 *
 * No release of RabbitMQ deletes a quorum queue with `if-empty` or `if-unused`: it answers NOT_IMPLEMENTED, and closes the
 * connection (3.10.8, 4.0.5, 4.3.6). So whatever could enter is led elsewhere before, or is taken by a consumer until the
 * queue is gone.
 */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Channel } from "../client.ts"
import type { Connection, Live } from "../connect/connection.ts"
import { openChannel } from "../connect/openChannel.ts"
import { request } from "../connect/request.ts"
import { toBrokerError } from "../toBrokerError.ts"
import type { BindingInfo, ExchangeInfo, QueueInfo } from "./management.ts"
import type { Move } from "./moving.ts"

/** Requests on channels of their own. Each fails with `ConnectionLost` when the connection is another one by now. */
export interface Removal {
  readonly ask: <A>(name: string, run: (channel: Channel) => Promise<A>) => Effect.Effect<A, BrokerError.BrokerError>
  /**
   * Takes what is in a queue by now and moves it, until `isStopped` where that is given; answers how many were moved. What
   * cannot be moved stays, with its error.
   */
  readonly drain: (
    queue: string,
    move: Move,
    isStopped?: () => boolean
  ) => Effect.Effect<number, BrokerError.BrokerError>
  /** Deletes a queue that is empty, and moves what enters it in its last moment. Answers why it is still there. */
  readonly remove: (
    queue: Pick<QueueInfo, "name" | "type">,
    move: Move
  ) => Effect.Effect<string | undefined, BrokerError.BrokerError>
  readonly bind: (binding: BindingInfo, queue: string) => Effect.Effect<void, BrokerError.BrokerError>
  readonly unbind: (binding: BindingInfo, queue: string) => Effect.Effect<void, BrokerError.BrokerError>
  /** Deletes an exchange, with its bindings. */
  readonly removeExchange: (name: string) => Effect.Effect<void, BrokerError.BrokerError>
  /** Makes everything as it was. */
  readonly restore: (objects: {
    readonly queues: ReadonlyArray<QueueInfo>
    readonly exchanges: ReadonlyArray<ExchangeInfo>
    readonly bindings: ReadonlyArray<BindingInfo>
  }) => Effect.Effect<void, BrokerError.BrokerError>
}

/**
 * Messages that are moved at a time. Each was got on its own, and is settled so: of more than 32 settlements at once, a
 * channel that closes forgets those that it has not begun (tried on 4.3.6).
 */
const batch = 30

/** Milliseconds until the server has told a consumer that its queue is gone. */
const farewell = Duration.seconds(5)

const lost = (operation: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation,
    reason: "ConnectionLost",
    detail: "the connection was lost in the middle of a removal",
    remedy: "Run it again: it goes on where it was"
  })

const messageOf = (fields: object) => ({ fields }) as Parameters<Channel["ack"]>[0] // The driver reads no more.

type Taken = Parameters<Move>[0][number]

/**
 * Requests on the live connection.
 *
 * Long, because each is short, and all share the connection.
 */
export const make = (connection: Connection, live: Live, requestTimeout: number): Removal => {
  const onChannel = <A, E>(name: string, use: (channel: Channel) => Effect.Effect<A, E>) =>
    connection.current() !== live
      ? Effect.fail(lost("clean"))
      : Effect.acquireUseRelease(
          openChannel(live, { operation: "clean", queue: name }, requestTimeout, (driver) => driver.channel()),
          use,
          (channel) => Effect.ignore(Effect.tryPromise(() => channel.close()))
        )
  const ask: Removal["ask"] = (name, run) =>
    Effect.suspend(() =>
      onChannel(name, (channel) => request({ operation: "clean", queue: name }, 3 * requestTimeout, () => run(channel)))
    )

  /** Moves messages, and acknowledges those that are where they belong. Fails with the first error of the others. */
  const settle = (channel: Channel, taken: ReadonlyArray<Taken>, queue: string, move: Move) =>
    Effect.gen(function* () {
      const errors = yield* move(taken, queue)
      const answer = (): void => {
        for (const [index, { fields }] of taken.entries())
          if (errors[index] !== undefined) channel.nack(messageOf(fields), false, true)
        // One that was given back cannot end those that are acknowledged: the server would refuse that, and take none.
        const last = taken.findLast((_, index) => errors[index] === undefined)
        if (last !== undefined) channel.ack(messageOf(last.fields), true)
      }
      // The driver throws where the channel was closed meanwhile.
      yield* Effect.try({ try: answer, catch: (cause) => toBrokerError(cause, { operation: "clean", queue }) })
      const failed = errors.find((error) => error !== undefined)
      if (failed !== undefined) return yield* failed
    })

  const drain: Removal["drain"] = (queue, move, isStopped) =>
    Effect.suspend(() =>
      onChannel(queue, (channel) =>
        Effect.gen(function* () {
          // Not until it is empty: somebody may fill it faster.
          const { messageCount } = yield* request({ operation: "clean", queue }, requestTimeout, () =>
            channel.checkQueue(queue)
          )
          for (let count = 0; ; ) {
            const taken = yield* request({ operation: "clean", queue }, 3 * requestTimeout, async () => {
              const found: Array<Taken> = []
              while (found.length < batch) {
                const message = await channel.get(queue)
                if (message === false) break
                found.push(message)
              }
              return found
            })
            yield* settle(channel, taken, queue, move)
            count += taken.length
            if (taken.length < batch || count >= messageCount || isStopped?.() === true) return count
          }
        })
      )
    )

  const remove: Removal["remove"] = ({ name, type }, move) =>
    type !== "quorum"
      ? ask(name, (channel) => channel.deleteQueue(name, { ifEmpty: true, ifUnused: true })).pipe(
          Effect.as(undefined),
          Effect.catchIf(
            ({ reason }) => reason === "QueueMismatch",
            () => Effect.succeed("messages or a consumer came while it was being removed")
          )
        )
      : Effect.suspend(() =>
          onChannel(name, (channel) =>
            Effect.gen(function* () {
              const taken: Array<Taken> = []
              const gone = Promise.withResolvers<void>()
              yield* request({ operation: "clean", queue: name }, requestTimeout, () =>
                channel.consume(name, (message) => void (message === null ? gone.resolve() : taken.push(message)))
              )
              // What is enqueued before the deletion is delivered before the consumer is told of it.
              yield* request({ operation: "clean", queue: name }, 3 * requestTimeout, () => channel.deleteQueue(name))
              yield* Effect.ignore(
                Effect.timeout(
                  Effect.promise(() => gone.promise),
                  farewell
                )
              )
              const failed = (yield* move(taken, name, true)).find((error) => error !== undefined)
              if (failed !== undefined) return yield* failed
              return undefined
            }).pipe(Effect.uninterruptible)
          )
        )

  return {
    ask,
    drain,
    remove,
    bind: ({ arguments: args, key, source }, queue) =>
      Effect.asVoid(ask(queue, (channel) => channel.bindQueue(queue, source, key, args))),
    unbind: ({ arguments: args, key, source }, queue) =>
      ask(queue, (channel) => channel.unbindQueue(queue, source, key, args)).pipe(
        Effect.catchIf(
          ({ reason }) => reason === "QueueMissing",
          () => Effect.void
        ),
        Effect.asVoid
      ),
    removeExchange: (name) => Effect.asVoid(ask(name, (channel) => channel.deleteExchange(name))),
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
