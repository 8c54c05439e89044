/** Messages and batches as handlers see them. */
import type * as Acknowledgement from "../../policy/Acknowledgement.ts"
import * as Delay from "../../message/Delay.ts"
import * as OptionKind from "../../options/OptionKind.ts"
import * as OptionNames from "../../options/OptionNames.ts"
import type { Batch, Received, RetryOptions } from "../../message/Handler.ts"
import type { Headers } from "../../message/Message.ts"
import type { Item } from "./item.ts"

/** Records the calls that a handler makes on its messages and batch. Delays of retries are parsed already. */
export interface Recorder {
  readonly record: (call: Acknowledgement.Call) => void
}

/** The delay is checked where it is parsed, since how long it may be depends on the broker. */
const kinds: OptionNames.Of<RetryOptions> = { delay: Delay.parsed, backoff: OptionKind.flag }

const parseRetry = (
  call: string,
  options: RetryOptions | undefined,
  longest: Delay.Delay,
  queue?: string
): { readonly delay: Delay.Delay | undefined; readonly backoff: boolean } => {
  if (options === undefined) return { delay: undefined, backoff: true }
  OptionNames.check(call, options, kinds, queue)
  const { backoff = true, delay } = options
  if (delay === undefined) return { delay: undefined, backoff }
  const field = `${call}.delay`
  const millis = Delay.parse(field, delay)
  if (millis > longest) throw new Delay.InvalidDelay({ field, got: delay, limit: longest })
  return { delay: millis, backoff }
}

/**
 * A message as the handler sees it. Its data are own properties, so that it prints; its methods are on the prototype.
 */
export class ReceivedMessage implements Received<unknown> {
  readonly id: string
  readonly body: unknown
  readonly headers: Headers
  readonly timestamp: number
  readonly attempts: number
  readonly #index: number
  readonly #recorder: Recorder
  readonly #longest: Delay.Delay
  constructor({ body, delivery }: Item, index: number, recorder: Recorder, longest: Delay.Delay) {
    this.id = delivery.metadata.id
    this.body = body
    this.headers = delivery.headers
    this.timestamp = delivery.metadata.firstPublished
    this.attempts = delivery.attempts
    this.#index = index
    this.#recorder = recorder
    this.#longest = longest
  }
  ack(): void {
    this.#recorder.record({ _tag: "Ack", index: this.#index })
  }
  retry(options?: RetryOptions): void {
    const wanted = parseRetry("message.retry", options, this.#longest)
    this.#recorder.record({ _tag: "Retry", index: this.#index, ...wanted })
  }
  fail(error: unknown, options?: RetryOptions): void {
    const wanted = parseRetry("message.fail", options, this.#longest)
    this.#recorder.record({ _tag: "Fail", index: this.#index, error, ...wanted })
  }
}

/** The batch as the handler sees it. */
export const toBatch = (
  queue: string,
  messages: ReadonlyArray<Received<unknown>>,
  recorder: Recorder,
  longest: Delay.Delay
): Batch<unknown> => ({
  queue,
  messages,
  ackAll: () => recorder.record({ _tag: "AckAll" }),
  retryAll: (options) => recorder.record({ _tag: "RetryAll", ...parseRetry("batch.retryAll", options, longest, queue) })
})
