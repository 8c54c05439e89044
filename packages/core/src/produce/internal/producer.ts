/** Sending with checked options: making messages and sending them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Direct from "../../runtime/Direct.ts"
import * as ShortList from "../../runtime/ShortList.ts"
import * as Uuid from "../../runtime/Uuid.ts"
import { Broker, type Service } from "../../port/Broker.ts"
import * as BrokerErrors from "../../port/BrokerError.ts"
import * as Capabilities from "../../port/Capabilities.ts"
import * as Feasibility from "../../port/Feasibility.ts"
import * as Checks from "./checks.ts"
import type { BatchEntry, BatchOptions, SendError, SendOptions } from "./checks.ts"
import * as Encoding from "./encoding.ts"
import * as Limits from "./limits.ts"
import * as Sealing from "./sealing.ts"
import type { Options } from "./limits.ts"
import { ConfigurationError } from "../../options/ConfigurationError.ts"
import type { Codec } from "../../message/Codec.ts"
import * as Delay from "../../message/Delay.ts"
import { EncodeError } from "../../message/EncodeError.ts"
import type { Headers } from "../../message/Message.ts"
import * as Outgoing from "../../message/Outgoing.ts"
import * as QueueDefinition from "../../message/QueueDefinition.ts"
import * as Telemetry from "../../observe/Telemetry.ts"

export type { SendError } from "./checks.ts"

/** A producer for one queue. */
export interface Producer<in A> {
  readonly queue: string
  /** Sends a message, and succeeds with its id once the broker has confirmed it. */
  readonly send: (body: A, options?: SendOptions) => Effect.Effect<string, SendError>
  /**
   * Sends messages, and succeeds with their ids once the broker has confirmed all. Every entry is checked before the
   * first is sent. If only some are confirmed, the `entries` of the `BrokerError` report the outcome of each message,
   * in the order of the batch.
   */
  readonly sendBatch: (
    entries: ReadonlyArray<BatchEntry<A>>,
    options?: BatchOptions
  ) => Effect.Effect<ReadonlyArray<string>, SendError>
  /**
   * Sends in a transaction of the database that has the queue: the messages exist if and only if the transaction is committed.
   * `send` then succeeds before the commit, waits for no other send, and has no `publishTimeout`.
   *
   * In a synchronous transaction, the codec must be synchronous too.
   *
   * @throws BrokerError when the broker has no transactions
   */
  readonly within: (transaction: unknown) => Pick<Producer<A>, "send" | "sendBatch">
}

/** Sends to any queue of a connection. Check arguments first, by `Checks.send` or `Checks.sendBatch`. */
export interface Sender {
  /**
   * Returns the definition of a queue to send to. `call` names the caller in errors.
   *
   * @throws ConfigurationError when the queue's delay is longer than the broker supports, RangeError for an invalid queue
   */
  readonly accept: <A>(
    call: string,
    queue: QueueDefinition.Input<unknown, A>
  ) => QueueDefinition.QueueDefinition<unknown, A>
  /** See {@link Producer}. It needs a fiber only for telemetry or a codec with `encodeMessage`. */
  readonly send: <A>(
    queue: QueueDefinition.QueueDefinition<unknown, A>,
    body: A,
    options?: SendOptions
  ) => Effect.Effect<string, SendError>
  readonly sendBatch: <A>(
    queue: QueueDefinition.QueueDefinition<unknown, A>,
    entries: ReadonlyArray<BatchEntry<A>>,
    options?: BatchOptions
  ) => Effect.Effect<ReadonlyArray<string>, SendError>
  /** Sends in a transaction. Throws a BrokerError when the broker has none. */
  readonly within: (transaction: unknown) => Pick<Sender, "send" | "sendBatch">
  /** Succeeds when none of its sends is in flight. */
  readonly ended: Effect.Effect<void>
  /** Fails all of its sends in flight. */
  readonly close: () => void
}

const noOptions: SendOptions = {}

export const open = (options: Options = {}): Effect.Effect<Sender, never, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const { capabilities } = broker
    const clock = yield* Clock.Clock
    const { close, ended, send, timeout } = yield* Limits.open(broker, options)
    const encoding = yield* Effect.annotateLogs(Encoding.make, { broker: capabilities.broker })
    const sealing = Sealing.make(capabilities, timeout, encoding)
    const telemetry = yield* Telemetry.Telemetry
    const publish = Telemetry.publisher(telemetry, capabilities.broker, send)
    const longest = Capabilities.longestSend(capabilities)

    const toOutgoing = outgoing(capabilities, longest, clock, encoding)

    const sendOne = <A>(definition: QueueDefinition.QueueDefinition<unknown, A>, body: A, options: SendOptions) =>
      Direct.make<string, SendError>((onExit) => {
        let message: Outgoing.Outgoing
        try {
          message = toOutgoing(definition, body, options, undefined)
        } catch (error) {
          return Direct.ended(onExit, isSendError(error) ? Exit.fail(error) : Exit.die(error))
        }
        const { id } = message.metadata
        return send(ShortList.of(message)).begin((exit) =>
          onExit(Exit.isSuccess(exit) ? Exit.succeed(id) : Exit.failCause(exit.cause))
        )
      })

    const sendingBatches =
      (publish: Service["publish"]): Sender["sendBatch"] =>
      (definition, entries, batchOptions) =>
        Effect.suspend(() => {
          if (entries.length === 0) return Effect.succeed([])
          const { encodeMessage } = definition.codec
          const drafted = encodeMessage === undefined ? definition : Sealing.unsealed(definition)
          const prepared = attempt(() => {
            const batchDelay = Checks.delay("sendBatch.delay", batchOptions?.delay, longest)
            return entries.map((entry, index) => {
              try {
                return toOutgoing(drafted, entry.body, entry, batchDelay)
              } catch (error) {
                throw Checks.ofEntry(entries, index, error)
              }
            })
          }, isSendError)
          const send = (messages: ReadonlyArray<Outgoing.Outgoing>) => {
            const ids = messages.map(({ metadata }) => metadata.id)
            const published = Effect.as(publish(messages), ids)
            return ids.length === 1
              ? published
              : Effect.mapError(published, (error) => BrokerErrors.withIds(error, ids))
          }
          if (encodeMessage === undefined) return Effect.flatMap(prepared, send)
          return Effect.flatMap(prepared, (drafts) => sealing.within(encodeMessage, entries, drafts, send))
        })

    const sendBatch = sendingBatches(publish)

    return {
      accept: (call, queue) => {
        const definition = QueueDefinition.from(queue, call)
        checkDelay(definition, capabilities)
        return definition
      },
      send: (definition, body, options = noOptions) =>
        telemetry === undefined && definition.codec.encodeMessage === undefined
          ? sendOne(definition, body, options)
          : one(sendBatch)(definition, body, options),
      sendBatch,
      within: (transaction) => {
        const { publishWithin } = broker
        if (publishWithin === undefined) throw BrokerErrors.withoutTransactions(capabilities.broker)
        const publish = (messages: ReadonlyArray<Outgoing.Outgoing>) => publishWithin(transaction, messages)
        const sendBatch = sendingBatches(Telemetry.publisher(telemetry, capabilities.broker, publish))
        return { send: one(sendBatch), sendBatch }
      },
      ended: Effect.andThen(sealing.ended, ended),
      close
    }
  })

/** Sends a message as a batch of one. */
const one =
  (sendBatch: Sender["sendBatch"]): Sender["send"] =>
  (definition, body, options) =>
    Effect.map(sendBatch(definition, [{ ...options, body }]), ([id]) => id!)

/** Makes messages. `longest` is the longest delay. */
const outgoing =
  (capabilities: Capabilities.Capabilities, longest: Delay.Delay, clock: Clock.Clock, { encode }: Encoding.Encoding) =>
  <A>(
    { codec, delay: queueDelay, name }: QueueDefinition.QueueDefinition<unknown, A>,
    body: A,
    { delay, fairBy, headers, id, key, native }: SendOptions,
    batchDelay: Delay.Delay | undefined
  ): Outgoing.Outgoing => {
    const message = {
      queue: name,
      body: Checks.size(name, encode(codec, name, body), capabilities),
      id: id === undefined ? Uuid.make() : Checks.id(name, id),
      headers: headers === undefined ? contentOf(codec) : withContent(codec, Checks.headers(name, headers)),
      delay: Delay.first(Checks.delay("send.delay", delay, longest), batchDelay, queueDelay),
      native,
      key: key === undefined ? undefined : Checks.shortText(name, "key", key),
      fairBy: fairBy === undefined ? undefined : Checks.shortText(name, "fairBy", fairBy)
    }
    const made = Outgoing.make(message, clock.currentTimeMillisUnsafe())
    const refused = Feasibility.refusalOf(made, capabilities)
    if (refused !== undefined) throw refused
    return made
  }

export const make = <A>(
  queue: QueueDefinition.Input<unknown, A>,
  options: Options
): Effect.Effect<Producer<A>, ConfigurationError, Broker> =>
  Effect.flatMap(open(options), (sender) =>
    Effect.map(
      attempt(() => sender.accept("Producer.make", queue), isConfigurationError),
      (definition) => {
        const to = ({ send, sendBatch }: Pick<Sender, "send" | "sendBatch">) => ({
          sendBatch: (entries: ReadonlyArray<BatchEntry<A>>, batchOptions?: BatchOptions) =>
            sendBatch(definition, entries, batchOptions),
          send: (body: A, sendOptions?: SendOptions) => send(definition, body, sendOptions)
        })
        return {
          queue: definition.name,
          ...to(sender),
          within: (transaction) => to(sender.within(transaction))
        }
      }
    )
  )

/** Throws when the queue's delay is longer than the broker supports. */
const checkDelay = (
  { delay, name }: Pick<QueueDefinition.QueueDefinition<unknown>, "delay" | "name">,
  capabilities: Capabilities.Capabilities
): void => {
  const longest = Capabilities.longestSend(capabilities)
  if (delay === undefined || delay <= longest) return
  throw new ConfigurationError({
    field: "delay",
    queue: name,
    broker: capabilities.broker,
    detail: `the queue's delay is ${Delay.format(delay)}, the broker keeps at most ${Delay.format(longest)}`,
    remedy: `Set the queue's delay to ${Delay.format(longest)} or less`
  })
}

/** Runs a check. An error of the given kind is a failure, any other a defect. */
const attempt = <A, E>(check: () => A, isFailure: (error: unknown) => error is E): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(check())
    } catch (error) {
      return isFailure(error) ? Effect.fail(error) : Effect.die(error)
    }
  })

const isSendError = (error: unknown): error is SendError =>
  error instanceof BrokerErrors.BrokerError || error instanceof Delay.InvalidDelay || error instanceof EncodeError

const isConfigurationError = (error: unknown): error is ConfigurationError => error instanceof ConfigurationError

type Content = Pick<Codec<unknown>, "contentEncoding" | "contentType">

/** A frozen copy, for sender and handlers. The sender may set the content type, but not the encoding. */
const withContent = ({ contentEncoding, contentType }: Content, headers: Headers): Headers =>
  Object.freeze({
    ...(contentType === undefined ? undefined : { "content-type": contentType }),
    ...headers,
    ...(contentEncoding === undefined ? undefined : { "content-encoding": contentEncoding })
  })

/** The shared headers of messages without their own, by codec. */
const contents = new WeakMap<object, Headers>()

const contentOf = (codec: Content): Headers => {
  const known = contents.get(codec)
  if (known !== undefined) return known
  const made = withContent(codec, {})
  contents.set(codec, made)
  return made
}
