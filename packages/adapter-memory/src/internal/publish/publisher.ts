/** Takes messages in: checks them against what the broker claims, and makes publishers wait for room. */
import { BrokerError, type Outgoing } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Delays } from "../delays.ts"
import type { Queue, Store, Waiter } from "../queues.ts"

export interface Publish {
  /** Stores the messages in order; each waits for room in its queue. */
  readonly publish: (messages: ReadonlyArray<Outgoing.Outgoing>) => Effect.Effect<void, BrokerError.BrokerError>
  /** Stores a copy without waiting: its original is in the broker already and leaves next. */
  readonly copy: (message: Outgoing.Outgoing) => void
  /** Lets waiting publishers in, as far as there is room. */
  readonly admit: (queue: Queue) => void
  /** Fails all who wait, and all who come. */
  readonly close: () => void
}

const closed = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "memory",
    operation: "publish",
    queue,
    reason: "ConnectionFailed",
    detail: "the broker was closed"
  })

export const make = (env: {
  readonly store: Store
  readonly pump: (queue: Queue) => void
  readonly delays: Delays
  readonly maxBodySize: number
  readonly maxMessages: number
  readonly loseConfirmation: () => boolean
}): Publish => {
  const { delays, maxBodySize, maxMessages, store } = env
  let open = true

  const refusal = ({ body, delay, queue }: Outgoing.Outgoing): BrokerError.BrokerError | undefined => {
    if (!open) return closed(queue)
    if (body.length > maxBodySize) {
      return new BrokerError.BrokerError({
        broker: "memory",
        operation: "publish",
        queue,
        reason: "BodyTooLarge",
        detail: `the body has ${body.length} bytes, the limit is ${maxBodySize}`,
        remedy: "Send a smaller body or raise maxBodySize"
      })
    }
    return delays.refusal("publish", queue, delay)
  }

  const add = (queue: Queue, { body, delay, headers, metadata }: Outgoing.Outgoing): void => {
    queue.held++
    const stored = { body, headers, metadata, deliveries: 0, due: 0, timer: undefined, position: 0, next: undefined }
    store.enqueue(queue, stored, delays.round(delay))
    env.pump(queue)
  }

  const wait = (queue: Queue, message: Outgoing.Outgoing): Effect.Effect<void, BrokerError.BrokerError> =>
    Effect.callback((resume) => {
      const waiter: Waiter = {
        store: () => {
          add(queue, message)
          resume(Effect.void)
        },
        refuse: () => resume(Effect.fail(closed(queue.name)))
      }
      queue.waiters.add(waiter)
      return Effect.sync(() => queue.waiters.remove(waiter))
    })

  /** Stores them at once, as far as there is room. */
  const from = (
    messages: ReadonlyArray<Outgoing.Outgoing>,
    start: number
  ): Effect.Effect<void, BrokerError.BrokerError> => {
    for (let i = start; i < messages.length; i++) {
      const message = messages[i]!
      const queue = store.queue(message.queue)
      // Nobody overtakes those who wait.
      if (queue.held >= maxMessages || queue.waiters.size() > 0) {
        return Effect.flatMap(wait(queue, message), () => from(messages, i + 1))
      }
      add(queue, message)
    }
    return Effect.void
  }

  const confirm = (messages: ReadonlyArray<Outgoing.Outgoing>): Effect.Effect<void, BrokerError.BrokerError> =>
    env.loseConfirmation()
      ? Effect.fail(
          new BrokerError.BrokerError({
            broker: "memory",
            operation: "publish",
            queue: messages[0]?.queue,
            reason: "Timeout",
            detail: "the confirmation was lost (duplicateOnLostConfirmation)"
          })
        )
      : Effect.void

  return {
    publish: (messages) =>
      Effect.suspend(() => {
        for (const message of messages) {
          const error = refusal(message)
          if (error !== undefined) return Effect.fail(error)
        }
        return Effect.flatMap(from(messages, 0), () => confirm(messages))
      }),
    copy: (message) => add(store.queue(message.queue), message),
    admit: (queue) => {
      while (queue.held < maxMessages) {
        const waiter = queue.waiters.take()
        if (waiter === undefined) return
        waiter.store()
      }
    },
    close: () => {
      open = false
      for (const queue of store.queues.values()) {
        for (let waiter = queue.waiters.take(); waiter !== undefined; waiter = queue.waiters.take()) waiter.refuse()
      }
    }
  }
}
