/** The messages and batches that a handler gets, and the error of a handler of the other kind. */
import type * as Acknowledgement from "../../policy/Acknowledgement.ts"
import * as Delay from "../../message/Delay.ts"
import { type Delivery, nativeOf } from "../../message/Delivery.ts"
import type { Batch, Received, RetryOptions } from "../../message/Handler.ts"
import type { Headers, Native } from "../../message/Message.ts"
import * as OptionKind from "../../options/OptionKind.ts"
import * as OptionNames from "../../options/OptionNames.ts"
import type { Item } from "./item.ts"

/**
 * The errors of a batch handler passed to `consume`, or a message handler passed to `consumeBatch`. TypeScript rejects both. In
 * JavaScript, every message would fail and be dead-lettered, or be acked without work.
 */
const wrongHandlers = new WeakSet<object>()

type Got = "message" | "batch"

const refuse = (message: string): RangeError => {
  const error = new RangeError(message)
  wrongHandlers.add(error)
  return error
}

/** Makes the error of a handler that reads a member that only the other kind of handler gets. Its consumer stops. */
const wrongHandler = (got: Got, member: string): RangeError =>
  refuse(
    got === "message"
      ? `the handler reads message.${member}, but gets one message at a time. Use consumeBatch or startBatch`
      : `the handler reads batch.${member}, but gets batches. Use consume or start, or read batch.messages`
  )

/** Makes the error of a handler that takes a message or a batch for an array. `use` is how it did. */
const ofArray = (got: Got, use: string): RangeError =>
  refuse(
    got === "message"
      ? `the handler uses message${use}, but gets one message, not an array. Read message.body, or use consumeBatch or startBatch`
      : `the handler uses batch${use}, but gets an object, not an array. Write batch.messages${use}`
  )

/**
 * Adds traps for every member of arrays to a prototype, so messages cost nothing. The traps of methods throw when they are
 * called: libraries and `console.log` look for `Symbol.iterator`.
 */
const trapArrayUse = (prototype: object, got: Got): void => {
  for (const name of ["length", "0"]) {
    const use = name === "0" ? "[0]" : `.${name}`
    Object.defineProperty(prototype, name, {
      configurable: true,
      get: () => {
        throw ofArray(got, use)
      }
    })
  }
  for (const name of Reflect.ownKeys(Array.prototype)) {
    if (name in prototype || name === Symbol.unscopables) continue
    const use = typeof name === "symbol" ? "[Symbol.iterator]()" : `.${name}()`
    Object.defineProperty(prototype, name, {
      configurable: true,
      writable: true,
      value: () => {
        throw ofArray(got, use)
      }
    })
  }
}

/** Records the calls that a handler makes on its messages and batch. Delays of retries are already parsed. */
interface Recorder {
  readonly record: (call: Acknowledgement.Call) => void
  /** Acks one message in a transaction, or without an index all that are not retried. Throws what fails at once. */
  readonly within: (transaction: unknown, index?: number) => Promise<void>
}

/** The delay is checked when it is parsed, because its limit depends on the broker. */
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
 * A message as the handler sees it. Its data are own properties, so printing shows them; its methods are on the prototype.
 */
export class ReceivedMessage implements Received<unknown> {
  readonly id: string
  readonly body: unknown
  readonly headers: Headers
  readonly timestamp: number
  readonly attempts: number
  readonly #delivery: Delivery
  readonly #index: number
  readonly #recorder: Recorder
  readonly #longest: Delay.Delay
  constructor({ body, delivery, headers }: Item, index: number, recorder: Recorder, longest: Delay.Delay) {
    this.id = delivery.metadata.id
    this.body = body
    this.headers = headers ?? delivery.headers
    this.timestamp = delivery.metadata.firstPublished
    this.attempts = delivery.attempts
    this.#delivery = delivery
    this.#index = index
    this.#recorder = recorder
    this.#longest = longest
  }
  get key(): string | undefined {
    return this.#delivery.place?.key
  }
  get fairBy(): string | undefined {
    return this.#delivery.fairBy
  }
  get native(): Native {
    return nativeOf(this.#delivery)
  }
  get messages(): never {
    throw wrongHandler("message", "messages")
  }
  get ackAll(): never {
    throw wrongHandler("message", "ackAll")
  }
  get retryAll(): never {
    throw wrongHandler("message", "retryAll")
  }
  ack(): void {
    ReceivedMessage.#check("message.ack", this)
    this.#recorder.record({ _tag: "Ack", index: this.#index })
  }
  retry(options?: RetryOptions): void {
    ReceivedMessage.#check("message.retry", this)
    const wanted = parseRetry("message.retry", options, this.#longest)
    this.#recorder.record({ _tag: "Retry", index: this.#index, ...wanted })
  }
  fail(error: unknown, options?: RetryOptions): void {
    ReceivedMessage.#check("message.fail", this)
    const wanted = parseRetry("message.fail", options, this.#longest)
    this.#recorder.record({ _tag: "Fail", index: this.#index, error, ...wanted })
  }
  within(transaction: unknown): Promise<void> {
    ReceivedMessage.#check("message.within", this)
    return this.#recorder.within(transaction, this.#index)
  }
  /** A detached method has the wrong `this`. */
  static #check(call: string, on: unknown): void {
    if (typeof on === "object" && on !== null && #recorder in on) return
    throw new TypeError(`${call}: must be called on its message, as in ${call}(); a copy of a message has no methods`)
  }
}

trapArrayUse(ReceivedMessage.prototype, "message")

/**
 * The batch as the handler sees it. Its methods need no `this`. They are initial values of fields: V8 puts a function that is
 * assigned to a property in the old generation of the heap, where it would keep its batch until a full garbage collection.
 */
export class ReceivedBatch implements Batch<unknown> {
  readonly queue: string
  readonly messages: ReadonlyArray<Received<unknown>>
  readonly ackAll = (): void => this.#recorder.record({ _tag: "AckAll" })
  readonly retryAll = (options?: RetryOptions): void =>
    this.#recorder.record({ _tag: "RetryAll", ...parseRetry("batch.retryAll", options, this.#longest, this.queue) })
  readonly within = (transaction: unknown): Promise<void> => this.#recorder.within(transaction)
  readonly #recorder: Recorder
  readonly #longest: Delay.Delay
  constructor(queue: string, messages: ReadonlyArray<Received<unknown>>, recorder: Recorder, longest: Delay.Delay) {
    this.queue = queue
    this.messages = messages
    this.#recorder = recorder
    this.#longest = longest
  }
  get body(): never {
    throw wrongHandler("batch", "body")
  }
  get ack(): never {
    throw wrongHandler("batch", "ack")
  }
  get retry(): never {
    throw wrongHandler("batch", "retry")
  }
  get fail(): never {
    throw wrongHandler("batch", "fail")
  }
}

trapArrayUse(ReceivedBatch.prototype, "batch")

/** Whether a value is such an error. It reads no property of the value, which may be a proxy that throws. */
export const isWrongHandler = (error: unknown): error is RangeError =>
  typeof error === "object" && error !== null && wrongHandlers.has(error)
