/**
 * Publishes with confirmation, on a connection of its own: a server that blocks publishers stops reading from their
 * connections, and acknowledgements must not wait behind that.
 */
import { BrokerError } from "@requeue/core/BrokerError"
import * as Delay from "@requeue/core/Delay"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../RabbitMqOptions.ts"
import type { ConfirmChannel } from "./client.ts"
import type { Link, Live } from "./link.ts"
import { request, timedOut } from "./request.ts"
import { toBrokerError } from "./toBrokerError.ts"
import type { Publication } from "./toPublication.ts"

/** What became of each publication, in order; `undefined` is well. */
type Answers = ReadonlyArray<BrokerError | undefined>

export interface Publisher {
  readonly send: (publications: ReadonlyArray<Publication>) => Effect.Effect<Answers, BrokerError>
}

/** Publications, and their bytes, that are written before the first confirmation is awaited. */
const chunk = { messages: 256, bytes: 1024 * 1024 }

interface Channel {
  readonly live: Live
  readonly native: ConfirmChannel
  /** Awaiting confirmation, by where they were sent and which they are. */
  readonly pending: Map<string, Array<Waiting>>
  isOpen: boolean
}

interface Waiting {
  readonly settle: (error: BrokerError | undefined) => void
  returned: boolean
}

/** A returned message has no number. Those of the same key share their fate: same exchange, key and time. */
const keyOf = (exchange: string, routingKey: string, messageId: unknown): string =>
  JSON.stringify([exchange, routingKey, messageId])

const unroutable = ({ exchange, queue, routingKey }: Publication): BrokerError =>
  new BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unroutable",
    detail: `nothing is bound to exchange ${exchange === "" ? "(default)" : exchange} for ${routingKey}`,
    remedy: `Declare the queue, or let the adapter do it with assert: "declare"`
  })

export const make = (link: Link, settings: Settings): Effect.Effect<Publisher> =>
  Effect.gen(function* () {
    const opening = yield* Semaphore.make(1)
    const room = yield* Semaphore.make(settings.maxUnconfirmed)
    let current: Channel | undefined

    const open = Effect.fnUntraced(function* (live: Live) {
      if (current?.live === live && current.isOpen) return current
      const context = { operation: "publish" }
      const native = yield* request(context, settings.requestTimeout, () => live.connection.confirmChannel())
      const channel: Channel = { live, native, pending: new Map(), isOpen: true }
      native.on("close", () => (channel.isOpen = false))
      native.on("return", ({ fields, properties }) => {
        const returned = fields as unknown as { readonly exchange: string; readonly routingKey: string }
        const key = keyOf(returned.exchange, returned.routingKey, properties.messageId)
        const waiting = channel.pending.get(key)?.find((one) => !one.returned)
        if (waiting !== undefined) waiting.returned = true
      })
      current = channel
      return channel
    })

    /** An open channel of a connection that takes publishes; waits for either, but not for ever. */
    const ready = (queue: string | undefined): Effect.Effect<Channel, BrokerError> =>
      Effect.suspend(() => {
        let blockedBy: string | undefined
        return Effect.gen(function* () {
          const live = yield* link.live
          blockedBy = live.blockedBy()
          yield* live.unblocked.await
          return yield* opening.withPermits(1)(open(live))
        }).pipe(
          Effect.timeoutOrElse({
            duration: Duration.millis(settings.publishTimeout),
            orElse: () => Effect.fail(notReady(queue, blockedBy, settings.publishTimeout))
          })
        )
      })

    const write = (channel: Channel, publication: Publication, settle: Waiting["settle"]): void => {
      const { content, exchange, options, queue, routingKey } = publication
      const key = keyOf(exchange, routingKey, options["messageId"])
      const waiting: Waiting = { settle, returned: false }
      const same = channel.pending.get(key) ?? []
      const done = (error: unknown): void => {
        same.splice(same.indexOf(waiting), 1)
        if (same.length === 0) channel.pending.delete(key)
        if (waiting.returned) settle(unroutable(publication))
        else settle(error === null ? undefined : toBrokerError(error, { operation: "publish", queue }))
      }
      same.push(waiting)
      channel.pending.set(key, same)
      try {
        channel.native.publish(exchange, routingKey, content, options, done)
      } catch (error) {
        done(error)
      }
    }

    const sendChunk = (publications: ReadonlyArray<Publication>): Effect.Effect<Answers, BrokerError> =>
      Effect.gen(function* () {
        const channel = yield* ready(publications[0]?.queue)
        const answers: Array<BrokerError | undefined> = []
        let open = publications.length
        const confirmed = Effect.callback<Answers>((resume) => {
          for (const [index, publication] of publications.entries()) {
            write(channel, publication, (error) => {
              answers[index] = error
              if (--open === 0) resume(Effect.succeed(answers))
            })
          }
        })
        return yield* Effect.timeoutOrElse(confirmed, {
          duration: Duration.millis(settings.publishTimeout),
          orElse: () => {
            const [first] = publications
            const error = channel.live.blockedBy()
            // What comes late on this channel has nobody to hear it.
            channel.isOpen = false
            const closing = Effect.ignore(Effect.tryPromise(() => channel.native.close()))
            const context = { operation: "publish", queue: first?.queue }
            const failure =
              error === undefined ? timedOut(context, settings.publishTimeout) : blocked(first?.queue, error)
            return Effect.andThen(Effect.forkDetach(closing), Effect.fail(failure))
          }
        })
      })

    return {
      send: Effect.fnUntraced(function* (publications) {
        const answers: Array<BrokerError | undefined> = []
        for (const part of chunks(publications, Math.min(chunk.messages, settings.maxUnconfirmed))) {
          answers.push(...(yield* room.withPermits(part.length)(sendChunk(part))))
        }
        return answers
      })
    }
  })

const chunks = (publications: ReadonlyArray<Publication>, most: number): ReadonlyArray<ReadonlyArray<Publication>> => {
  const parts: Array<Array<Publication>> = []
  let bytes = Number.POSITIVE_INFINITY
  for (const publication of publications) {
    const last = parts.at(-1)
    bytes += publication.content.length
    if (last !== undefined && last.length < most && bytes <= chunk.bytes) last.push(publication)
    else {
      parts.push([publication])
      bytes = publication.content.length
    }
  }
  return parts
}

const blocked = (queue: string | undefined, reason: string): BrokerError =>
  new BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Throttled",
    detail: `the server blocks publishers: ${reason}`,
    remedy: "Look at the server's alarms for memory and disk"
  })

const notReady = (queue: string | undefined, reason: string | undefined, millis: number): BrokerError =>
  reason === undefined
    ? new BrokerError({
        broker: "rabbitmq",
        operation: "publish",
        queue,
        reason: "ConnectionFailed",
        detail: `no connection within ${Delay.format(millis)}`
      })
    : blocked(queue, reason)
