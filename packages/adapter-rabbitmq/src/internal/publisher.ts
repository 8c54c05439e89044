/**
 * Publishes with confirmation, on a connection of its own: a server that blocks publishers stops reading from their
 * connections, and acknowledgements must not wait behind that.
 */
import * as Bag from "@requeue/core/Bag"
import { BrokerError } from "@requeue/core/BrokerError"
import * as Deadlines from "@requeue/core/Deadlines"
import * as Delay from "@requeue/core/Delay"
import * as Timers from "@requeue/core/Timers"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Settings } from "../RabbitMqOptions.ts"
import type { ConfirmChannel } from "./client.ts"
import type { Link, Live } from "./link.ts"
import { request, timedOut } from "./request.ts"
import { toBrokerError } from "./toBrokerError.ts"
import type { Publication } from "./toPublication.ts"

/** What became of each publication, in order; `undefined` is well. */
export type Answers = ReadonlyArray<BrokerError | undefined>

export interface Publisher {
  /** `confirmed` hears at once of each that is well, by its index. */
  readonly send: (
    publications: ReadonlyArray<Publication>,
    confirmed?: (index: number) => void
  ) => Effect.Effect<Answers, BrokerError>
}

/** Publications, and their bytes, that are written before the first confirmation is awaited. */
const chunk = { messages: 256, bytes: 1024 * 1024 }

interface Channel {
  readonly live: Live
  readonly native: ConfirmChannel
  readonly unconfirmed: Bag.Bag<Waiting>
  isOpen: boolean
}

interface Waiting extends Bag.Member {
  readonly publication: Publication
  returned: boolean
}

/** A returned message has no number. Those alike share their fate: same exchange, key, id and time. */
const isAlike = (
  { exchange, options, routingKey }: Publication,
  fields: { readonly exchange: string; readonly routingKey: string },
  messageId: unknown
): boolean => exchange === fields.exchange && routingKey === fields.routingKey && options["messageId"] === messageId

const unroutable = ({ exchange, queue, routingKey }: Publication): BrokerError =>
  new BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unroutable",
    detail: `nothing is bound to exchange ${exchange === "" ? "(default)" : exchange} for ${routingKey}`,
    remedy: `Declare the queue, or let the adapter do it with assert: "declare"`
  })

export const make = (link: Link, settings: Settings): Effect.Effect<Publisher, never, Scope.Scope> =>
  Effect.gen(function* () {
    const opening = yield* Semaphore.make(1)
    const room = yield* Semaphore.make(settings.maxUnconfirmed)
    const deadlines = Deadlines.make(yield* Timers.make, settings.publishTimeout)
    let current: Channel | undefined

    const open = Effect.fnUntraced(function* (live: Live) {
      if (current?.live === live && current.isOpen) return current
      const context = { operation: "publish" }
      const native = yield* request(context, settings.requestTimeout, () => live.connection.confirmChannel())
      const channel: Channel = { live, native, unconfirmed: Bag.make(), isOpen: true }
      native.on("close", () => (channel.isOpen = false))
      native.on("return", ({ fields, properties }) => {
        const returned = fields as unknown as { readonly exchange: string; readonly routingKey: string }
        const waiting = [...channel.unconfirmed].find(
          (one) => !one.returned && isAlike(one.publication, returned, properties.messageId)
        )
        if (waiting !== undefined) waiting.returned = true
      })
      current = channel
      return channel
    })

    /** An open channel of a connection that takes publishes; waits for either, but not for ever. */
    const ready = (queue: string | undefined): Effect.Effect<Channel, BrokerError> =>
      Effect.suspend(() => {
        if (current?.isOpen === true && link.current() === current.live && current.live.blockedBy() === undefined) {
          return Effect.succeed(current)
        }
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

    const write = (
      channel: Channel,
      publication: Publication,
      settle: (error: BrokerError | undefined) => void
    ): void => {
      const { content, exchange, options, queue, routingKey } = publication
      const waiting: Waiting = { publication, returned: false, place: -1 }
      const done = (error: unknown): void => {
        channel.unconfirmed.delete(waiting)
        if (waiting.returned) settle(unroutable(publication))
        else settle(error === null ? undefined : toBrokerError(error, { operation: "publish", queue }))
      }
      channel.unconfirmed.add(waiting)
      try {
        channel.native.publish(exchange, routingKey, content, options, done)
      } catch (error) {
        done(error)
      }
    }

    /** What comes late on this channel has nobody to hear it. */
    const giveUp = (channel: Channel, queue: string | undefined): Effect.Effect<never, BrokerError> => {
      const reason = channel.live.blockedBy()
      channel.isOpen = false
      const closing = Effect.ignore(Effect.tryPromise(() => channel.native.close()))
      const failure =
        reason === undefined
          ? timedOut({ operation: "publish", queue }, settings.publishTimeout)
          : blocked(queue, reason)
      return Effect.andThen(Effect.forkDetach(closing), Effect.fail(failure))
    }

    const sendOn = (
      channel: Channel,
      publications: ReadonlyArray<Publication>,
      confirmed: (index: number) => void
    ): Effect.Effect<Answers, BrokerError> =>
      Effect.callback((resume) => {
        const answers: Array<BrokerError | undefined> = []
        let open = publications.length
        const deadline = Deadlines.deadline(() => resume(giveUp(channel, publications[0]?.queue)))
        deadlines.start(deadline)
        publications.forEach((publication, index) => {
          write(channel, publication, (error) => {
            answers[index] = error
            if (error === undefined) confirmed(index)
            if (--open > 0) return
            deadlines.end(deadline)
            resume(Effect.succeed(answers))
          })
        })
        return Effect.sync(() => deadlines.end(deadline))
      })

    const sendChunk = (
      publications: ReadonlyArray<Publication>,
      confirmed: (index: number) => void
    ): Effect.Effect<Answers, BrokerError> =>
      room.withPermits(publications.length)(
        Effect.flatMap(ready(publications[0]?.queue), (channel) => sendOn(channel, publications, confirmed))
      )

    return {
      send: (publications, confirmed = () => {}) => {
        if (publications.length === 1) return sendChunk(publications, confirmed)
        const parts = chunks(publications, Math.min(chunk.messages, settings.maxUnconfirmed))
        if (parts.length === 1) return sendChunk(parts[0]!, confirmed)
        let sent = 0
        const sendPart = (part: ReadonlyArray<Publication>) => {
          const first = sent
          sent += part.length
          return sendChunk(part, (index) => confirmed(first + index))
        }
        return Effect.map(Effect.forEach(parts, sendPart), (answers) => answers.flat())
      }
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
