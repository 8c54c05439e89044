/** Lives: what a history shows of each message, copy, delivery, process and handler run. */
import type { Asked, Call, Copy, Delivery, Entry, Given, History, Key } from "../../History.ts"
import type { Process, Scenario, Sending, Version } from "../../Scenario.ts"
import type { Clock } from "./Clock.ts"

/** The entry of one kind. */
export type EntryOf<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>

/** An entry, and its index in the history. */
export interface Seen<Tag extends Entry["_tag"]> {
  readonly index: number
  readonly entry: EntryOf<Tag>
}

/** A message that a program sent. */
export interface KeyLife {
  readonly key: Key
  readonly plan: Sending | undefined
  sending: Seen<"Sending"> | undefined
  sent: Seen<"Sent"> | undefined
  readonly copies: Array<CopyLife>
}

/** A copy that a broker stored. */
export interface CopyLife {
  readonly copy: Copy
  readonly message: KeyLife
  stored: Seen<"Stored"> | undefined
  gone: Seen<"Gone"> | undefined
  /** The delivery whose settlement it serves. */
  parent: DeliveryLife | undefined
  readonly deliveries: Array<DeliveryLife>
  /** Its returns to the queue. */
  readonly backs: Array<Seen<"Back">>
  /** Copies that settlements of its deliveries made. */
  readonly children: Array<CopyLife>
  /** The time that its metadata has. */
  written: Bound | undefined
  /** The time in its metadata, or a later time that the broker received. */
  bound: Bound | undefined
}

/** A time before which no handler may begin a copy. */
export interface Bound {
  readonly at: number
  /** When it became known. */
  readonly since: number
  /** The process whose clock gave it; `undefined` for true time. */
  readonly process: ProcessLife | undefined
  /** The processes that have measured its rest, for a broker that then keeps the time alone, or to write it anew. Default: none. */
  readonly measured?: ReadonlyArray<ProcessLife>
  readonly index: number
}

/** A delivery of a copy. */
export interface DeliveryLife {
  readonly delivery: Delivery
  readonly copy: CopyLife
  readonly process: ProcessLife
  readonly handedOut: Seen<"HandedOut"> | undefined
  /** Whether another consumer already had the copy. */
  readonly isEcho: boolean
  /** The earliest start of a handler, by the broker's copies and returns. */
  readonly bound: Bound | undefined
  arrived: Seen<"Arrived"> | undefined
  /** The attempt that its arrival belongs to. */
  attempt: Attempt | undefined
  back: Seen<"Back"> | undefined
  /** Index of the entry by which its connection or its lease is known to be lost; -1 if none. */
  disconnected: number
  /** Index of its ack in a transaction; -1 if there is none. */
  enlisted: number
  /** Whether the broker has refused that ack. */
  isRefused: boolean
  readonly runs: Array<Run>
  readonly settlings: Array<Settling>
}

/** The client's answer: a fate, or settled. */
type Fate = "taken" | "lost" | "transient" | "unknown" | "rejected"

/** A requested settlement, and its answer. */
export interface Settling {
  readonly index: number
  readonly at: number
  readonly asked: Asked
  readonly of: DeliveryLife
  readonly attempt: Attempt
  /** Index of the answer; -1 if there is none. */
  answer: number
  fate: Fate | undefined
}

/** A call of a handler. */
interface Heard {
  readonly index: number
  readonly at: number
  readonly call: Call
}

/** A handler run. */
export interface Run {
  readonly process: ProcessLife
  readonly began: Seen<"Began">
  ended: Seen<"Ended"> | undefined
  readonly calls: Array<Heard>
}

/** A run of one message among others. */
export interface Turn {
  readonly run: Run
  readonly given: Given
  readonly of: DeliveryLife
}

/**
 * The work of one process life on a copy, from its arrival to the accepted settlement. A lost delivery that is redelivered is the
 * same attempt, and so are immediate retries.
 */
export interface Attempt {
  readonly process: ProcessLife
  readonly copy: CopyLife
  readonly prior: Attempt | undefined
  readonly deliveries: Array<DeliveryLife>
  readonly turns: Array<Turn>
  readonly settlings: Array<Settling>
  /** The first settlement that is not a release. */
  decided: Settling | undefined
  /** Whether the next arrival of the copy is another attempt. */
  isOver: boolean
}

/** One life of a process. */
export interface ProcessLife {
  readonly name: string
  readonly plan: Process | undefined
  readonly clock: Clock
  started: Seen<"Started"> | undefined
  version: Version | undefined
  draining: Seen<"Draining"> | undefined
  drained: Seen<"Drained"> | undefined
  killed: Seen<"Killed"> | undefined
  /** Whether one of its extensions on SQS failed, and may still arrive. */
  extendsLate: boolean
  readonly frozen: Array<Seen<"Frozen">>
  readonly credits: Array<Seen<"Credit">>
  readonly deliveries: Array<DeliveryLife>
  readonly runs: Array<Run>
  readonly settlings: Array<Settling>
  readonly attempts: Array<Attempt>
  readonly told: Array<Seen<"Told">>
  /** The begins and ends of its waits for batches. */
  readonly pulls: Array<Seen<"Pulling"> | Seen<"Pulled">>
}

/** All lives of a history. */
export interface Lives {
  readonly scenario: Scenario
  readonly history: History
  /** The queues that programs send to; all others hold dead letters. */
  readonly work: ReadonlySet<string>
  readonly keys: ReadonlyMap<Key, KeyLife>
  readonly copies: ReadonlyMap<Copy, CopyLife>
  readonly deliveries: ReadonlyMap<Delivery, DeliveryLife>
  readonly processes: ReadonlyMap<string, ProcessLife>
  readonly runs: ReadonlyArray<Run>
  readonly attempts: ReadonlyArray<Attempt>
  readonly calm: Seen<"Calm"> | undefined
  readonly end: Seen<"End"> | undefined
}
