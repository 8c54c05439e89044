/** Publishes messages: all sends of a turn of the event loop in one statement. MUST 1. */
import { BrokerError, Direct, Metadata, type Outgoing } from "@requeue/core/port"
import * as Exit from "effect/Exit"
import type { Store } from "../connect/store.ts"
import * as Rows from "../rows.ts"

/** Maximum bytes of bodies in one statement, unless one body is larger. Each message counts as at least 1 KiB. */
const maxWeight = 2 ** 20
const minWeight = 2 ** 10

const context = { broker: "postgres", operation: "publish" }

/** Maximum characters of a queue's name: it is part of an index key, which has at most 2,700 bytes. */
const maxName = 512

/** Returns why a message cannot be stored. */
const refusal = ({ body, queue }: Outgoing.Outgoing, maxBodySize: number): BrokerError.BrokerError | undefined => {
  if (queue.includes("\0") || queue.length > maxName) {
    return new BrokerError.BrokerError({
      ...context,
      queue,
      reason: "Unsupported",
      detail: `a queue's name has at most ${maxName} characters, none of them NUL`
    })
  }
  if (body.length <= maxBodySize) return undefined
  return new BrokerError.BrokerError({
    ...context,
    queue,
    reason: "BodyTooLarge",
    detail: `the body has ${body.length} bytes, the limit is ${maxBodySize}`,
    remedy: "Send a smaller body"
  })
}

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
export const toRow = (
  { body, create, delay, headers, metadata, queue }: Outgoing.Outgoing,
  now: number
): Rows.NewRow => ({
  queue,
  create: create !== false,
  delay,
  metadata: Metadata.encode(Metadata.setBack(metadata, now)),
  headers: Object.keys(headers).length === 0 ? null : JSON.stringify(headers),
  body
})

export interface Publisher {
  /** Publishes all, or fails with the outcome of each. */
  readonly publish: (messages: ReadonlyArray<Outgoing.Outgoing>) => Direct.Direct<void, BrokerError.BrokerError>
  /** Returns the error of messages that cannot be stored. */
  readonly problem: (messages: ReadonlyArray<Outgoing.Outgoing>) => BrokerError.BrokerError | undefined
}

export const make = ({ gather, lanes, now, statements, wake }: Store, maxBodySize: number): Publisher => {
  /** Inserts rows, and returns those queues that are missing. */
  const insert = gather<Rows.NewRow, boolean>(lanes.publish, maxWeight, async (session, rows) => {
    const targets = Rows.targets(rows)
    const results = await session.query(statements.publish, Rows.published(rows, targets))
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
        const errors: Array<BrokerError.BrokerError | undefined> = []
        let open = messages.length
        const end =
          (index: number, queue: string) => (error: BrokerError.BrokerError | undefined, isMissing?: boolean) => {
            errors[index] = isMissing === true ? missing(queue) : error
            if (--open > 0) return
            const all = BrokerError.ofBatch(errors)
            onExit(all === undefined ? Exit.void : Exit.fail(all))
          }
        const time = now()
        for (const [index, message] of messages.entries()) {
          const { body, queue } = message
          const weight = Math.max(minWeight, body.length)
          insert(toRow(message, time), weight, { operation: "publish", queue }, end(index, queue))
        }
        return () => undefined
      })
  }
}
