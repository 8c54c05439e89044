/** Producers: sending messages, each confirmed by the broker before its `send` resolves. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { Broker } from "../port/Broker.ts"
import { BrokerError } from "../port/BrokerError.ts"
import * as Capabilities from "../port/Capabilities.ts"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as Delay from "../message/Delay.ts"
import { EncodeError } from "../message/EncodeError.ts"
import * as Sends from "./internal/sends.ts"
import type { Headers } from "../message/Message.ts"
import * as Metadata from "../message/Metadata.ts"
import * as Outgoing from "../message/Outgoing.ts"
import * as QueueDefinition from "../message/QueueDefinition.ts"
import * as Telemetry from "../observe/Telemetry.ts"
import * as Timers from "../adapter-kit/Timers.ts"

export interface SendOptions {
  /** Time until the first delivery, 0 to 24 hours; a number counts milliseconds. An explicit 0 overrides defaults. */
  readonly delay?: Delay.Input | undefined
  /** Text headers; `requeue` is reserved. */
  readonly headers?: Headers | undefined
  /** The message's id. Default: a random UUID. */
  readonly id?: string | undefined
}

export interface BatchEntry<A> extends SendOptions {
  readonly body: A
}

export interface Options {
  /** Longest wait for the broker's confirmation. Default 30 seconds. */
  readonly publishTimeout?: Delay.Input | undefined
  /** Messages that may wait for their confirmation at a time; further sends wait for room. Default 1,000. */
  readonly maxPending?: number | undefined
}

export type SendError = BrokerError | Delay.InvalidDelay | EncodeError

export interface Producer<in A> {
  readonly queue: string
  /** Resolves with the message's id once the broker has confirmed it. */
  readonly send: (body: A, options?: SendOptions) => Effect.Effect<string, SendError>
  /**
   * Resolves with the ids once the broker has confirmed all. Every entry is checked before the first is sent; `delay`
   * is for entries that have none of their own.
   */
  readonly sendBatch: (
    entries: ReadonlyArray<BatchEntry<A>>,
    options?: { readonly delay?: Delay.Input | undefined }
  ) => Effect.Effect<ReadonlyArray<string>, SendError>
}

/**
 * Makes a producer for a queue.
 *
 * Fails when the queue's default delay is beyond what the broker can honour.
 *
 * @throws RangeError when an option is out of its range
 */
export const make = <A>(
  queue: QueueDefinition.Input<A>,
  options: Options = {}
): Effect.Effect<Producer<A>, ConfigurationError, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const telemetry = yield* Telemetry.Telemetry
    const { codec, delay: queueDelay, name } = QueueDefinition.from(queue)
    const { maxPending = 1000 } = options
    const timeout = Delay.constrain("Producer.make: publishTimeout", options.publishTimeout ?? 30_000, 1, Delay.max)
    if (!(Number.isSafeInteger(maxPending) && maxPending >= 1)) {
      throw new RangeError(`Producer.make: maxPending must be a whole number >= 1, got ${maxPending}`)
    }
    const longest = Capabilities.longestSend(broker.capabilities)
    if (queueDelay !== undefined && queueDelay > longest) {
      return yield* new ConfigurationError({
        field: "delay",
        queue: name,
        broker: broker.capabilities.broker,
        detail: `the queue's delay is ${Delay.format(queueDelay)}, the broker keeps at most ${Delay.format(longest)}`,
        remedy: `Set it to ${Delay.format(longest)} or less`
      })
    }
    const clock = yield* Clock.Clock
    const failure = (reason: "Timeout" | "Throttled", detail: string, remedy: string) =>
      new BrokerError({ broker: broker.capabilities.broker, operation: "publish", queue: name, reason, detail, remedy })
    const sends = Sends.make({
      publish: broker.publish,
      fork: Effect.runForkWith(yield* Effect.context()),
      // A producer has no end. It need not have one: while nothing is under way, nothing sleeps.
      timers: yield* Effect.provideService(Timers.make, Scope.Scope, yield* Scope.make()),
      timeout,
      maxPending,
      late: (isHandedOver) => {
        const waited = Delay.format(timeout)
        return isHandedOver
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
      }
    })

    const parse = (field: string, delay: Delay.Input | undefined): Delay.Delay | undefined => {
      const millis = delay === undefined ? undefined : Delay.parse(field, delay)
      if (millis !== undefined && millis > longest) throw new Delay.InvalidDelay({ field, got: delay, limit: longest })
      return millis
    }

    const toOutgoing = (entry: BatchEntry<A>, batchDelay: Delay.Delay | undefined): Outgoing.Outgoing => {
      const { body, delay, headers = {}, id = crypto.randomUUID() } = entry
      const encoded = encode(body)
      return Outgoing.make(
        {
          queue: name,
          id: checkId(id),
          body: checkSize(encoded),
          headers: withContentType(checkHeaders(headers)),
          delay: Delay.first(parse("send.delay", delay), batchDelay, queueDelay)
        },
        clock.currentTimeMillisUnsafe()
      )
    }

    const encode = (body: A): Uint8Array => {
      try {
        return codec.encode(body)
      } catch (cause) {
        throw new EncodeError({
          queue: name,
          field: "body",
          detail: String(cause),
          remedy: "Send what the queue's codec can encode",
          cause
        })
      }
    }

    const checkId = (id: string): string => {
      const problem =
        typeof id !== "string"
          ? `must be text, got ${typeof id}`
          : id.length < 1 || id.length > Metadata.idLimit
            ? `must have 1 to ${Metadata.idLimit} characters, got ${id.length}`
            : unprintable.test(id) || !id.isWellFormed()
              ? "must have no control characters and no broken surrogates"
              : ""
      if (problem === "") return id
      throw new EncodeError({ queue: name, field: "id", detail: problem, remedy: "Leave it out for a random UUID" })
    }

    const checkHeaders = (headers: Headers): Headers => {
      for (const [key, value] of Object.entries(headers)) {
        const problem =
          key === Metadata.header
            ? { detail: `${key} is reserved for Requeue's own metadata`, remedy: "Give it another name" }
            : typeof value === "string"
              ? undefined
              : { detail: `${key} must be text, got ${typeof value}`, remedy: "Turn it into text first" }
        if (problem !== undefined) throw new EncodeError({ queue: name, field: "headers", ...problem })
      }
      return headers
    }

    const withContentType = (headers: Headers): Headers =>
      codec.contentType === undefined ? headers : { "content-type": codec.contentType, ...headers }

    const checkSize = (body: Uint8Array): Uint8Array => {
      const { broker: brokerName, maxBodySize } = broker.capabilities
      if (body.length <= maxBodySize) return body
      throw new BrokerError({
        broker: brokerName,
        operation: "publish",
        reason: "BodyTooLarge",
        queue: name,
        detail: `the body has ${body.length} bytes, the limit is ${maxBodySize}`,
        remedy: "Store the content elsewhere and send a reference to it"
      })
    }

    const watched = Telemetry.publisher(telemetry, broker.capabilities.broker, sends.send)

    const sendBatch: Producer<A>["sendBatch"] = (entries, batchOptions) =>
      Effect.suspend(() => {
        if (entries.length === 0) return Effect.succeed([])
        const prepared = attempt(() => {
          const batchDelay = parse("sendBatch.delay", batchOptions?.delay)
          return entries.map((entry) => toOutgoing(entry, batchDelay))
        })
        return Effect.flatMap(prepared, (messages) =>
          Effect.as(
            watched(messages),
            messages.map(({ metadata }) => metadata.id)
          )
        )
      })

    return {
      queue: name,
      sendBatch,
      send: (body, sendOptions) => Effect.map(sendBatch([{ ...sendOptions, body }]), ([id]) => id!)
    }
  })

/** They would take six bytes each in the metadata, and some brokers refuse them. */
const unprintable = /\p{Cc}/u

/** Runs a check whose typed errors are failures, and anything else a defect. */
const attempt = <A>(check: () => A): Effect.Effect<A, SendError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(check())
    } catch (error) {
      const known = error instanceof BrokerError || error instanceof Delay.InvalidDelay || error instanceof EncodeError
      return known ? Effect.fail(error) : Effect.die(error)
    }
  })
