/** Publishes messages: all sends of a turn of the event loop in one transaction. MUST 1. */
import { BrokerError, Direct, type Outgoing } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import * as Exit from "effect/Exit"
import type { Connection } from "../connect/connection.ts"
import type { Store } from "../connect/store.ts"
import * as Rows from "../rows.ts"
import { errors } from "../toBrokerError.ts"

/** The most messages that one transaction gets from one call. */
const maxChunk = 250

/** Returns why a message cannot be stored. */
export const refusal = (message: Outgoing.Outgoing, maxBodySize: number): BrokerError.BrokerError | undefined =>
  message.body.length <= maxBodySize ? undefined : errors.bodyTooLarge(message, maxBodySize)

const insert = (connection: Connection, message: Outgoing.Outgoing, now: number): void => {
  if (message.create === false && !Rows.exists(connection, message.queue)) {
    throw errors.queueMissing(message.queue)
  }
  Rows.declare(connection, message.queue)
  Rows.insert(connection, SqlMessage.toRow(message, now), now)
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
    const outcomes: Array<BrokerError.BrokerError | undefined> = []
    let open = chunks.length
    const end = (): void => {
      if (--open > 0) return
      const error = BrokerError.ofBatch(outcomes)
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
          for (let i = 0; i < chunk.length; i++) outcomes[index * maxChunk + i] = error
          if (error === undefined) for (const queue of new Set(chunk.map(({ queue }) => queue))) wake(queue)
          end()
        }
      })
    }
    return () => undefined
  })
