/** Session after session of one queue, each on a channel of its own, with the credit that was given last. */
import { type BrokerError, Reconnect, Timers } from "@requeue/core/adapter-kit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { RabbitMqQueue } from "../../RabbitMqQueue.ts"
import type { Incoming } from "../client.ts"
import { type Connection, pauses } from "../connect/connection.ts"
import { request } from "../connect/request.ts"
import type { Declarer } from "../declare/declare.ts"
import type { NativeObject } from "../declare/objects.ts"
import type { Consumer } from "./credit.ts"
import * as Originals from "./originals.ts"
import type { Receipt, Received, Settler } from "./receipt.ts"
import * as Session from "./session.ts"
import { type Source, toDelivery } from "./toDelivery.ts"

/** The broker's own, which all of its subscriptions share. */
export interface Dependencies {
  readonly settings: Settings
  readonly connection: Connection
  readonly declarer: Declarer
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Milliseconds that the end of a subscription waits for the server's answer. */
const closeTimeout = 2000

/** A session that lived for so many milliseconds is replaced without a pause. */
const healthy = 1000

const ended = Effect.logWarning("a consumer ended at once")

/** Milliseconds after which settled deliveries of cancelled consumers are replaced, however few they are. */
const moment = 100

/** Tries once more: of a connection whose loss nobody had noticed, the first request finds out. */
export const foundOut = <A>(
  open: Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.retry(open, { times: 1, while: ({ reason }) => reason === "ConnectionLost" })

/** Reads the messages of a source, each with its receipt. */
const toReceived =
  (source: Source) =>
  (message: Incoming, settler: Settler, consumer: Consumer): Received => {
    const { attempts, body, headers, metadata, redelivered, ...counted } = toDelivery(message, source)
    const { formerReturns, isUncounted, returns } = counted
    const { fields, properties } = message
    Originals.note(body, properties)
    const place = { settler, consumer, tag: fields.deliveryTag, state: "open" } as const
    const facts = { isReturned: fields.redelivered, returns, formerReturns, isUncounted, properties }
    const receipt: Receipt = { ...place, ...facts, name: undefined }
    return { body, headers, attempts, metadata, redelivered, receipt }
  }

/**
 * Consumes a queue for as long as the scope lives. Fails when the first session cannot be opened on a connection that
 * lives; later ones are tried until they succeed.
 */
export const make = (
  options: {
    readonly found: RabbitMqQueue
    /** The objects that are declared first. */
    readonly objects: ReadonlyArray<NativeObject>
    /** Whether a message that comes out of a delay may still have to wait. */
    readonly keepsNotBefore: boolean
    readonly onDelivery: (delivery: Received) => void
    readonly onReconnect: () => void
  },
  { connection, declarer, now, settings, uniqueName }: Dependencies
): Effect.Effect<{ readonly credit: (limit: number) => void }, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { found, keepsNotBefore, objects, onDelivery } = options
    const { name: queue, type } = found
    // Of a single active consumer's queue, and so perhaps of one nobody knows, a second consumer would wait for ever.
    const isSingle = found.arguments["x-single-active-consumer"] === true || type === "unknown"
    const { queues, requestTimeout } = settings
    const priority = queues[queue]?.consumerPriority ?? 0
    const timers = yield* Timers.make
    const later = (run: () => void) => void timers.after(moment, run)
    let limit = 0
    let session: Session.Session | undefined

    const open = Effect.gen(function* () {
      const context = { operation: "subscribe", queue }
      const { driver } = yield* connection.within(context)
      yield* declarer.ensure(objects, queue)
      const channel = yield* request(context, requestTimeout, driver.channel)
      const source = { type, keepsNotBefore, now, serverVersion: driver.version }
      const shape = { queue, isSingle, priority }
      return Session.make(channel, { ...shape, uniqueName, later, toReceived: toReceived(source), onDelivery })
    })

    // A server that has just started takes connections before all of its queues have a leader.
    const reopen = (failures: number) =>
      Reconnect.persist(Effect.andThen(connection.live, open), {
        pauses: pauses(settings),
        message: "not consuming",
        annotations: { queue },
        failures
      })

    const keep = Effect.gen(function* () {
      /** In a row: sessions that did not last, as where the server refuses the consumer. */
      let failures = 0
      while (true) {
        const born = now()
        yield* Deferred.await(session!.gone)
        failures = now() - born < healthy ? failures + 1 : 0
        if (failures > 0 && Reconnect.isTold(failures)) yield* Effect.annotateLogs(ended, { queue, failures })
        // Its channel may have ended because somebody has deleted a queue, which nobody else may ever make again.
        declarer.forget(objects)
        session = yield* reopen(failures)
        options.onReconnect()
        session.credit.set(limit)
      }
    })

    session = yield* foundOut(open)
    const close = Effect.suspend(() =>
      session?.isOpen() === true
        ? Effect.ignore(request({ operation: "unsubscribe", queue }, closeTimeout, session.close))
        : Effect.void
    )
    yield* Effect.addFinalizer(() => close)
    yield* Effect.forkScoped(keep)

    return {
      credit: (wanted) => {
        limit = wanted
        session?.credit.set(wanted)
      }
    }
  })
