/**
 * Scenarios: everything that determines a run of the world, as one JSON value. A seed makes a scenario; a scenario and its seed
 * make a run, always the same.
 */

/** The families of brokers: what they promise, and no more. */
export type Family = "push" | "lease" | "lossy" | "store"

/** The kinds of brokers: simulated servers, or a file, below the adapters that ship. */
export type Kind = "rabbitmq" | "sqs" | "nsq" | "sqlite"

/** The families of all kinds. */
const families: Readonly<Record<Kind, Family>> = {
  rabbitmq: "push",
  sqs: "lease",
  nsq: "lossy",
  sqlite: "store"
}

/** The family of a kind. */
export const familyOf = ({ kind }: Pick<Scenario, "kind">): Family => families[kind]

/** The kinds of brokers. */
export const kinds: ReadonlyArray<Kind> = ["rabbitmq", "sqs", "nsq", "sqlite"]

/** All kinds of values that handlers throw. */
export const thrown = [
  "error",
  "permanent",
  "drop",
  "retryAfter",
  "string",
  "undefined",
  "unprintable",
  "trap",
  "hostileRetryAfter"
] as const

/** A kind of value that a handler throws. */
export type Thrown = (typeof thrown)[number]

/** A call that a handler makes. `on` is the index of a message in its batch; without it, the call is on the whole batch. */
export interface Call {
  readonly name: "ack" | "retry" | "fail"
  readonly on: "own" | "all"
  readonly delay?: number
  /** The error that `fail` gives its message. Default: an error that is retried. */
  readonly error?: "permanent" | "drop" | "retryAfter"
}

/** A transaction at the end of a handler, which acks its message, writes a row and sends a message. */
export interface Within {
  /** Milliseconds for which it stays open; 0: it is synchronous. */
  readonly takes: number
  /** `kill`: its process dies before it is committed. */
  readonly ends: "commit" | "rollback" | "kill"
}

/** A handler's behaviour for one message in one of its runs. */
export interface Behaviour {
  /** Milliseconds, or forever. */
  readonly takes: number | "forever"
  /** Whether an interruption ends it. Default: true. */
  readonly stubborn?: boolean
  /** Calls at its beginning. */
  readonly first?: ReadonlyArray<Call>
  /** Calls at its end. */
  readonly last?: ReadonlyArray<Call>
  /** Calls a second after its end. */
  readonly late?: ReadonlyArray<Call>
  /** The value that it throws at its end. Default: it returns. */
  readonly throws?: Thrown
  /** Whether its process dies at its end. */
  readonly kills?: boolean
  /** Whether it releases its batch at its end, if that was pulled. */
  readonly releases?: boolean
  /** Whether it writes into the body and the headers. */
  readonly meddles?: boolean
  /** Its transaction, on brokers that have them. Default: none. */
  readonly within?: Within
}

/** A message that is sent. */
export interface Sending {
  readonly key: number
  readonly at: number
  /** The producer: a process that runs, or one without Requeue. */
  readonly by: "ours" | "foreign"
  /** Ids may repeat. */
  readonly id: string
  readonly delay: number
  /** Its group in a FIFO queue, or its key in a file. Default: none. */
  readonly group?: string
  /** Whose message it is, on brokers with fair shares. Default: no one's. */
  readonly share?: string
  /** Bytes of one more header. Default: there is none. */
  readonly header?: number
  readonly body: "good" | "undecodable" | "slowToDecode" | "neverDecoded"
  /** Metadata that a foreign producer writes, as text. Default: none. */
  readonly metadata?: string
  /** Its handler's behaviour in its first run, in its second, and so on. After the last, it returns at once. */
  readonly runs: ReadonlyArray<Behaviour>
}

/** The broker refuses copies of one message. */
export interface Refusal {
  readonly key: number
  /** `again`: the copies of its retries, but not that of its send. */
  readonly of: "copy" | "retry" | "again" | "deadLetter"
  /** How much a copy must leave out, 0 to 4, for the broker to accept it; 5: none is ever accepted. */
  readonly until: number
  /** Whether it ends with the faults though no copy is ever accepted. Default: it ends if some copy is accepted. */
  readonly ends?: boolean
  readonly reason: "BodyTooLarge" | "Unroutable" | "AccessRefused"
}

/** A life of a process. Its next life begins `away` milliseconds after its end. */
export interface Life {
  /** How long it lives, in milliseconds; then it is killed, or drained. */
  readonly lasts: number
  readonly ends: "kill" | "drain"
  readonly away: number
}

/** A process that runs the program. */
export interface Process {
  readonly name: string
  /** The version of the program in each life: an index of {@link Scenario.versions}. The last one repeats. */
  readonly versions: ReadonlyArray<number>
  readonly startsAt: number
  readonly lives: ReadonlyArray<Life>
  /** Times at which it stands still for a while, as in a garbage collection or under SIGSTOP. */
  readonly freezes: ReadonlyArray<{ readonly at: number; readonly for: number }>
  readonly clock: {
    /** Milliseconds by which its wall clock is ahead. */
    readonly offset: number
    /** The speed of its clocks, 1 for true time. */
    readonly speed: number
    readonly jumps: ReadonlyArray<{ readonly at: number; readonly by: number }>
  }
}

/** A program that pulls its batches: `concurrency` is then their largest number, and `handlerTimeout` their lease. */
export interface Pull {
  /** The number of loops that pull a batch, work on it, settle it, and pause. */
  readonly loops: number
  /** The longest wait of a pull, in milliseconds. */
  readonly wait: number
  /** Milliseconds after which a loop interrupts some of its pulls. Default: it interrupts none. */
  readonly timeout?: number
  /** Milliseconds from the end of a batch, or of a pull without one, to the next pull. */
  readonly pause: number
}

/** A version of the program. */
export interface Version {
  readonly maxAttempts: number
  readonly maxDeliveries: number
  readonly immediate: number
  /** Delays of the retries, in milliseconds; the last one repeats. Empty: no backoff. */
  readonly backoff: ReadonlyArray<number>
  readonly maxAge: number | undefined
  /** `undefined`: dead letters are discarded. */
  readonly deadLetter: string | undefined
  readonly concurrency: number
  readonly prefetch: number
  /** `undefined`: the handler takes single messages. */
  readonly batch: { readonly size: number; readonly wait: number } | undefined
  /** Whether the handler takes the messages of a batch one by one. Default: it takes the batch. */
  readonly each?: boolean
  /** Default: the program has a handler. */
  readonly pull?: Pull
  /** How many runs begin in any time of `per` milliseconds. Default: no limit. */
  readonly rateLimit?: { readonly max: number; readonly per: number } | undefined
  /** The limits of each share, over all processes. Default: none. */
  readonly shareLimits?:
    | {
        readonly concurrency?: number
        readonly rateLimit?: { readonly max: number; readonly per: number }
      }
    | undefined
  readonly handlerTimeout: number
  readonly drainTimeout: number
  readonly consumerBackoff:
    | { readonly multiplier: number; readonly max: number; readonly stepwise: boolean }
    | undefined
  /** Whether its handlers are async functions, which cannot be interrupted. Default: they are Effects. */
  readonly promise?: boolean
  /** How many dead letters it may make before it stops, and how much a success adds to that. Default: any number. */
  readonly budget?: { readonly max: number; readonly perSuccess: number }
  /** Misbehaving user code other than handlers. */
  readonly hook: "none" | "throws" | "throwsUnprintable"
  readonly redact: "none" | "throws"
}

/** An operation of an operator. */
export interface Operation {
  readonly at: number
  readonly what:
    | { readonly _tag: "Redrive"; readonly queue: string; readonly limit: number | undefined; readonly odd: boolean }
    | { readonly _tag: "Purge"; readonly queue: string; readonly odd: boolean }
    | { readonly _tag: "List"; readonly queue: string }
    | { readonly _tag: "Pause"; readonly for: number }
    | { readonly _tag: "Restart"; readonly away: number }
    | { readonly _tag: "Throttle"; readonly for: number }
}

/** A RabbitMQ server, and how the adapter uses it. */
export interface RabbitMq {
  readonly version: "3.10.8" | "4.0.5" | "4.3.6"
  readonly queueType: "quorum" | "classic"
  readonly topology: "auto" | "ladder" | "levels" | "perMessageTtl" | "perDelayQueue" | "waitLoop" | "native"
  /** The type of the queue, which exists and is used as it is. Default: the adapter declares it. */
  readonly adopted?: "quorum" | "classic"
  /** When the exchange is deleted that delivers delayed messages. Default: never. */
  readonly deletedAt?: number
  /** The largest frame in bytes. Default: that of the server. */
  readonly frameMax?: number
  /** Milliseconds after which an operator policy ends all delays. Default: no policy does. */
  readonly policyTtl?: number
}

/** How often faults happen, 0 to 1 for each exchange. They end at `calmAt`. */
export interface Rates {
  /** The connection is cut at a message of the exchange. */
  readonly cut: number
  /** An answer is lost, and the exchange times out. */
  readonly lostAnswer: number
  /** A request is lost, and the exchange times out. */
  readonly lostRequest: number
  /** An exchange takes much longer, perhaps beyond its timeout. */
  readonly late: number
  /** A request is made twice. */
  readonly twice: number
  /** The broker answers that it is too busy. */
  readonly busy: number
  /** The broker delivers a message that another consumer already has. */
  readonly echo: number
}

/** A scenario. */
export interface Scenario {
  readonly seed: number
  readonly kind: Kind
  /** Maximum milliseconds of one way over the network. */
  readonly latency: number
  /** Milliseconds of a lease; `rabbitmq` ignores it. */
  readonly lease: number
  readonly versions: ReadonlyArray<Version>
  readonly processes: ReadonlyArray<Process>
  readonly sendings: ReadonlyArray<Sending>
  readonly refusals: ReadonlyArray<Refusal>
  readonly operations: ReadonlyArray<Operation>
  readonly rates: Rates
  /** The server of the kind `rabbitmq`. Default: the latest one, with default options. */
  readonly rabbitmq?: RabbitMq
  /** The queues of the kind `sqs` keep the order of groups; `resend`: a retry goes to the end of its group. Default: they do not. */
  readonly fifo?: "block" | "resend"
  /** Faults happen only at places whose name contains this. Default: everywhere. */
  readonly focus?: string
  /** Faults begin before this time only; operators have finished by then. */
  readonly calmAt: number
  /** Exactly these faults happen, whatever the rates; `undefined`: the rates decide. */
  readonly only?: ReadonlyArray<string>
}

/** The one queue of the scenario's processes. */
export const queue = "work"

/** The queue of the messages that handlers send in transactions. No process consumes it. */
export const receipts = "receipts"

/** The name that programs have for a queue. */
export const nameOf = ({ fifo }: Pick<Scenario, "fifo">, name: string): string =>
  fifo === undefined ? name : name.replace(queue, `${queue}.fifo`)

/** The queue that programs name so. */
export const named = (name: string): string => name.replace(".fifo", "")

/** Whether a refusal never ends. */
export const isForever = ({ ends, until }: Refusal): boolean => until === 5 && ends !== true
