/** A producer whose options have been checked: the messages that it makes, and how it sends them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { Broker, type Service } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import * as Capabilities from "../../port/Capabilities.ts"
import * as Checks from "./checks.ts"
import type { BatchEntry, BatchOptions, SendOptions } from "./checks.ts"
import { ConfigurationError } from "../../options/ConfigurationError.ts"
import * as Delay from "../../message/Delay.ts"
import { EncodeError } from "../../message/EncodeError.ts"
import * as Sends from "./sends.ts"
import type { Headers } from "../../message/Message.ts"
import * as Outgoing from "../../message/Outgoing.ts"
import * as QueueDefinition from "../../message/QueueDefinition.ts"
import * as Telemetry from "../../observe/Telemetry.ts"
import * as Timers from "../../adapter-kit/Timers.ts"

/** Options of `Producer.make`. */
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
    options?: BatchOptions
  ) => Effect.Effect<ReadonlyArray<string>, SendError>
}

/** See `Producer.make`. What a call is given must have been checked by `Checks.send` or `Checks.sendBatch`. */
export const make = <A>(
  queue: QueueDefinition.Input<A>,
  { maxPending = 1000, publishTimeout = 30_000 }: Options = {}
): Effect.Effect<Producer<A>, ConfigurationError, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const { capabilities } = broker
    const definition = QueueDefinition.from(queue)
    const limits = { maxPending, timeout: Delay.parse("publishTimeout", publishTimeout) }
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
  { maxPending, timeout }: { readonly maxPending: number; readonly timeout: number }
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
