/** The items of one call of the sender, each from the call to its outcome. */
import { BrokerError } from "@requeue/core/port"
import type { Publisher, Submission } from "./publisher.ts"
import type { Item } from "./routes.ts"

/** The error of each item, in order; `undefined` for one that is confirmed. */
export type Outcomes = ReadonlyArray<BrokerError.BrokerError | undefined>

/** An item, from the call to its outcome. Classes, because there are objects for every message. */
export class Sending {
  submission: Submission | undefined = undefined
  /** Whether an earlier submission was written. */
  wasWritten = false
  isWithdrawn = false
  hasEnded = false
  error: BrokerError.BrokerError | undefined = undefined
  readonly item: Item
  readonly index: number
  readonly call: Call

  constructor(item: Item, index: number, call: Call) {
    this.item = item
    this.index = index
    this.call = call
  }

  end(error: BrokerError.BrokerError | undefined): void {
    this.hasEnded = true
    this.error = error
    this.call.note(this)
  }
}

/** The items of one call. */
export class Call {
  readonly sendings: ReadonlyArray<Sending>
  /** Monotonic milliseconds. Used only if there is a delay. */
  readonly started: number
  /** The number of items without an outcome. */
  open: number
  hasFailed = false
  /** Called when all items have ended. */
  readonly onEnded: (call: Call) => void
  readonly confirmed: ((index: number) => void) | undefined

  constructor(
    items: ReadonlyArray<Item>,
    started: number,
    onEnded: (call: Call) => void,
    confirmed?: (index: number) => void
  ) {
    this.started = started
    this.open = items.length
    this.onEnded = onEnded
    this.confirmed = confirmed
    this.sendings = items.map((item, index) => new Sending(item, index, this))
  }

  note({ error, index }: Sending): void {
    if (error === undefined) this.confirmed?.(index)
    else this.hasFailed = true
    if (--this.open === 0) this.onEnded(this)
  }

  /** The outcomes of items that have ended or were cancelled. */
  outcomes(): Outcomes {
    return this.sendings.map(({ error }) => error)
  }
}

export const isWritten = ({ submission, wasWritten }: Sending): boolean =>
  wasWritten || submission?.written !== undefined

/** The error for an item that is cancelled without an outcome. `unwritten` makes the error if it was not written. */
export const givenUp = (sending: Sending, unwritten: Publisher["unwritten"]): BrokerError.BrokerError => {
  const { queue } = sending.item.message
  if (!isWritten(sending)) return unwritten(queue, "the call was cancelled before the message was written")
  const detail = "the call was cancelled before the server confirmed the message"
  return new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "ConnectionLost",
    detail
  })
}
