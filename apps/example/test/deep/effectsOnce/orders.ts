/** What the test orders of a worker, as JSON in its first argument. */

/** The moments at which a worker can kill itself. The relay has the last two. */
export const steps = [
  "before within",
  "before the row",
  "before the send",
  "before COMMIT",
  "in COMMIT",
  "after COMMIT",
  "before the ack",
  "after the ack",
  "before publishing",
  "after publishing"
] as const

export type Step = (typeof steps)[number]

/** Whether a handler's row and send are in the transaction of its ack, or come before the ack. */
export type Form = "transaction" | "ack"

/** A broker's URL with options of its adapter. */
export interface Address {
  readonly url: string
  readonly [option: string]: unknown
}

export interface Orders {
  readonly broker: Address
  /** `undefined`: the queues are in the database. */
  readonly store: Address | undefined
  /** Of the rows: a URL of PostgreSQL, or `sqlite:` and a path. */
  readonly database: string
  readonly form: Form
  /** Where the worker kills itself, and the how many-th time it is there. */
  readonly kill: { readonly step: Step; readonly time: number } | undefined
}

/** The queue of the test's messages, and the queue that each of them sends one message to. */
export const queues = { work: "effects-in", receipts: "effects-out" } as const

/** The body of a message in both queues: the index of the first message. */
export interface Body {
  readonly of: number
}
