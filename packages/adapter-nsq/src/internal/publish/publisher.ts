/**
 * Publishes on one connection, and collects nsqd's answers, which come in the order of the commands.
 *
 * What is published in one turn of the event loop leaves at its end, in one `MPUB` for neighbours of one topic: nsqd answers
 * it once, where it answers each `PUB` with a packet of its own. It refuses an `MPUB` as a whole, so that its messages are
 * then sent again, each alone.
 */
import { BrokerError, Deadlines } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Settings } from "../../NsqOptions.ts"
import * as Client from "../client.ts"
import * as Connection from "../connect/connection.ts"
import type { Node, Nodes } from "../connect/nodes.ts"
import { timedOut, toBrokerError } from "../toBrokerError.ts"
import * as Commands from "./commands.ts"
import type { Room } from "./room.ts"
import * as Turn from "./turn.ts"

/** A message for nsqd. */
export interface Publication {
  readonly queue: string
  readonly topic: string
  readonly payload: Buffer
  /** Whole milliseconds for which nsqd holds the message back, at most its cap. */
  readonly defer: number
}

/**
 * The outcome of a publication. `Unread`: nsqd does not have it, because it closed the connection after one before it, or
 * refused a neighbour in the same command.
 */
export type PublishResult = "Stored" | "Unread" | BrokerError.BrokerError

export interface Publisher extends Connection.Live {
  readonly node: Node
  /** Publishes a message at the end of the turn, with others or alone. Calls `done` once with its outcome. */
  readonly write: (publication: Publication, isAlone: boolean, done: (result: PublishResult) => void) => void
}

/** A message that waits for the end of the turn. */
interface Waiting {
  readonly publication: Publication
  readonly isAlone: boolean
  readonly done: (result: PublishResult) => void
}

/** Messages of one command. */
interface Group {
  readonly members: Array<Waiting>
  /** Bytes of their payloads. */
  bytes: number
  isAnswered: boolean
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
    const closed = (error: unknown): void => {
      if (!isRefusal(error)) nodes.forget(node)
      Deferred.doneUnsafe(gone, Exit.void)
    }
    const connection = yield* Connection.open(context, settings, (signal) =>
      Client.connectPublisher(settings, node.address, closed, signal)
    )
    yield* Effect.onError(nodes.learn(node, connection.identity), () => Effect.sync(connection.destroy))
    return make(node, connection, gone, nodes, deadlines)
  })

/** Whether it is an error that nsqd answers, after which it closes the connection. */
const isRefusal = (error: unknown): boolean => error instanceof Error && error.message.startsWith("E_")

/** Whether nsqd refused a command for the size of a message, or its own, before it stored anything. */
const isOfSize = ({ message }: Error): boolean => /^E_BAD_(MESSAGE|BODY)/.test(message)

/** Whether nsqd may have stored some messages of a command that it refused. */
const isPartial = ({ message }: Error): boolean => message.startsWith("E_MPUB_FAILED")

const make = (
  node: Node,
  connection: Client.PublishingConnection,
  gone: Deferred.Deferred<void>,
  nodes: Nodes,
  deadlines: Deadlines.Deadlines
): Publisher => {
  /** Whether nsqd has refused a command, and closes the connection. It has read nothing of what was written later. */
  let isRefused = false
  const toResult = (error: Error | null, queue: string, isShared: boolean): PublishResult => {
    if (error === null) return "Stored"
    if (!isRefusal(error) && isRefused) return "Unread"
    if (isRefusal(error)) {
      isRefused = true
      nodes.refused(node, error.message)
    }
    if (isShared && isOfSize(error)) return "Unread"
    const cause = isShared && isPartial(error) ? new Error(`some may be stored: ${error.message}`) : error
    return toBrokerError(cause, { operation: "publish", queue, node: node.name })
  }

  const answer = (group: Group, resultOf: (publication: Publication) => PublishResult): void => {
    if (group.isAnswered) return
    group.isAnswered = true
    for (const { done, publication } of group.members) done(resultOf(publication))
  }

  const send = (written: ReadonlyArray<Waiting>): void => {
    const all = groups(written, nodes.limits().maxBodySize)
    let open = all.length
    const late = Deadlines.deadline(() => {
      const { timeout } = deadlines
      const error = timedOut({ operation: "publish", queue: written[0]?.publication.queue, node: node.name }, timeout)
      // Before the end of the connection, which tells the same messages lost: their time is over.
      for (const group of all) answer(group, () => error)
      // Later answers on this connection would come as late.
      connection.destroy(error)
    })
    // Also of messages for which nobody waits any more: a connection that answers nothing is of no use to others.
    deadlines.start(late)
    turn.sent(all.length)
    connection.publish(
      all.map((group) => ({
        command: commandOf(group),
        done: (error) => {
          if (--open === 0) deadlines.end(late)
          const isShared = group.members.length > 1
          if (error === null) nodes.stored(node, Math.max(...group.members.map(sizeOf)))
          answer(group, ({ queue }) => toResult(error, queue, isShared))
          turn.answered()
        }
      }))
    )
  }

  const turn = Turn.make<Waiting>({
    isOpen: connection.isOpen,
    isUsual: (each) => !each.isAlone || sizeOf(each) <= nodes.largest(node),
    sizeOf,
    send,
    drop: ({ done }) => done("Unread")
  })

  const write: Publisher["write"] = (publication, isAlone, done) => {
    if (connection.isOpen()) turn.add({ publication, isAlone, done })
    else done("Unread")
  }

  return { node, connection, gone, write }
}

/**
 * Publishes messages that have room, and answers the outcome of each: of one that cannot be published, its error. Messages that are given up leave their room when nsqd
 * answers them: others must not be written beside them, and not because they were given up.
 */
export const send = (
  { write }: Pick<Publisher, "write">,
  publications: ReadonlyArray<Publication | BrokerError.BrokerError>,
  areAlone: boolean,
  room: Pick<Room, "release" | "take">
): Effect.Effect<ReadonlyArray<PublishResult>> =>
  Effect.callback((resume) => {
    const results: Array<PublishResult> = []
    let open = publications.length
    let isGivenUp = false
    for (const [index, publication] of publications.entries()) {
      const done = (result: PublishResult): void => {
        results[index] = result
        if (isGivenUp) room.release(1)
        if (--open === 0) resume(Effect.succeed(results))
      }
      if (publication instanceof BrokerError.BrokerError) done(publication)
      else write(publication, areAlone, done)
    }
    return Effect.sync(() => {
      isGivenUp = true
      room.take(open)
    })
  })

const sizeOf = ({ publication }: Waiting): number => publication.payload.length

const commandOf = ({ members }: Group): Buffer => {
  const { defer, topic } = members[0]!.publication
  return Commands.publish(
    topic,
    members.map(({ publication }) => publication.payload),
    defer
  )
}

const mayShare = (a: Waiting, b: Waiting): boolean =>
  !a.isAlone &&
  !b.isAlone &&
  a.publication.topic === b.publication.topic &&
  a.publication.defer === 0 &&
  b.publication.defer === 0

/** The messages that one `MPUB` takes: neighbours of one topic, without delay, within the largest body. */
const groups = (all: ReadonlyArray<Waiting>, limit: number): ReadonlyArray<Group> => {
  const made: Array<Group> = []
  for (const each of all) {
    const last = made.at(-1)
    const { length } = each.publication.payload
    const count = (last?.members.length ?? 0) + 1
    const fits = last !== undefined && count <= maxGroup && Commands.bodySize(count, last.bytes + length) <= limit
    if (fits && mayShare(last.members[0]!, each)) {
      last.members.push(each)
      last.bytes += length
    } else made.push({ members: [each], bytes: length, isAnswered: false })
  }
  return made
}
