/** A delivery inside the consumer, from its arrival to its settlement. */
import type * as Acknowledgement from "../Acknowledgement.ts"
import * as Delay from "../Delay.ts"
import type { Delivery } from "../Delivery.ts"
import type { Batch, Received, RetryOptions } from "../Handler.ts"
import type { Headers } from "../Message.ts"
import type * as Bag from "../Bag.ts"

export interface Item extends Bag.Member {
  readonly delivery: Delivery
  /** `undefined` until it is decoded. */
  body: unknown
  /** Names the delivery, not the message. */
  readonly key: string
  /** Monotonic milliseconds. */
  readonly arrived: number
  /** True from the moment its settlement is decided: its lease is no longer extended. */
  settling: boolean
}

/** Takes a call of the handler; `retry` delays are parsed already. */
export type Recorder = (call: Acknowledgement.Call) => void

const parseRetry = (
  field: string,
  options: RetryOptions | undefined,
  longest: Delay.Delay
): { readonly delay: Delay.Delay | undefined; readonly backoff: boolean } => {
  const { backoff = true, delay } = options ?? {}
  if (delay === undefined) return { delay: undefined, backoff }
  const millis = Delay.parse(field, delay)
  if (millis > longest) throw new Delay.InvalidDelay({ field, got: delay, limit: longest })
  return { delay: millis, backoff }
}

/** A message as the handler sees it: its data as own properties, so that it prints, and methods on the prototype. */
export class ReceivedMessage implements Received<unknown> {
  readonly id: string
  readonly body: unknown
  readonly headers: Headers
  readonly timestamp: number
  readonly attempts: number
  readonly #index: number
  readonly #record: Recorder
  readonly #longest: Delay.Delay
  constructor({ body, delivery }: Item, index: number, record: Recorder, longest: Delay.Delay) {
    this.id = delivery.metadata.id
    this.body = body
    this.headers = delivery.headers
    this.timestamp = delivery.metadata.firstPublished
    this.attempts = delivery.attempts
    this.#index = index
    this.#record = record
    this.#longest = longest
  }
  ack(): void {
    this.#record({ _tag: "Ack", index: this.#index })
  }
  retry(options?: RetryOptions): void {
    this.#record({ _tag: "Retry", index: this.#index, ...parseRetry("message.retry.delay", options, this.#longest) })
  }
}

/** The batch as the handler sees it. */
export const toBatch = (
  queue: string,
  messages: ReadonlyArray<Received<unknown>>,
  record: Recorder,
  longest: Delay.Delay
): Batch<unknown> => ({
  queue,
  messages,
  ackAll: () => record({ _tag: "AckAll" }),
  retryAll: (options) => record({ _tag: "RetryAll", ...parseRetry("batch.retryAll.delay", options, longest) })
})
