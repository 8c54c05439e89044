/** Batched calls about received messages of one queue: delete them, or hide them for a while. */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as BatchCall from "../batchCall.ts"
import type { Client } from "../client.ts"
import * as RequestBatcher from "../requestBatcher.ts"

/** Both calls identify messages by their receipt handles. */
export interface ReceiptCalls {
  readonly deleteMessages: (handles: ReadonlyArray<string>) => Effect.Effect<BatchCall.Results>
  /** Sets after how many seconds from now each message may be delivered again. */
  readonly changeVisibility: (
    items: ReadonlyArray<{ readonly handle: string; readonly seconds: number }>
  ) => Effect.Effect<BatchCall.Results>
  /** Ends when no call is running. */
  readonly idle: Effect.Effect<void>
}

/** Maximum number of concurrent calls of one kind. */
const parallel = 16

/** Makes the calls of one queue. */
export const make = (env: {
  readonly client: Client
  readonly queue: string
  readonly url: () => string
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Called with every error. Default: nothing. */
  readonly onFailure?: (error: BrokerError.BrokerError) => void
}): ReceiptCalls => {
  const { client, fork, queue, url } = env
  const context = { operation: "settle", queue }
  const tell = (results: BatchCall.Results) =>
    Effect.sync(() => {
      for (const error of results) if (error !== undefined) env.onFailure?.(error)
    })
  const batcher = <T extends object>(call: Omit<BatchCall.Call<T>, "context">) =>
    RequestBatcher.make<T>({
      call: (items) => Effect.tap(BatchCall.call(items, { ...call, context }), tell),
      sizeOf: () => 0,
      parallel,
      fork
    })

  const deletes = batcher<{ readonly ReceiptHandle: string }>({
    ask: (Entries) => client.deleteMessageBatch({ QueueUrl: url(), Entries }),
    isIdempotent: true
  })
  // Not repeated: the seconds would start again, and might hide the message from its new consumer.
  const changes = batcher<{ readonly ReceiptHandle: string; readonly VisibilityTimeout: number }>({
    ask: (Entries) => client.changeMessageVisibilityBatch({ QueueUrl: url(), Entries }),
    isIdempotent: false,
    repeatsThrottled: true
  })

  return {
    deleteMessages: (handles) => deletes.submit(handles.map((ReceiptHandle) => ({ ReceiptHandle }))),
    changeVisibility: (items) =>
      changes.submit(items.map(({ handle, seconds }) => ({ ReceiptHandle: handle, VisibilityTimeout: seconds }))),
    idle: Effect.andThen(deletes.idle, changes.idle)
  }
}
