/**
 * A type test: what a handler has in its hands, and that it can read but not write it.
 * Nothing here runs; `npm run check -- types` compiles it.
 */
import { Handler } from "@requeue/core"
import type { Batch, Context, Headers, Message, PulledBatch, Received, RetryOptions } from "@requeue/core/promise"
import { expectTypeOf } from "vitest"

interface Order {
  readonly id: string
}

interface ReadOnlyMessage {
  readonly id: string
  readonly body: Order
  readonly headers: Readonly<Record<string, string>>
  readonly timestamp: number
  readonly attempts: number
  readonly key?: string | undefined
  readonly fairBy?: string | undefined
  readonly native: Readonly<Record<string, unknown>>
}

expectTypeOf<Message<Order>>().toEqualTypeOf<ReadOnlyMessage>()
expectTypeOf<Omit<Received<Order>, "ack" | "retry" | "fail" | "within">>().toEqualTypeOf<ReadOnlyMessage>()
expectTypeOf<Received<Order>["ack"]>().toEqualTypeOf<() => void>()
expectTypeOf<Received<Order>["fail"]>().toEqualTypeOf<(error: unknown, options?: RetryOptions) => void>()
expectTypeOf<Received<Order>["within"]>().toEqualTypeOf<(transaction: unknown) => Promise<void>>()
expectTypeOf<Batch<Order>["within"]>().toEqualTypeOf<Received<Order>["within"]>()
expectTypeOf<Received<Order>["retry"]>().toEqualTypeOf<(options?: RetryOptions) => void>()

expectTypeOf<Omit<Batch<Order>, "ackAll" | "retryAll" | "within">>().toEqualTypeOf<{
  readonly queue: string
  readonly messages: ReadonlyArray<Received<Order>>
}>()
expectTypeOf<Batch<Order>["ackAll"]>().toEqualTypeOf<() => void>()
expectTypeOf<Batch<Order>["retryAll"]>().toEqualTypeOf<(options?: RetryOptions) => void>()

expectTypeOf<Omit<PulledBatch<Order>, keyof Batch<Order>>>().toEqualTypeOf<{
  readonly settle: () => void
  readonly fail: (error: unknown) => void
  readonly release: () => void
}>()

expectTypeOf<Context>().toEqualTypeOf<{ readonly signal: AbortSignal }>()
expectTypeOf<Headers>().toEqualTypeOf<Readonly<Record<string, string>>>()

// Both faces have the same message in mind.
expectTypeOf<Received<Order>>().toEqualTypeOf<Handler.Received<Order>>()
expectTypeOf<Batch<Order>>().toEqualTypeOf<Handler.Batch<Order>>()

export const accepted = (message: Received<Order>, batch: Batch<Order>) => [
  () => message.ack(),
  () => message.retry(),
  () => message.retry({ delay: "30 seconds", backoff: false }),
  () => message.retry({ delay: 1500 }),
  () => batch.retryAll({ delay: { minutes: 5 } }),
  (): Message<Order> => message
]

export const refused = (message: Received<Order>, batch: Batch<Order>) => [
  // @ts-expect-error the attempts are not the handler's to count
  () => (message.attempts = 1),
  // @ts-expect-error a body is not replaced
  () => (message.body = { id: "2" }),
  // @ts-expect-error headers are read-only
  () => (message.headers["trace"] = "1"),
  // @ts-expect-error a batch is as it came
  () => batch.messages.push(message),
  // @ts-expect-error and keeps its messages
  () => (batch.messages[0] = message),
  // @ts-expect-error the delay is an option
  () => message.retry("30 seconds"),
  // @ts-expect-error and so is a number
  () => message.retry(1500),
  // @ts-expect-error it is called delay
  () => message.retry({ delaySeconds: 30 }),
  // @ts-expect-error a unit is one that is known
  () => message.retry({ delay: "5 secs" }),
  // @ts-expect-error a batch has no delay of its own for acks
  () => batch.ackAll({ delay: 1 }),
  // @ts-expect-error it is called delay
  () => batch.retryAll({ dealy: 1 })
]
