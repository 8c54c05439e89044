/** Publishes messages: all sends of a turn of the event loop in one statement. MUST 1. */
import { BrokerError, Direct, type Outgoing } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import * as Exit from "effect/Exit"
import type { Store } from "../connect/store.ts"
import * as Rows from "../rows.ts"
import { errors } from "../toBrokerError.ts"

/**
 * Maximum bytes of bodies in one statement, unless one body is larger. Each message counts as at least 1 KiB, and one with a key as at
 * least 4 KiB: it takes a lock, and the server has a limited number.
 */
const maxWeight = 2 ** 20
const weightOf = ({ body, place }: Outgoing.Outgoing): number =>
  Math.max(place === undefined ? 2 ** 10 : 2 ** 12, body.length)

/** Maximum characters of a queue's name: it is part of an index key, which has at most 2,700 bytes. */
const maxName = 512

/** Returns why a message cannot be stored. */
const refusal = (message: Outgoing.Outgoing, maxBodySize: number): BrokerError.BrokerError | undefined => {
  const { body, queue } = message
  if (queue.includes("\0") || queue.length > maxName) {
    return new BrokerError.BrokerError({
      broker: "postgres",
      operation: "publish",
      queue,
      reason: "Unsupported",
      detail: `a queue's name has at most ${maxName} characters, none of them NUL`
    })
  }
  return body.length <= maxBodySize ? undefined : errors.bodyTooLarge(message, maxBodySize)
}

export interface Publisher {
  /** Publishes all, or fails with the outcome of each. */
  readonly publish: (messages: ReadonlyArray<Outgoing.Outgoing>) => Direct.Direct<void, BrokerError.BrokerError>
  /** Returns the error of messages that cannot be stored. */
  readonly problem: (messages: ReadonlyArray<Outgoing.Outgoing>) => BrokerError.BrokerError | undefined
}

export const make = ({ gather, lanes, now, statements, wake }: Store, maxBodySize: number): Publisher => {
  /** Inserts rows, and returns those queues that are missing. */
  const insert = gather<SqlMessage.NewRow, boolean>(lanes.publish, maxWeight, async (session, rows) => {
    const targets = Rows.targets(rows)
    const results = await session.prepared(statements.publish, Rows.published(rows, targets))
    const absent = new Set<string>()
    for (const [index, queue] of [...targets.keys()].entries()) {
      const [isMissing, from] = results[index]!
      if (isMissing === 1) absent.add(queue)
      else wake(queue, Number(from))
    }
    return rows.map(({ queue }) => absent.has(queue))
  })

  const problem: Publisher["problem"] = (messages) => {
    for (const message of messages) {
      const error = refusal(message, maxBodySize)
      if (error !== undefined) return error
    }
    return undefined
  }

  return {
    problem,
    publish: (messages) =>
      Direct.make((onExit) => {
        const refused = problem(messages)
        if (refused !== undefined) return Direct.ended(onExit, Exit.fail(refused))
        const outcomes: Array<BrokerError.BrokerError | undefined> = []
        let open = messages.length
        const end =
          (index: number, queue: string) => (error: BrokerError.BrokerError | undefined, isMissing?: boolean) => {
            outcomes[index] = isMissing === true ? errors.queueMissing(queue) : error
            if (--open > 0) return
            const all = BrokerError.ofBatch(outcomes)
            onExit(all === undefined ? Exit.void : Exit.fail(all))
          }
        const time = now()
        for (const [index, message] of messages.entries()) {
          const { queue } = message
          insert(SqlMessage.toRow(message, time), weightOf(message), { operation: "publish", queue }, end(index, queue))
        }
        return () => undefined
      })
  }
}
