/** Publishes messages: all sends of a turn of the event loop in one transaction. MUST 1. */
import { BrokerError, Direct, Metadata, type Outgoing } from "@requeue/core/port"
import * as Exit from "effect/Exit"
import type { Connection } from "../connect/connection.ts"
import type { Store } from "../connect/store.ts"
import * as Rows from "../rows.ts"

/** The most messages that one transaction gets from one call. */
const maxChunk = 250

const context = { broker: "sqlite", operation: "publish" }

/** Returns why a message cannot be stored. */
export const refusal = ({ body, queue }: Outgoing.Outgoing, maxBodySize: number): BrokerError.BrokerError | undefined =>
  body.length <= maxBodySize
    ? undefined
    : new BrokerError.BrokerError({
        ...context,
        queue,
        reason: "BodyTooLarge",
        detail: `the body has ${body.length} bytes, the limit is ${maxBodySize}`,
        remedy: "Send a smaller body"
      })

/** Returns the error of a message that must not create its queue. */
export const missing = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    ...context,
    queue,
    reason: "QueueMissing",
    detail: "there is no such queue",
    remedy: "Run requeue create for this queue, or start a consumer of it"
  })

/** Returns the row of a message. Pure. */
export const toRow = ({ body, delay, headers, metadata, queue }: Outgoing.Outgoing, now: number): Rows.NewRow => ({
  queue,
  at: Rows.dueAt(now, delay),
  metadata: Metadata.encode(Metadata.setBack(metadata, now)),
  headers: Object.keys(headers).length === 0 ? null : JSON.stringify(headers),
  body
})

const insert = (connection: Connection, message: Outgoing.Outgoing, now: number): void => {
  if (message.create === false && !Rows.exists(connection, message.queue)) {
    throw missing(message.queue)
  }
  Rows.declare(connection, message.queue)
  Rows.insert(connection, toRow(message, now))
}

export const chunksOf = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  all.length <= maxChunk ? [all] : [all.slice(0, maxChunk), ...chunksOf(all.slice(maxChunk))]

/** Publishes all, or fails with the outcome of each. */
export const publish = (
  messages: ReadonlyArray<Outgoing.Outgoing>,
  { add, now, wake }: Store,
  maxBodySize: number
): Direct.Direct<void, BrokerError.BrokerError> =>
  Direct.make((onExit) => {
    for (const message of messages) {
      const error = refusal(message, maxBodySize)
      if (error !== undefined) return Direct.ended(onExit, Exit.fail(error))
    }
    const chunks = chunksOf(messages)
    const errors: Array<BrokerError.BrokerError | undefined> = []
    let open = chunks.length
    const end = (): void => {
      if (--open > 0) return
      const error = BrokerError.ofBatch(errors)
      onExit(error === undefined ? Exit.void : Exit.fail(error))
    }
    for (const [index, chunk] of chunks.entries()) {
      add({
        operation: "publish",
        queue: chunk[0]?.queue,
        weight: chunk.length,
        isDurable: true,
        run: (connection) => {
          const time = now()
          for (const message of chunk) insert(connection, message, time)
        },
        end: (error) => {
          for (let i = 0; i < chunk.length; i++) errors[index * maxChunk + i] = error
          if (error === undefined) for (const queue of new Set(chunk.map(({ queue }) => queue))) wake(queue)
          end()
        }
      })
    }
    return () => undefined
  })
