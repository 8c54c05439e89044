/** Publishes on one connection, and collects nsqd's answers, which come in the order of the commands. */
import { type BrokerError, Deadlines } from "@requeue/core/adapter-kit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Settings } from "../../NsqOptions.ts"
import * as Client from "../client.ts"
import * as Connection from "../connect/connection.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import { timedOut, toBrokerError } from "../toBrokerError.ts"

/** A message for nsqd. */
export interface Publication {
  readonly queue: string
  readonly topic: string
  readonly payload: Buffer
  /** Whole milliseconds for which nsqd holds the message back, at most its cap. */
  readonly defer: number
}

/** The outcome of a publication. `Unread`: nsqd has not read it, because it closed the connection after one before it. */
export type PublishResult = "Stored" | "Unread" | BrokerError.BrokerError

export interface Publisher extends Connection.Live {
  readonly node: Node
  /** Publishes messages, and answers the outcome of each. */
  readonly send: (publications: ReadonlyArray<Publication>) => Effect.Effect<ReadonlyArray<PublishResult>>
}

/** Messages of the largest `MPUB`. */
const maxGroup = 256

/** Opens a connection for publishing. `deadlines` limits the time in which nsqd must answer a publish. */
export const open = (
  node: Node,
  nodes: Nodes,
  settings: Settings,
  deadlines: Deadlines.Deadlines
): Effect.Effect<Publisher, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const gone = Deferred.makeUnsafe<void>()
    const context = { operation: "connect", node: node.name }
    const connection = yield* Connection.open(context, settings, (signal) =>
      Client.connectPublisher(settings, node.address, () => Deferred.doneUnsafe(gone, Exit.void), signal)
    )
    yield* Effect.onError(nodes.learn(node, connection.identity), () => Effect.sync(connection.destroy))
    return make(node, connection, gone, nodes, deadlines)
  })

const make = (
  node: Node,
  connection: Client.PublishingConnection,
  gone: Deferred.Deferred<void>,
  nodes: Nodes,
  deadlines: Deadlines.Deadlines
): Publisher => {
  /** The error after which nsqd closes the connection. It has read nothing of what was written later. */
  let refusal: string | undefined
  const { timeout } = deadlines

  const toResult = (error: Error | null, queue: string): PublishResult => {
    if (error === null) return "Stored"
    if (error.message.startsWith("E_")) refusal ??= error.message
    else if (refusal !== undefined) return "Unread"
    return toBrokerError(error, { operation: "publish", queue, node: node.name })
  }

  const send: Publisher["send"] = (publications) =>
    Effect.suspend(() => {
      if (!connection.isOpen()) return Effect.succeed(publications.map((): PublishResult => "Unread"))
      const results: Array<PublishResult> = []
      let open = publications.length
      return Effect.callback((resume) => {
        const late = Deadlines.deadline(() => {
          const error = timedOut({ operation: "publish", queue: publications[0]?.queue, node: node.name }, timeout)
          // Before the end of the connection, which tells the same messages lost: their time is over.
          resume(Effect.succeed(publications.map((_, index) => results[index] ?? error)))
          // Later answers on this connection would come as late.
          connection.destroy(error)
        })
        // Also of messages for which nobody waits any more: a connection that answers nothing is of no use to others.
        deadlines.start(late)
        for (const group of groups(publications, nodes.limits().maxBodySize)) {
          const [first] = group
          const { defer, queue, topic } = publications[first!]!
          const payloads = group.map((index) => publications[index]!.payload)
          connection.publish(topic, payloads, defer, (error) => {
            for (const index of group) results[index] = toResult(error, queue)
            open -= group.length
            if (open > 0) return
            deadlines.end(late)
            resume(Effect.succeed(results))
          })
        }
      })
    })

  return { node, connection, gone, send }
}

/** The indices of messages that one `MPUB` takes: neighbours of one topic, without delay, within the largest body. */
const groups = (publications: ReadonlyArray<Publication>, limit: number): ReadonlyArray<ReadonlyArray<number>> => {
  const all: Array<Array<number>> = []
  let size = 0
  for (const [index, { defer, payload, topic }] of publications.entries()) {
    const last = all.at(-1)
    const before = last === undefined ? undefined : publications[last[0]!]!
    size += 4 + payload.length
    const joins = before !== undefined && before.topic === topic && before.defer === 0 && defer === 0
    if (last !== undefined && joins && last.length < maxGroup && size <= limit) last.push(index)
    else {
      all.push([index])
      // The count of messages, then this message with its own size in front: 4 bytes each.
      size = 8 + payload.length
    }
  }
  return all
}
