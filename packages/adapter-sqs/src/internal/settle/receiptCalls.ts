/** What is asked of one queue about messages in flight, gathered into batches. */
import * as Effect from "effect/Effect"
import * as Batch from "../batchCall.ts"
import type { Client } from "../client.ts"
import * as Gather from "../requestBatcher.ts"

export interface Calls {
  readonly remove: (handles: ReadonlyArray<string>) => Effect.Effect<Batch.Answers>
  /** Sets after how many seconds from now each may be delivered again. */
  readonly hide: (
    items: ReadonlyArray<{ readonly handle: string; readonly seconds: number }>
  ) => Effect.Effect<Batch.Answers>
  /** Ends when no call is under way. */
  readonly idle: Effect.Effect<void>
}

/** Calls of one kind under way. */
const parallel = 16

export const make = (env: {
  readonly client: Client
  readonly queue: string
  readonly url: () => string
  readonly fork: (effect: Effect.Effect<unknown>) => void
}): Calls => {
  const { client, fork, queue, url } = env
  const context = { operation: "settle", queue }
  const gather = <T extends object>(call: Omit<Batch.Call<T>, "context">) =>
    Gather.make<T>({ call: (items) => Batch.call(items, { ...call, context }), sizeOf: () => 0, parallel, fork })

  const removing = gather<{ readonly ReceiptHandle: string }>({
    ask: (Entries) => client.deleteMessageBatch({ QueueUrl: url(), Entries }),
    isIdempotent: true
  })
  // A second time would count the seconds anew, and might hide the message from whoever has it by then.
  const hiding = gather<{ readonly ReceiptHandle: string; readonly VisibilityTimeout: number }>({
    ask: (Entries) => client.changeMessageVisibilityBatch({ QueueUrl: url(), Entries }),
    isIdempotent: false
  })

  return {
    remove: (handles) => removing.submit(handles.map((ReceiptHandle) => ({ ReceiptHandle }))),
    hide: (items) =>
      hiding.submit(items.map(({ handle, seconds }) => ({ ReceiptHandle: handle, VisibilityTimeout: seconds }))),
    idle: Effect.andThen(removing.idle, hiding.idle)
  }
}
