/**
 * Publishes on one connection, and collects nsqd's answers, which arrive in the order of the commands.
 *
 * Messages that are published in one turn of the event loop leave at its end. Neighbours of one topic share an `MPUB`:
 * nsqd answers it once, but answers each `PUB` with a packet. nsqd refuses an `MPUB` as a whole; its messages are then
 * sent again one by one.
 */
import { BrokerError, Deadlines } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Settings } from "../../NsqOptions.ts"
import type * as Driver from "../driver.ts"
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
  /** Whole milliseconds for which nsqd defers the message, at most its limit. */
  readonly defer: number
}

/**
 * The outcome of a publication. `Unread`: nsqd does not have it, because it closed the connection after an earlier one,
 * or refused another message of the same command.
 */
export type PublishResult = "Stored" | "Unread" | BrokerError.BrokerError

export interface Publisher extends Connection.Live {
  readonly node: Node
  /** Publishes a message at the end of the turn, alone or with others. Calls `done` once with its outcome. */
  readonly write: (publication: Publication, isAlone: boolean, done: (result: PublishResult) => void) => void
}

/** A message that waits for the end of the turn. A class: see `ShortList`. */
class Waiting {
  readonly publication: Publication
  readonly isAlone: boolean
  readonly done: (result: PublishResult) => void

  constructor(publication: Publication, isAlone: boolean, done: (result: PublishResult) => void) {
    this.publication = publication
    this.isAlone = isAlone
    this.done = done
  }
}

/** Messages of one command. */
interface Group {
  readonly members: Array<Waiting>
  /** Bytes of their payloads. */
  bytes: number
  isAnswered: boolean
}

/** Maximum number of messages in an `MPUB`. */
const maxGroup = 256

/** Opens a connection for publishing. `deadlines` limits the time until nsqd answers a publish. */
export const open = (
  node: Node,
  nodes: Nodes,
  {
    deadlines,
    driver,
    settings
  }: { readonly settings: Settings; readonly driver: Driver.Driver; readonly deadlines: Deadlines.Deadlines }
): Effect.Effect<Publisher, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const gone = Deferred.makeUnsafe<void>()
    const context = { operation: "connect", node: node.name }
    const closed = (error: unknown): void => {
      if (!isRefusal(error)) nodes.forget(node)
      Deferred.doneUnsafe(gone, Exit.void)
    }
    const connection = yield* Connection.open(context, settings, (signal) =>
      driver.connectPublisher(settings, node.address, closed, signal)
    )
    yield* Effect.onError(nodes.learn(node, connection.identity), () => Effect.sync(connection.destroy))
    return make(node, connection, gone, nodes, deadlines)
  })

/** Whether nsqd has answered with an error. It then closes the connection. */
const isRefusal = (error: unknown): boolean => error instanceof Error && error.message.startsWith("E_")

/** Whether nsqd refused a command because of its size or a message's size, before it stored anything. */
const isOfSize = ({ message }: Error): boolean => /^E_BAD_(MESSAGE|BODY)/.test(message)

/** Whether nsqd may have stored some messages of a command that it refused. */
const isPartial = ({ message }: Error): boolean => message.startsWith("E_MPUB_FAILED")

const make = (
  node: Node,
  connection: Driver.PublishingConnection,
  gone: Deferred.Deferred<void>,
  nodes: Nodes,
  deadlines: Deadlines.Deadlines
): Publisher => {
  /** Whether nsqd has refused a command. It then closes the connection without reading later commands. */
  let isRefused = false
  const toResult = (error: Error | null, queue: string, isShared: boolean): PublishResult => {
    if (error === null) return "Stored"
    if (!isRefusal(error) && isRefused) return "Unread"
    if (isRefusal(error)) {
      isRefused = true
      nodes.refused(node, error.message)
    }
    if (isShared && isOfSize(error)) return "Unread"
    const cause = isShared && isPartial(error) ? new Error(`some messages may be stored: ${error.message}`) : error
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
      // Before the connection is destroyed, which would report the same messages as lost instead of timed out.
      for (const group of all) answer(group, () => error)
      // Later answers on this connection would be just as late.
      connection.destroy(error)
    })
    // Also for interrupted publishes: a connection without answers is useless for others too.
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
    if (connection.isOpen()) turn.add(new Waiting(publication, isAlone, done))
    else done("Unread")
  }

  return { node, connection, gone, write }
}

/**
 * Publishes messages that have room, and returns the outcome of each; for one that cannot be published, its error.
 * Interrupted messages keep their room until nsqd answers: only then may others use it.
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

/** Groups messages for `MPUB`: neighbours of one topic, without delay, up to the largest body. */
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
