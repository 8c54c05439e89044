/** Lives: what a history says of each message, copy, delivery, process and handler run. */
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
  /** The time that its metadata has, or that the broker was told since. */
  bound: Bound | undefined
}

/** A time before which no handler may begin a copy. */
export interface Bound {
  readonly at: number
  /** Since when it is known. */
  readonly since: number
  /** Whose clock told it; `undefined` for one that tells true time. */
  readonly process: ProcessLife | undefined
  readonly index: number
}

/** A handing-out of a copy. */
export interface DeliveryLife {
  readonly delivery: Delivery
  readonly copy: CopyLife
  readonly process: ProcessLife
  readonly handedOut: Seen<"HandedOut"> | undefined
  /** Whether the copy was with another consumer already. */
  readonly isEcho: boolean
  /** The earliest begin of a handler, as the broker's copies and returns say. */
  readonly bound: Bound | undefined
  arrived: Seen<"Arrived"> | undefined
  /** The attempt that its arrival belongs to. */
  attempt: Attempt | undefined
  back: Seen<"Back"> | undefined
  /** Index of the entry by which its connection or its lease is known to be lost; -1 where it is not. */
  disconnected: number
  readonly runs: Array<Run>
  readonly settlings: Array<Settling>
}

/** How the client answered: as a fate, or that it was taken. */
type Fate = "taken" | "lost" | "transient" | "unknown" | "rejected"

/** A settlement that was asked, and its answer. */
export interface Settling {
  readonly index: number
  readonly at: number
  readonly asked: Asked
  readonly of: DeliveryLife
  readonly attempt: Attempt
  /** Index of the answer; -1 where there is none. */
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
 * The work of one process life on a copy, from its arrival to the settlement that was taken. A delivery that is lost and comes
 * again is the same attempt; immediate retries are more turns of it.
 */
export interface Attempt {
  readonly process: ProcessLife
  readonly copy: CopyLife
  readonly prior: Attempt | undefined
  readonly deliveries: Array<DeliveryLife>
  readonly turns: Array<Turn>
  readonly settlings: Array<Settling>
  /** The first settlement that is no release. */
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
  readonly frozen: Array<Seen<"Frozen">>
  readonly credits: Array<Seen<"Credit">>
  readonly deliveries: Array<DeliveryLife>
  readonly runs: Array<Run>
  readonly settlings: Array<Settling>
  readonly attempts: Array<Attempt>
  readonly told: Array<Seen<"Told">>
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
