/**
 * Histories: what happened in one run of the world, in order. Brokers, processes, producers and operators write it; the checker
 * and the printed table read only this.
 *
 * Times are true milliseconds since the world began, whatever the clocks of its processes show.
 */

/** A number that the world gives to each copy of a message that a broker has stored. */
export type Copy = number

/** A number that the world gives to each delivery of a copy by a broker, whether it arrives or not. */
export type Delivery = number

/** The message that a program sent, by a number that travels in its body: ids may repeat, bodies never change. */
export type Key = number

/** A requested settlement. */
export interface Asked {
  readonly tag: "Ack" | "Retry" | "DeadLetter" | "Drop" | "Release"
  /** Milliseconds; 0 where there is none. */
  readonly delay: number
  /** The reason of a dead letter or drop. */
  readonly reason: string | undefined
  /** The queue of a dead letter. */
  readonly queue: string | undefined
  /** How much of its metadata a copy leaves out, 0 to 4. */
  readonly cut: number
}

/** A call of a handler on a message or a batch. `key` is `undefined` for a call on the whole batch. */
export interface Call {
  readonly name: "ack" | "retry" | "fail" | "ackAll" | "retryAll"
  readonly key: Key | undefined
  readonly delay: number | undefined
  /** The kind of the error that `fail` was called with. Default: one that is retried. */
  readonly error?: string
}

/** One message of a handler run. */
export interface Given {
  readonly key: Key
  readonly delivery: Delivery
  /** The attempts that the handler saw. */
  readonly attempts: number
}

/** One thing that happened. `process` is the name of one life of a process, such as `a1`; a restart is another life. */
export type Fact =
  // Producers.
  /** A program calls `send`. No handler may run before `earliest`. */
  | {
      readonly _tag: "Sending"
      readonly key: Key
      readonly id: string
      readonly queue: string
      readonly earliest: number
    }
  | { readonly _tag: "Sent"; readonly key: Key }
  /** `send` failed: the broker may have the message or not. */
  | { readonly _tag: "NotSent"; readonly key: Key; readonly reason: string }
  // What the broker really did.
  /** A copy is stored, and not delivered before `due`. `native`: the broker's own limit moved it. */
  | {
      readonly _tag: "Stored"
      readonly copy: Copy
      readonly key: Key
      readonly queue: string
      readonly due: number
      /** The process that published it; `undefined` for producers outside and for the broker itself. */
      readonly process: string | undefined
      /** The delivery whose settlement it serves; `undefined` for a send. */
      readonly of: Delivery | undefined
      /** Whether it only replaces the message of that delivery, though no settlement was requested. Default: false. */
      readonly replaces?: boolean
      readonly native: boolean
      /** The reason in the copy, if it is a dead letter. */
      readonly reason: string | undefined
      /** How much of its metadata it leaves out, 0 to 4. */
      readonly cut: number
    }
  /** A copy is delivered; its answer may be lost on the way. `count` is the broker's count for this copy. */
  | {
      readonly _tag: "HandedOut"
      readonly copy: Copy
      readonly key: Key
      readonly queue: string
      readonly delivery: Delivery
      readonly process: string
      readonly count: number
    }
  /** A copy is in its queue again, and not delivered before `due`. */
  | {
      readonly _tag: "Back"
      readonly copy: Copy
      readonly key: Key
      /** The delivery that ended; `undefined` for a copy whose delay was forgotten. */
      readonly delivery: Delivery | undefined
      readonly due: number
      readonly why: "asked" | "connection" | "lease" | "restart"
      /** Milliseconds of its lease that were left, by the clock of the process that ended it. Default: 0. */
      readonly early?: number
      /** Whether its client has replaced it, without a settlement. Default: no. */
      readonly replaced?: boolean
    }
  /**
   * A copy is gone permanently. `forgotten`: the broker lost it, as its kind may; `undelivered`: the adapter keeps it in a queue for
   * operators.
   */
  | {
      readonly _tag: "Gone"
      readonly copy: Copy
      readonly key: Key
      readonly queue: string
      readonly why: "settled" | "transaction" | "purged" | "backstop" | "forgotten" | "deleted" | "undelivered"
      /** The delivery that settled it. */
      readonly delivery: Delivery | undefined
    }
  /** A transaction of a program was committed, or part of one: messages that it acked, rows and sends, by their deliveries. */
  | {
      readonly _tag: "Committed"
      readonly process: string
      readonly acked: ReadonlyArray<Delivery>
      readonly rows: ReadonlyArray<Delivery>
      readonly sends: ReadonlyArray<Delivery>
    }
  /** All processes have ended by a power cut, which has undone this of the programs' transactions, by deliveries. */
  | {
      readonly _tag: "Rebooted"
      readonly revived: ReadonlyArray<Delivery>
      readonly rows: ReadonlyArray<Delivery>
      readonly sends: ReadonlyArray<Delivery>
      /** Whether each commit of a program was synced. */
      readonly isFull: boolean
    }
  // Processes.
  | { readonly _tag: "Started"; readonly process: string; readonly version: number }
  /** `budget`: its program stops because it has made too many dead letters. Default: the world ends it. */
  | { readonly _tag: "Draining"; readonly process: string; readonly because?: "budget" }
  | { readonly _tag: "Drained"; readonly process: string; readonly complete: boolean }
  /** Nothing of this process happens after this. */
  | { readonly _tag: "Killed"; readonly process: string; readonly because: "scenario" | "handler" | "drained" }
  | { readonly _tag: "Frozen"; readonly process: string; readonly until: number }
  /** A consumer's new credit: the maximum number of unsettled deliveries. */
  | { readonly _tag: "Credit"; readonly process: string; readonly limit: number }
  /** A delivery was given to the core. */
  | {
      readonly _tag: "Arrived"
      readonly process: string
      readonly delivery: Delivery
      readonly key: Key
      readonly queue: string
      /** The attempts that the adapter reported. */
      readonly attempts: number
    }
  /** A connection of the process was restored: `gone` are the deliveries that were lost with the old one. */
  | { readonly _tag: "Reconnected"; readonly process: string; readonly gone: ReadonlyArray<Delivery> }
  /** The client reports, when a lease is extended, that it has ended. */
  | { readonly _tag: "Lapsed"; readonly process: string; readonly delivery: Delivery }
  /** A handler run begins, and ends at `Ended` with the same number. */
  | { readonly _tag: "Began"; readonly process: string; readonly run: number; readonly given: ReadonlyArray<Given> }
  /** A program begins to wait for a batch, and ends that wait. */
  | { readonly _tag: "Pulling"; readonly process: string; readonly pull: number; readonly wait: number }
  | {
      readonly _tag: "Pulled"
      readonly process: string
      readonly pull: number
      readonly why: "batch" | "empty" | "interrupted" | "drained"
    }
  | { readonly _tag: "Called"; readonly process: string; readonly run: number; readonly call: Call }
  /** A handler acks these messages in its transaction; `isRefused`: the broker has refused that. */
  | {
      readonly _tag: "Enlisted"
      readonly process: string
      readonly run: number
      readonly deliveries: ReadonlyArray<Delivery>
      readonly isRefused: boolean
    }
  /**
   * `error` is the kind of what was thrown. `timedOut`: the handler's own time was over, `handlerTimeout` or a drain interrupted
   * it, or it runs on after that.
   */
  | {
      readonly _tag: "Ended"
      readonly process: string
      readonly run: number
      readonly how: "returned" | "threw" | "interrupted" | "released"
      readonly error: string | undefined
    }
  /** The core requests a settlement from the broker's client. */
  | { readonly _tag: "Asked"; readonly process: string; readonly delivery: Delivery; readonly settlement: Asked }
  /** The client's answer: `undefined` if settled, else a fate. */
  | {
      readonly _tag: "Answered"
      readonly process: string
      readonly delivery: Delivery
      readonly settlement: Asked
      readonly fate: "lost" | "transient" | "unknown" | "rejected" | undefined
    }
  /** An event that the core reported. */
  | {
      readonly _tag: "Told"
      readonly process: string
      readonly event: string
      readonly id: string | undefined
      readonly detail: string
      /** The level of a consumer backoff. */
      readonly level?: number
    }
  /** A sample of a consumer's health. */
  | {
      readonly _tag: "Health"
      readonly process: string
      readonly state: string
      readonly because: ReadonlyArray<string>
      readonly buffered: number
      readonly inProgress: number
      readonly quarantined: number
      /** The connection's state as the adapter reports it. */
      readonly connection: "up" | "down"
    }
  // Operators.
  | { readonly _tag: "Operates"; readonly operation: number; readonly what: string }
  /** `failed` is the error's name, `reason` that of a broker's error; `count` how many letters the operation reports as moved or removed. */
  | {
      readonly _tag: "Operated"
      readonly operation: number
      readonly what: string
      readonly count: number | undefined
      readonly failed: string | undefined
      readonly reason?: string
    }
  // Faults.
  /** `site` names the fault, to make it again or leave it out. */
  | { readonly _tag: "Fault"; readonly site: string; readonly kind: string }
  /** No fault begins after this, refusals end, handlers behave. */
  | { readonly _tag: "Calm" }
  /** The world is at rest, or its time is over, or it has taken too many steps. */
  | { readonly _tag: "End"; readonly because: "rest" | "time" | "steps" }
  /** Something in the process threw where nothing may throw: a defect, or a log line of level error. */
  | { readonly _tag: "Defect"; readonly process: string; readonly detail: string }

/** A fact and its time. */
export type Entry = Fact & { readonly at: number }

/** All that happened in one run, in order. */
export type History = ReadonlyArray<Entry>
