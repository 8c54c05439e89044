/** Opens a session of a queue: declares its objects, and reads its messages. */
import type { BrokerError, Message } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import type { Plan } from "../../RabbitMqPlan.ts"
import type { Incoming } from "../client.ts"
import type { Connection } from "../connect/connection.ts"
import { openFreeChannel } from "../connect/openChannel.ts"
import type { Declarer } from "../declare/declare.ts"
import * as KeptBack from "../settle/flushPending.ts"
import * as Version from "../version.ts"
import type { Consumer } from "./credit.ts"
import { originalOf, type Receipt, type Received, type Settler } from "./receipt.ts"
import * as Session from "./session.ts"
import type * as TakenBack from "./takenBack.ts"
import { type Decoded, type Source, toDelivery } from "./toDelivery.ts"
import { toNative } from "./toNative.ts"

/** Parts of the broker that all its subscriptions share. */
export interface Dependencies {
  readonly settings: Settings
  readonly connection: Connection
  readonly declarer: Declarer
  readonly uniqueName: () => string
  /** Delay queues whose delays a policy of the server ends early, as currently known. */
  readonly early: ReadonlySet<string>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Runs an effect for as long as the broker lives. */
  readonly fork: (effect: Effect.Effect<unknown>) => void
}

/**
 * A queue as found, the objects to declare before it is consumed, and those to declare with the first delayed message.
 */
export type Target = Pick<Plan, "found" | "objects" | "onDemand">

/**
 * A class with the getter on its prototype. A getter per object would give each delivery another shape, and slow all
 * code that reads deliveries.
 */
class Arrived implements Received {
  readonly body: Uint8Array
  readonly headers: Received["headers"]
  readonly attempts: number
  readonly metadata: Received["metadata"]
  readonly redelivered: boolean
  readonly unreadable: Received["unreadable"]
  readonly receipt: Receipt
  readonly #queue: string
  constructor(decoded: Decoded, attempts: number, receipt: Receipt, queue: string) {
    this.body = decoded.body
    this.headers = decoded.headers
    this.attempts = attempts
    this.metadata = decoded.metadata
    this.redelivered = decoded.redelivered
    this.unreadable = decoded.unreadable
    this.receipt = receipt
    this.#queue = queue
  }
  get native(): Message.Native {
    return toNative(originalOf(this.receipt), this.metadata.deadLetter?.queue ?? this.#queue)
  }
}

/** Converts the messages of a source to deliveries, each with its receipt. */
const toReceived =
  (source: Source & { readonly queue: string }, takenBack: TakenBack.TakenBack) =>
  (message: Incoming, settler: Settler, consumer: Consumer): Received => {
    const decoded = toDelivery(message, source)
    const { formerReturns, isUncounted, returns } = decoded
    const tag = message.fields.deliveryTag
    const receipt: Receipt = {
      tag,
      state: "open",
      settler,
      consumer,
      message,
      returns,
      formerReturns,
      isUncounted,
      name: undefined
    }
    return new Arrived(decoded, decoded.attempts + takenBack.count(message), receipt, source.queue)
  }

/** Opens a session that calls the given functions. */
export const open = (
  { found, objects }: Target,
  declare: Declarer["renew"],
  env: Pick<Dependencies, "connection" | "early" | "now" | "settings" | "uniqueName"> & {
    readonly queue: string
    readonly keepsNotBefore: boolean
    readonly onDelivery: (delivery: Received) => void
    readonly onConsuming: () => void
    readonly takenBack: TakenBack.TakenBack
    /** Runs a function after this many milliseconds. */
    readonly after: (millis: number, run: () => void) => void
  }
): Effect.Effect<Session.Session, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const {
      after,
      connection,
      early,
      keepsNotBefore,
      now,
      onConsuming,
      onDelivery,
      queue,
      settings,
      takenBack,
      uniqueName
    } = env
    const context = { operation: "subscribe", queue }
    const live = yield* connection.within(context)
    yield* declare(objects, queue)
    const channel = yield* openFreeChannel(live, context, settings.requestTimeout, (driver) => driver.consumerChannel())
    const { version } = live.driver
    const source = { queue, type: found.type, keepsNotBefore, early, now, serverVersion: version }
    return Session.make(channel, {
      queue,
      // Under a single active consumer, a second consumer would wait forever. A queue of unknown type may have one.
      isSingle: found.arguments["x-single-active-consumer"] === true || found.type === "unknown",
      priority: settings.queues[queue]?.consumerPriority ?? 0,
      isFlushed: KeptBack.isFlushed(found, version),
      uniqueName,
      after,
      toReceived: toReceived(source, takenBack),
      onDelivery,
      // Before 4.3 the server counts every return.
      onTakenBack: Version.hasFailureCount(version) ? takenBack.add : () => {},
      onConsuming
    })
  })
