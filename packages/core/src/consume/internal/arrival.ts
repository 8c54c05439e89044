/**
 * Takes deliveries in: knows those that come again, settles those that no handler may see, decodes the others and hands
 * them on to their batch.
 */
import type { Codec, DecodedMessage } from "../../message/Codec.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Metadata from "../../message/Metadata.ts"
import * as Thenable from "../../message/Thenable.ts"
import * as Settlement from "../../message/Settlement.ts"
import * as Acknowledgement from "../../policy/Acknowledgement.ts"
import * as Failure from "../../policy/Failure.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as EventLoop from "../../runtime/EventLoop.ts"
import type { Batcher } from "./batcher.ts"
import * as Decoding from "./decoding.ts"
import type { Deliveries } from "./deliveries.ts"
import type { Flow } from "./flow.ts"
import type { Groups } from "./groups.ts"
import type { Item, InFlightCounters } from "./item.ts"
import type { Reporter } from "./reporter.ts"
import type { Runtime } from "./runtime.ts"

export interface Arrival {
  readonly onDelivery: (delivery: Delivery) => void
  /** Lets a decoded message wait for its batch. */
  readonly join: (item: Item) => void
  /** Ends the wait for all bodies that are being decoded, and answers their messages. */
  readonly clear: () => ReadonlyArray<Item>
  /** When the last message came, in milliseconds since the epoch. */
  readonly lastDelivery: () => number | undefined
}

/** A codec of any body type, as far as a consumer needs it. */
export type Decoder = Pick<Codec<unknown>, "decode" | "decodeMessage">

/** The policy by which {@link refusal} refuses, and its queue. */
export interface Admission {
  readonly queue: string
  readonly retry: RetryPolicy.RetryPolicy
}

export interface Dependencies extends Admission, Pick<Runtime, "readFailure" | "timers" | "wallClock" | "within"> {
  readonly codec: Decoder
  readonly deliveries: Deliveries
  readonly batcher: Batcher
  readonly groups: Pick<Groups, "arrived" | "ready">
  readonly load: InFlightCounters
  readonly reporter: Reporter
  readonly flow: Pick<Flow, "update" | "wants">
  /** The time of the timers, by the job of the event loop. */
  readonly jobTime: () => number
  /** Called when a message has joined those that wait for their batch. */
  readonly onArrived: () => void
}

/** The settlement of a delivery that no handler may see; `undefined` for all others. Pure. */
export const refusal = (
  { attempts, group, metadata, unreadable }: Delivery,
  { queue, retry }: Admission,
  now: () => number
): Settlement.Settlement | undefined => {
  const wait = metadata.notBefore === 0 ? 0 : Metadata.wait(metadata, now(), retry.maxAge)
  if (wait > 0) return Settlement.Release(wait)
  if (unreadable !== undefined) return RetryPolicy.giveUp(retry, queue, "undecodable", { summary: unreadable })
  // Brokers count each time that a message comes behind others of its group, whatever becomes of these.
  if (attempts <= retry.maxDeliveries || group !== undefined) return undefined
  // Its deliveries never came to an end: they killed their process, or the broker counts too many.
  const message =
    attempts - metadata.attempts > 1
      ? `delivered ${attempts} times, ${retry.maxDeliveries} allowed`
      : `delivered once, and its metadata counts ${metadata.attempts} deliveries before; ${retry.maxDeliveries} allowed`
  return RetryPolicy.giveUp(retry, queue, "too-many-deliveries", { summary: { name: "TooManyDeliveries", message } })
}

/** Decodes a body, and gives its item the headers that its handler sees. */
const opening = (open: NonNullable<Decoder["decodeMessage"]>) => {
  const take = (item: Item, opened: DecodedMessage<unknown>): unknown => {
    item.headers = Object.freeze({ ...opened.headers })
    return opened.body
  }
  return (item: Item): unknown =>
    Thenable.map(open(item.delivery.body, item.delivery.headers), (opened) => take(item, opened))
}

/**
 * The ways that a delivery takes to its batch.
 *
 * Long, because each of them begins here.
 */
export const make = (dependencies: Dependencies): Arrival => {
  const { batcher, codec, deliveries, flow, groups, load, reporter } = dependencies
  const { jobTime, onArrived, queue, readFailure, retry, timers, wallClock, within } = dependencies
  const jobDate = EventLoop.oncePerJob(wallClock)
  let lastDelivery: number | undefined
  const decoding = Decoding.make(timers, load)

  const refuse = (item: Item, settlement: Settlement.Settlement): void => {
    deliveries.settle(item, settlement)
    deliveries.flush()
  }

  // Deliveries that neither the message nor this process can account for: it may have killed its process.
  const mayKill = ({ delivery }: Item): boolean => delivery.attempts > retry.maxAttempts

  const accept = (item: Item, body: unknown): void => {
    if (item.isFollowing) return refuse(item, Settlement.Release())
    item.body = body
    if (item.group === undefined) join(item)
    else groups.ready(item)
  }

  const join = (item: Item): void => {
    const isSuspect = mayKill(item)
    batcher.push(item, isSuspect)
    if (isSuspect || load.isThrottledForSuspect) {
      load.hasGathered &&= load.isThrottledForSuspect
      load.isThrottledForSuspect = isSuspect
      flow.update()
    }
    onArrived()
  }

  const open = codec.decodeMessage && opening(codec.decodeMessage)

  const read = (item: Item): unknown => {
    const body = open === undefined ? codec.decode(item.delivery.body, item.delivery.headers) : open(item)
    return Thenable.is(body) ? Promise.resolve(body) : body
  }

  const decode = (item: Item): void => {
    let body: unknown
    try {
      body = within(read, item)
    } catch (error) {
      return refuseUnread(item, error)
    }
    if (!(body instanceof Promise)) return accept(item, body)
    decoding.wait(item, body, {
      decoded: (decoded) => (flow.wants() ? accept(item, decoded) : refuse(item, Settlement.Release())),
      failed: (error) => refuseUnread(item, error),
      late: () => fail(item, new Failure.DecodeTimeout({ timeout: Decoding.timeout }))
    })
  }

  /** No retry makes it decodable, unless the error says that one may. */
  const refuseUnread = (item: Item, error: unknown): void =>
    within(Failure.isTemporary, error)
      ? fail(item, error)
      : refuse(item, RetryPolicy.giveUp(retry, queue, "undecodable", readFailure(error)))

  /** Nobody knows whether the body can be decoded, so that this is no dead letter yet. */
  const fail = (item: Item, error: unknown): void => {
    const failure = readFailure(error)
    reporter.failed(item.delivery, failure, false)
    deliveries.conclude(item, Acknowledgement.finalise(undefined, "failure"), failure)
    deliveries.flush()
  }

  /** In flight from now on: its lease is extended while its codec works. */
  const admit = (item: Item): void => {
    const { delivery } = item
    const refused = flow.wants() ? refusal(delivery, dependencies, wallClock) : Settlement.Release()
    if (refused === undefined) decode(item)
    else refuse(item, refused)
  }

  /** Admits a message of a group when it is its turn. */
  const inTurn = (item: Item): void => groups.arrived(item, mayKill(item), () => admit(item))

  return {
    join,
    clear: decoding.clear,
    lastDelivery: () => lastDelivery,
    onDelivery: (told) => {
      lastDelivery = jobDate()
      if (load.inFlight === load.kept) load.lastMoved = jobTime()
      if (reporter.isWatched) reporter.received(told)
      const known = told.redelivered === false ? undefined : deliveries.recognise(told)
      if (known === "merged") return
      const item = deliveries.add(known?.delivery ?? told, told.attempts)
      const isAlone = told.group === undefined
      if (known?.decided.priorSettlement === undefined) return isAlone ? admit(item) : inTurn(item)
      Object.assign(item, known.decided)
      if (isAlone) deliveries.settleKnown(item)
      else groups.arrived(item, true, () => deliveries.settleKnown(item))
    }
  }
}
