/** Opens a session of a queue: declares what it needs, and reads its messages. */
import type { BrokerError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Plan } from "../../RabbitMqPlan.ts"
import type { Incoming } from "../client.ts"
import type { Connection } from "../connect/connection.ts"
import { openChannel } from "../connect/openChannel.ts"
import type { Declarer } from "../declare/declare.ts"
import * as KeptBack from "../settle/keptBack.ts"
import * as Version from "../version.ts"
import * as Wire from "../wire.ts"
import type { Consumer } from "./credit.ts"
import * as Originals from "./originals.ts"
import type { Receipt, Received, Settler } from "./receipt.ts"
import * as Session from "./session.ts"
import type * as TakenBack from "./takenBack.ts"
import { type Source, toDelivery } from "./toDelivery.ts"
import { toNative } from "./toNative.ts"

/** The broker's own, which all of its subscriptions share. */
export interface Dependencies {
  readonly settings: Settings
  readonly connection: Connection
  readonly declarer: Declarer
  readonly uniqueName: () => string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Runs an effect for as long as the broker lives. */
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

/** A queue as it is, and what is declared before it is consumed. */
export type Target = Pick<Plan, "found" | "objects">

/** Reads the messages of a source, each with its receipt. */
const toReceived =
  (source: Source & { readonly queue: string }, takenBack: TakenBack.TakenBack) =>
  (message: Incoming, settler: Settler, consumer: Consumer): Received => {
    const { attempts, body, headers, metadata, redelivered, unreadable, ...counted } = toDelivery(message, source)
    const { formerReturns, isUncounted, returns } = counted
    const { fields } = message
    const properties = Wire.propertiesOf(message)
    Originals.note(body, properties)
    const place = { settler, consumer, tag: fields.deliveryTag, state: "open" } as const
    const facts = { isReturned: fields.redelivered, returns, formerReturns, isUncounted, body, properties }
    const receipt: Receipt = { ...place, ...facts, name: undefined }
    return {
      body,
      headers,
      attempts: attempts + takenBack.count(message),
      metadata,
      redelivered,
      unreadable,
      get native() {
        return toNative(properties, metadata.deadLetter?.queue ?? source.queue)
      },
      receipt
    }
  }

/** A session that the subscription's own functions are told of. */
export const open = (
  { found, objects }: Target,
  declare: Declarer["renew"],
  env: Pick<Dependencies, "connection" | "now" | "settings" | "uniqueName"> & {
    readonly queue: string
    readonly keepsNotBefore: boolean
    readonly onDelivery: (delivery: Received) => void
    readonly onConsuming: () => void
    readonly takenBack: TakenBack.TakenBack
    /** Runs a function a moment later. */
    readonly later: (run: () => void) => void
  }
): Effect.Effect<Session.Session, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { connection, keepsNotBefore, later, now, onConsuming, onDelivery, queue, settings, takenBack, uniqueName } =
      env
    const context = { operation: "subscribe", queue }
    const live = yield* connection.within(context)
    yield* declare(objects, queue)
    const channel = yield* openChannel(live, context, settings.requestTimeout, (driver) => driver.channel())
    const { version } = live.driver
    const source = { queue, type: found.type, keepsNotBefore, now, serverVersion: version }
    return Session.make(channel, {
      queue,
      // Of a single active consumer's queue, and so perhaps of one nobody knows, a second consumer would wait for ever.
      isSingle: found.arguments["x-single-active-consumer"] === true || found.type === "unknown",
      priority: settings.queues[queue]?.consumerPriority ?? 0,
      isFlushed: KeptBack.isFlushed(found, version),
      uniqueName,
      later,
      toReceived: toReceived(source, takenBack),
      onDelivery,
      // Before 4.3 the server counts every return.
      onTakenBack: Version.hasFailureCount(version) ? takenBack.add : () => {},
      onConsuming
    })
  })
