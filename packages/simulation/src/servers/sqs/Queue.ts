/** A queue of a simulated server of SQS, and what all calls share. */
import type { Host } from "../Host.ts"
import * as Api from "./Api.ts"
import type { Listener } from "./Facts.ts"
import { idOf, type Content, type Message } from "./Message.ts"
import type { Attributes } from "./QueueRules.ts"
import type { Store } from "./Store.ts"

/** Where a server differs between regions, years and test servers. */
export interface Settings {
  readonly region: string
  readonly account: string
  /** The quota of messages of one queue in flight. */
  readonly inFlight: number
  /** Milliseconds until new attributes of a queue hold. */
  readonly attributesTake: number
  /** Milliseconds for which the numbers of messages may be out of date. */
  readonly countsAge: number
  /** Whether a receipt handle of a standard queue still works after the next receive of its message. */
  readonly obeysOld: boolean
}

/**
 * An unkindness of standard queues that AWS documents:
 *
 * - `few`: a receive returns one message, though there are more.
 * - `disorder`: a receive returns messages in any order.
 * - `repeat`: a receive returns a message that is in flight.
 * - `echo`: a deleted message stays in its queue.
 */
export type Unkindness = "few" | "disorder" | "repeat" | "echo"

/** The receipt of one delivery. */
export interface Receipt {
  readonly handle: string
  readonly delivery: number
  readonly queue: Queue
  readonly message: Message
  /** Milliseconds since the epoch. */
  readonly received: number
  /** Until when it hides the message. */
  until: number
  /** Whether the message was deleted by it, or its visibility changed. */
  isUsed: boolean
}

/** A poll that waits. */
export interface Poll {
  readonly call: Api.Call
  readonly answer: (answer: Api.Reply) => void
  readonly cancel: () => void
}

/** A queue. */
export interface Queue {
  readonly name: string
  readonly url: string
  readonly arn: string
  readonly isFifo: boolean
  readonly store: Store
  attributes: Attributes
  /** The messages of the last five minutes by deduplication id. */
  readonly sent: Map<string, { readonly at: number; readonly message: Message }>
  /** The receives of the last five minutes by their id. */
  readonly attempts: Map<string, { readonly at: number; readonly receipts: ReadonlyArray<Receipt> }>
  /** The polls that wait, in their order. */
  readonly polls: Set<Poll>
  purged: number
  /** The last counts that were returned. */
  counted: { readonly at: number; readonly counts: ReturnType<Store["counts"]> } | undefined
}

/** The state that all calls share. */
export interface Env {
  readonly host: Host
  readonly settings: Settings
  readonly listen: Listener
  /** Whether an unkindness happens now. */
  readonly happens: (what: Unkindness, queue: Queue) => boolean
  readonly queues: Map<string, Queue>
  /** Returns a new number, from 1. */
  readonly number: () => number
  /** Messages of a queue have become visible. */
  readonly wake: (queue: Queue) => void
}

/** Returns a number of a queue's attributes. */
export const numberOf = ({ attributes }: Queue, name: string): number => Number(attributes[name] ?? 0)

/** Stores a new copy, and returns it. */
export const keep = (
  { host, listen, number }: Env,
  queue: Queue,
  content: Content,
  how: {
    /** Milliseconds. */
    readonly delay: number
    readonly client: string | undefined
    readonly entry?: Api.Entry
    /** The message that SQS has moved. */
    readonly moved?: { readonly message: Message; readonly source: string }
  }
): Message => {
  const { client, delay, entry, moved } = how
  const copy = number()
  const now = host.now()
  // A standard queue keeps the time of the first send, a FIFO queue counts retention from the move.
  const sent = moved === undefined || queue.isFifo ? now : moved.message.sent
  const message: Message = {
    copy,
    id: moved?.message.id ?? idOf(copy),
    content,
    sent,
    source: moved?.source,
    receives: moved?.message.receives ?? 0,
    firstReceived: moved?.message.firstReceived,
    state: "delayed",
    due: now + delay,
    delivery: 0,
    cancelDue: () => {},
    cancelExpiry: () => {}
  }
  const due = now + delay
  listen({ _tag: "Stored", message, queue: queue.name, due, isNative: moved !== undefined, client, entry })
  queue.store.add(message, delay, sent + numberOf(queue, "MessageRetentionPeriod") * 1000 - now)
  return message
}

/** Returns the queue that an ARN names. */
export const byArn = ({ queues }: Env, arn: string): Queue | undefined => {
  const queue = queues.get(Api.nameIn(arn))
  return queue?.arn === arn ? queue : undefined
}

/** The redrive policies of attributes, which each receive needs. */
const policies = new WeakMap<Attributes, ReturnType<typeof Api.jsonOf>>()

const policyOf = (attributes: Attributes): ReturnType<typeof Api.jsonOf> => {
  const known = policies.get(attributes) ?? Api.jsonOf(attributes["RedrivePolicy"])
  policies.set(attributes, known)
  return known
}

/** The dead-letter queue of a queue, and after how many receives SQS moves messages there. */
export const redriveOf = (env: Env, queue: Queue): { readonly to: Queue; readonly after: number } | undefined => {
  const { deadLetterTargetArn, maxReceiveCount } = policyOf(queue.attributes)
  const to = byArn(env, String(deadLetterTargetArn))
  return to === undefined ? undefined : { to, after: Number(maxReceiveCount) }
}
