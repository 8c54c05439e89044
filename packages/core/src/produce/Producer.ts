/** Producers: a producer sends messages to a queue, and waits for the broker's confirmation of each. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { Broker, type Service } from "../port/Broker.ts"
import { BrokerError } from "../port/BrokerError.ts"
import * as Capabilities from "../port/Capabilities.ts"
import * as Checks from "./internal/checks.ts"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as Delay from "../message/Delay.ts"
import { EncodeError } from "../message/EncodeError.ts"
import * as Sends from "./internal/sends.ts"
import type { Headers } from "../message/Message.ts"
import * as Outgoing from "../message/Outgoing.ts"
import * as QueueDefinition from "../message/QueueDefinition.ts"
import * as Telemetry from "../observe/Telemetry.ts"
import * as Timers from "../adapter-kit/Timers.ts"

/** Options of one message. */
export interface SendOptions {
  /**
   * Time until the first delivery, 0 to 24 hours; a number counts milliseconds. An explicit 0 is a delay like any other.
   * Default: the batch's delay, else the queue's, else 0.
   */
  readonly delay?: Delay.Input | undefined
  /** Text headers; `requeue` is reserved. Default: none but the codec's `content-type`. */
  readonly headers?: Headers | undefined
  /** The message's id, 1 to 200 characters without control characters. Default: a random UUID. */
  readonly id?: string | undefined
}

/** One message of a batch. */
export interface BatchEntry<A> extends SendOptions {
  readonly body: A
}

/** Options of {@link make}. */
export interface Options {
  /** Longest wait for the broker's confirmation, 1 ms to 24 hours; a number counts milliseconds. Default: 30 seconds. */
  readonly publishTimeout?: Delay.Input | undefined
  /** Messages that may wait for their confirmation at a time; further sends wait for room. Default: 1,000. */
  readonly maxPending?: number | undefined
}

/** The errors of `send`: of the broker, of a delay that it cannot keep, and of a message that cannot be sent as it is. */
export type SendError = BrokerError | Delay.InvalidDelay | EncodeError

/** A producer for one queue. */
export interface Producer<in A> {
  /** The queue's name. */
  readonly queue: string
  /** Sends a message, and succeeds with its id once the broker has confirmed it. */
  readonly send: (body: A, options?: SendOptions) => Effect.Effect<string, SendError>
  /**
   * Sends messages, and succeeds with their ids once the broker has confirmed all. Every entry is checked before the first
   * is sent. `delay` is for entries that have none of their own.
   */
  readonly sendBatch: (
    entries: ReadonlyArray<BatchEntry<A>>,
    options?: { readonly delay?: Delay.Input | undefined }
  ) => Effect.Effect<ReadonlyArray<string>, SendError>
}

/**
 * Makes a producer for a queue. It fails when the broker cannot keep the queue's delay.
 *
 * @throws RangeError when an option is out of its range
 *
 * @example
 * ```ts
 * import { MemoryBroker } from "@requeue/adapter-memory"
 * import { Producer } from "@requeue/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function* () {
 *   const orders = yield* Producer.make("orders")
 *   return yield* orders.send({ total: 9.5 }, { id: "o1", delay: "10 seconds" })
 * })
 * await Effect.runPromise(Effect.provide(program, MemoryBroker.layer())) // => "o1"
 * ```
 */
export const make = <A>(
  queue: QueueDefinition.Input<A>,
  options: Options = {}
): Effect.Effect<Producer<A>, ConfigurationError, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const { capabilities } = broker
    const definition = QueueDefinition.from(queue)
    const limits = limitsOf(options)
    yield* checkDelay(definition, capabilities)
    const clock = yield* Clock.Clock
    const sends = yield* open(broker, definition.name, limits)
    const publish = Telemetry.publisher(yield* Telemetry.Telemetry, capabilities.broker, sends.send)
    const longest = Capabilities.longestSend(capabilities)

    const toOutgoing = (entry: BatchEntry<A>, batchDelay: Delay.Delay | undefined): Outgoing.Outgoing => {
      const { body, delay, headers = {}, id = crypto.randomUUID() } = entry
      const { codec, delay: queueDelay, name } = definition
      const encoded = Checks.encode(definition, body)
      const message = {
        queue: name,
        id: Checks.id(name, id),
        body: Checks.size(name, encoded, capabilities),
        headers: withContentType(codec.contentType, Checks.headers(name, headers)),
        delay: Delay.first(Checks.delay("send.delay", delay, longest), batchDelay, queueDelay)
      }
      return Outgoing.make(message, clock.currentTimeMillisUnsafe())
    }

    const sendBatch: Producer<A>["sendBatch"] = (entries, batchOptions) =>
      Effect.suspend(() => {
        if (entries.length === 0) return Effect.succeed([])
        const prepared = attempt(() => {
          const batchDelay = Checks.delay("sendBatch.delay", batchOptions?.delay, longest)
          return entries.map((entry) => toOutgoing(entry, batchDelay))
        })
        return Effect.flatMap(prepared, (messages) =>
          Effect.as(
            publish(messages),
            messages.map(({ metadata }) => metadata.id)
          )
        )
      })

    return {
      queue: definition.name,
      sendBatch,
      send: (body, sendOptions) => Effect.map(sendBatch([{ ...sendOptions, body }]), ([id]) => id!)
    }
  })

const limitsOf = ({ maxPending = 1000, publishTimeout = 30_000 }: Options) => {
  const timeout = Delay.constrain("Producer.make: publishTimeout", publishTimeout, 1, Delay.max)
  if (Number.isSafeInteger(maxPending) && maxPending >= 1) return { maxPending, timeout }
  throw new RangeError(`Producer.make: maxPending must be a whole number >= 1, got ${maxPending}`)
}

/** Fails when the broker cannot keep the queue's delay. */
const checkDelay = <A>(
  { delay, name }: QueueDefinition.QueueDefinition<A>,
  capabilities: Capabilities.Capabilities
): Effect.Effect<void, ConfigurationError> => {
  const longest = Capabilities.longestSend(capabilities)
  if (delay === undefined || delay <= longest) return Effect.void
  return Effect.fail(
    new ConfigurationError({
      field: "delay",
      queue: name,
      broker: capabilities.broker,
      detail: `the queue's delay is ${Delay.format(delay)}, the broker keeps at most ${Delay.format(longest)}`,
      remedy: `Set it to ${Delay.format(longest)} or less`
    })
  )
}

/** The sends of a producer, with its limits and its errors. */
const open = (
  { capabilities: { broker }, publish }: Service,
  queue: string,
  { maxPending, timeout }: ReturnType<typeof limitsOf>
): Effect.Effect<Sends.Sends> =>
  Effect.gen(function* () {
    const waited = Delay.format(timeout)
    const failure = (reason: "Timeout" | "Throttled", detail: string, remedy: string) =>
      new BrokerError({ broker, operation: "publish", queue, reason, detail, remedy })
    return Sends.make({
      publish,
      fork: Effect.runForkWith(yield* Effect.context()),
      // A producer has no end, so that its scope is never closed. While no send is under way, nothing sleeps.
      timers: yield* Effect.provideService(Timers.make, Scope.Scope, yield* Scope.make()),
      timeout,
      maxPending,
      late: (isHandedOver) =>
        isHandedOver
          ? failure(
              "Timeout",
              `no confirmation within ${waited}; the message may or may not have been stored`,
              "Send it again with the same id; consumers must bear duplicates"
            )
          : failure(
              "Throttled",
              `${maxPending} messages wait for their confirmation, and none got one within ${waited}; nothing was sent`,
              "Send it again later, or raise maxPending"
            )
    })
  })

/** Runs a check. The errors of `send` are failures, anything else is a defect. */
const attempt = <A>(check: () => A): Effect.Effect<A, SendError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(check())
    } catch (error) {
      const known = error instanceof BrokerError || error instanceof Delay.InvalidDelay || error instanceof EncodeError
      return known ? Effect.fail(error) : Effect.die(error)
    }
  })

const withContentType = (contentType: string | undefined, headers: Headers): Headers =>
  contentType === undefined ? headers : { "content-type": contentType, ...headers }
