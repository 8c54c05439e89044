/** One publishing connection: what is written and not yet answered, in order. */
import type { BrokerError, Deadlines } from "@requeue/core/adapter-kit"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Settings } from "../../NsqOptions.ts"
import * as Client from "../client.ts"
import { type Live, opening } from "../connect/connection.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import { timedOut, toBrokerError } from "../toBrokerError.ts"

/** A message as nsqd gets it. */
export interface Publication {
  readonly queue: string
  readonly topic: string
  readonly payload: Buffer
  /** Milliseconds; within nsqd's cap, and whole. */
  readonly defer: number
}

/** What became of a publication. `Unread`: nsqd closed the connection because of another one, in front of it. */
export type Answer = "Stored" | "Unread" | BrokerError.BrokerError

export interface Outlet extends Live {
  readonly node: Node
  readonly send: (publications: ReadonlyArray<Publication>) => Effect.Effect<ReadonlyArray<Answer>>
}

/** Messages of one `MPUB`. */
const most = 256

/** @param deadlines within which nsqd must answer */
export const open = (
  node: Node,
  nodes: Nodes,
  settings: Settings,
  deadlines: Deadlines.Deadlines
): Effect.Effect<Outlet, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const gone = Deferred.makeUnsafe<void>()
    const context = { operation: "connect", node: node.name }
    const connection = yield* opening(context, settings, (signal) =>
      Client.publisher(settings, node.address, () => Deferred.doneUnsafe(gone, Exit.void), signal)
    )
    yield* Effect.onError(nodes.learn(node, connection.identity), () => Effect.sync(connection.destroy))
    return make(node, connection, gone, nodes, deadlines)
  })

const make = (
  node: Node,
  connection: Client.Publisher,
  gone: Deferred.Deferred<void>,
  nodes: Nodes,
  deadlines: Deadlines.Deadlines
): Outlet => {
  /** The error because of which nsqd closes the connection: what comes behind it was not read. */
  let refusal: string | undefined

  const toAnswer = (error: Error | null, queue: string): Answer => {
    if (error === null) return "Stored"
    if (error.message.startsWith("E_")) refusal ??= error.message
    else if (refusal !== undefined) return "Unread"
    return toBrokerError(error, { operation: "publish", queue, node: node.name })
  }

  const send: Outlet["send"] = (publications) =>
    Effect.suspend(() => {
      if (!connection.isOpen()) return Effect.succeed(publications.map((): Answer => "Unread"))
      const answers: Array<Answer> = []
      let open = publications.length
      const answered = Effect.callback<ReadonlyArray<Answer>>((resume) => {
        for (const group of groups(publications, nodes.limits().maxBodySize)) {
          const [first] = group
          const { defer, queue, topic } = publications[first!]!
          const payloads = group.map((index) => publications[index]!.payload)
          connection.publish(topic, payloads, defer, (error) => {
            for (const index of group) answers[index] = toAnswer(error, queue)
            open -= group.length
            if (open === 0) resume(Effect.succeed(answers))
          })
        }
      })
      return deadlines.within(answered, () =>
        Effect.sync(() => {
          const context = { operation: "publish", queue: publications[0]?.queue, node: node.name }
          const late = timedOut(context, deadlines.timeout)
          // An nsqd that does not answer for so long is not asked again on this connection.
          connection.destroy(late)
          return publications.map((_, index) => answers[index] ?? late)
        })
      )
    })

  return { node, connection, gone, send }
}

/** The places of those that go together: undelayed, of one topic, and within the largest `MPUB`. */
const groups = (publications: ReadonlyArray<Publication>, limit: number): ReadonlyArray<ReadonlyArray<number>> => {
  const all: Array<Array<number>> = []
  let size = 0
  for (const [index, { defer, payload, topic }] of publications.entries()) {
    const last = all.at(-1)
    const before = last === undefined ? undefined : publications[last[0]!]!
    size += 4 + payload.length
    const joins = before !== undefined && before.topic === topic && before.defer === 0 && defer === 0
    if (last !== undefined && joins && last.length < most && size <= limit) last.push(index)
    else {
      all.push([index])
      // The count in front, and this message.
      size = 8 + payload.length
    }
  }
  return all
}
