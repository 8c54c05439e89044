/**
 * Processes arriving deliveries: recognises redeliveries, settles those that no handler may see, decodes the others and
 * passes them to the batcher.
 */
import type { Codec, DecodedMessage } from "../../message/Codec.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Metadata from "../../message/Metadata.ts"
import * as Thenable from "../../message/Thenable.ts"
import * as Settlement from "../../message/Settlement.ts"
import * as Acknowledgement from "../../policy/Acknowledgement.ts"
import * as Failure from "../../policy/Failure.ts"
import * as RetryPolicy from "../../policy/RetryPolicy.ts"
import * as Deadlines from "../../runtime/Deadlines.ts"
import * as EventLoop from "../../runtime/EventLoop.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Batcher } from "./batcher.ts"
import type { Deliveries } from "./deliveries.ts"
import type { Item } from "./item.ts"
import type { Flow } from "./flow.ts"
import type { Groups } from "./groups.ts"
import type { Reporter } from "../../observe/Reporter.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"
import type { Suspects } from "./scheduler.ts"

export interface Arrival {
  readonly onDelivery: (delivery: Delivery) => void
  /** Adds a decoded message to the batcher. */
  readonly join: (item: Item) => void
  /** Number of messages that are being decoded. */
  readonly decoding: () => number
  /** Stops waiting for the codec of a message whose delivery is lost. */
  readonly forget: (item: Item) => void
  /** Stops waiting for asynchronous codecs, and returns their messages. */
  readonly clear: () => ReadonlyArray<Item>
  /** When the last message arrived, in milliseconds since the epoch. */
  readonly lastDelivery: () => number | undefined
}

/** The decoding part of a codec of any body type. */
export type Decoder = Pick<Codec<unknown>, "decode" | "decodeMessage">

/** The policy that {@link refusal} applies, and its queue. */
export interface Admission {
  readonly queue: string
  readonly retry: RetryPolicy.RetryPolicy
}

export interface Dependencies
  extends Admission, Pick<HandlerRuntime, "readFailure" | "timers" | "wallClock" | "within"> {
  readonly codec: Decoder
  readonly deliveries: Deliveries
  readonly batcher: Batcher
  readonly groups: Pick<Groups, "arrived" | "ready">
  readonly reporter: Reporter
  readonly flow: Pick<Flow, "wants">
  readonly suspects: Pick<Suspects, "arrived">
  readonly progress: { readonly begun: (now: number) => void }
  /** The timers' time, read once per job of the event loop. */
  readonly jobTime: () => number
  /** Called when a message was added to the batcher. */
  readonly onJoined: () => void
}

/** Returns the settlement of a delivery that no handler may see; `undefined` for all others. Pure. */
export const refusal = (
  { attempts, group, metadata, unreadable }: Delivery,
  { queue, retry }: Admission,
  now: () => number
): Settlement.Settlement | undefined => {
  const wait = metadata.notBefore === 0 ? 0 : Metadata.wait(metadata, now(), retry.maxAge)
  if (wait > 0) return Settlement.Release(wait)
  if (unreadable !== undefined) return RetryPolicy.giveUp(retry, queue, "undecodable", { summary: unreadable })
  // A message of a group is often returned because of an earlier one, and brokers count those deliveries too.
  if (attempts <= retry.maxDeliveries || group !== undefined) return undefined
  // Its deliveries were never settled: they killed their process, or the broker counts too many.
  const message =
    attempts - metadata.attempts > 1
      ? `delivered ${attempts} times, ${retry.maxDeliveries} allowed`
      : `delivered once, and its metadata counts ${metadata.attempts} deliveries before; ${retry.maxDeliveries} allowed`
  return RetryPolicy.giveUp(retry, queue, "too-many-deliveries", { summary: { name: "TooManyDeliveries", message } })
}

/** Returns a function that decodes a body and stores the decoded headers in its item. */
const opening = (open: NonNullable<Decoder["decodeMessage"]>) => {
  const take = (item: Item, opened: DecodedMessage<unknown>): unknown => {
    item.headers = Object.freeze({ ...opened.headers })
    return opened.body
  }
  return (item: Item): unknown =>
    Thenable.map(open(item.delivery.body, item.delivery.headers), (opened) => take(item, opened))
}

/** Long, because every path of a delivery to its batch begins here. */
export const make = (dependencies: Dependencies): Arrival => {
  const { batcher, codec, deliveries, flow, groups, jobTime, onJoined, progress, reporter } = dependencies
  const { queue, readFailure, retry, suspects, timers, wallClock, within } = dependencies
  const jobDate = EventLoop.oncePerJob(wallClock)
  let lastDelivery: number | undefined
  const decoding = new Decoding(timers, deliveries)

  const refuse = (item: Item, settlement: Settlement.Settlement): void => {
    deliveries.settle(item, settlement)
    deliveries.flush()
  }

  // Neither the metadata nor this process can explain so many deliveries: the message may have killed its process.
  const mayKill = ({ delivery }: Item): boolean => delivery.attempts > retry.maxAttempts

  const accept = (item: Item, body: unknown): void => {
    item.body = body
    if (item.group === undefined) join(item)
    else groups.ready(item)
  }

  const join = (item: Item): void => {
    const isSuspect = mayKill(item)
    batcher.push(item, isSuspect)
    suspects.arrived(isSuspect)
    onJoined()
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
      late: () => fail(item, new Failure.DecodeTimeout({ timeout: decodeTimeout }))
    })
  }

  /** A retry helps only if the error is temporary. */
  const refuseUnread = (item: Item, error: unknown): void =>
    within(Failure.isTemporary, error)
      ? fail(item, error)
      : refuse(item, RetryPolicy.giveUp(retry, queue, "undecodable", readFailure(error)))

  /** The body may still be decodable, so the message is retried and not dead-lettered at once. */
  const fail = (item: Item, error: unknown): void => {
    const failure = readFailure(error)
    reporter.failed(item.delivery, failure, false)
    deliveries.conclude(item, Acknowledgement.finalise(undefined, "failure"), failure)
    deliveries.flush()
  }

  /** From here on the item is in flight, and its lease is extended while the codec decodes it. */
  const admit = (item: Item): void => {
    const { delivery } = item
    const refused = flow.wants() ? refusal(delivery, dependencies, wallClock) : Settlement.Release()
    if (refused === undefined) decode(item)
    else refuse(item, refused)
  }

  /** Admits a message of a group when it is the next of the group. */
  const inTurn = (item: Item): void => groups.arrived(item, mayKill(item), () => admit(item))

  return {
    join,
    decoding: () => decoding.size,
    forget: (item) => decoding.forget(item),
    clear: () => decoding.clear(),
    lastDelivery: () => lastDelivery,
    onDelivery: (delivery) => {
      lastDelivery = jobDate()
      const { inFlight, kept } = deliveries.counts
      if (inFlight === kept) progress.begun(jobTime())
      if (reporter.isWatched) reporter.received(delivery)
      const known = delivery.redelivered === false ? undefined : deliveries.recognise(delivery)
      if (known === "merged") return
      const item = known === undefined ? deliveries.add(delivery) : deliveries.add(known.delivery, known.history)
      const isAlone = delivery.group === undefined
      if (known?.history.prior === undefined) return isAlone ? admit(item) : inTurn(item)
      if (isAlone) deliveries.settleKnown(item)
      else groups.arrived(item, true, () => deliveries.settleKnown(item))
    }
  }
}

/** Time limit of a codec, in milliseconds. */
const decodeTimeout = 30_000

/** Exactly one of these is called for a body, unless its delivery is lost or returned first. */
interface Ends {
  readonly decoded: (body: unknown) => void
  readonly failed: (error: unknown) => void
  readonly late: () => void
}

/** Messages whose codec returned a promise. Each has a time limit. */
class Decoding {
  readonly #deadlines: Deadlines.Deadlines
  readonly #deliveries: Pick<Deliveries, "advance">
  readonly #waiting = new Map<Item, Deadlines.Deadline>()

  constructor(timers: Timers, deliveries: Pick<Deliveries, "advance">) {
    this.#deadlines = Deadlines.make(timers, decodeTimeout, true)
    this.#deliveries = deliveries
  }

  get size(): number {
    return this.#waiting.size
  }

  wait(item: Item, body: Promise<unknown>, { decoded, failed, late }: Ends): void {
    const deadline = Deadlines.deadline(() => {
      if (this.#end(item)) late()
    })
    this.#waiting.set(item, deadline)
    this.#deliveries.advance(item, "DecodingStarted")
    this.#deadlines.start(deadline)
    body.then(
      (value) => {
        if (this.#end(item)) decoded(value)
      },
      (error: unknown) => {
        if (this.#end(item)) failed(error)
      }
    )
  }

  /** Stops waiting for the codec of a message. Returns whether it was waiting. */
  forget(item: Item): boolean {
    const deadline = this.#waiting.get(item)
    if (deadline === undefined) return false
    this.#deadlines.end(deadline)
    return this.#waiting.delete(item)
  }

  /** Stops waiting, and returns the messages that are still being decoded, in order of arrival. */
  clear(): ReadonlyArray<Item> {
    return [...this.#waiting.keys()].filter((item) => this.#end(item))
  }

  #end(item: Item): boolean {
    const isWaiting = this.forget(item)
    if (isWaiting) this.#deliveries.advance(item, "DecodingEnded")
    return isWaiting
  }
}
