/** Mistakes in what only this adapter has: browsers, copies of foreign messages, exchanges, clean, former settings. */
import type { Mutant } from "@requeue/conformance"
import { hasFailureCount, isAtLeast } from "../../src/internal/version.ts"
import { cases as cleaning } from "./cases/cleaning.ts"
import { cases as copies } from "./cases/copies.ts"
import { cases as delayed } from "./cases/delayed.ts"
import { cases as declaring } from "./cases/declaring.ts"
import { cases as exchanges } from "./cases/exchanges.ts"
import { cases as browsing } from "./cases/browsing.ts"
import { cases as redriving } from "./cases/redriving.ts"
import type { Server } from "../real/server.ts"

/** The cases that these mutants name. */
export const cases = [...cleaning, ...copies, ...delayed, ...declaring, ...exchanges, ...browsing, ...redriving]

/** A mutant, and the servers on which somebody can tell. Default: all. */
interface OwnPatch extends Mutant.Patch {
  readonly on?: (server: Server) => boolean
}

const withManagement = ({ broker }: Server): boolean => broker.managementUrl !== undefined

/** The server counts a return by the end of a channel, and not browsing. Others count both. */
const countsFailuresApart = ({ version }: Server): boolean => hasFailureCount(version)

/** The server's quorum queues forget their clock when messages are given back. */
const forgetsClock = ({ version }: Server): boolean => !isAtLeast(version, "4.0")

/** The server gives a message up that was returned 20 times, and browsing is a return. */
const countsBrowsing = ({ version }: Server): boolean => isAtLeast(version, "4.0") && !hasFailureCount(version)

/** Up to 3.13 the server may answer nothing more on the connection of a burst. */
const nacksDeleted = ({ version }: Server): boolean => isAtLeast(version, "4.0")

/** The mutants that the cases kill on a server. */
export const patchesFor = (server: Server): ReadonlyArray<Mutant.Patch> =>
  patches.filter(({ on }) => on?.(server) ?? true)

const retried = "a redriven letter that waits for its retry has not succeeded, and is told from those of other queues"

const patches: ReadonlyArray<OwnPatch> = [
  {
    name: "counts no messages in the places of delays",
    kills: retried,
    on: withManagement,
    file: "inspect/delayedAtMost.ts",
    text: "sum + count, delayed ?? 0",
    replacement: "sum + 0 * count, delayed ?? 0"
  },
  {
    name: "counts the delays of the default policy alone",
    kills: retried,
    on: withManagement,
    file: "inspect/delayQueues.ts",
    text: "rungs.includes(name) || ",
    replacement: ""
  },
  {
    name: "forgets where a message was published",
    kills: "a message that came through an exchange tells the same of it at each attempt, and as a letter",
    file: "publish/toPublication.ts",
    text: "...Wire.published(asked.exchange === undefined ? original?.published : route),",
    replacement: ""
  },
  {
    name: "makes an exchange without the queues that are bound to it",
    kills: "a send to an exchange makes the queues that are bound to it, and again when somebody deletes one",
    file: "RabbitMqPlan.ts",
    text: "bindings.every((one) => one.exchange !== exchange)",
    replacement: "bindings.length > 0"
  },
  {
    name: "sends messages with a user id on the channel of the others",
    kills: "a user id that the server refuses fails its own message, and no other fails or comes twice",
    file: "publish/lane.ts",
    text: "userId === undefined ? exchange",
    replacement: "userId !== null ? exchange"
  },
  {
    name: "believes a queue that it is full at its first nack",
    kills: "a queue that somebody has made again is not told as full",
    on: nacksDeleted,
    file: "publish/sender.ts",
    text: "routes.isStraight(sending.item)",
    replacement: "!routes.isStraight(sending.item)"
  },
  {
    name: "holds up an exchange for what it could not route",
    kills: "a routing key that leads nowhere is told, and holds up no other key of its exchange",
    file: "publish/routes.ts",
    text: `if (error.reason === "Unroutable") return undefined`,
    replacement: ""
  },
  {
    name: "leaves it to the end of its channel to give back what it has browsed",
    kills:
      "browsing 40 of 60 messages leaves them in their order, and uncounted where the server counts failures apart",
    on: countsFailuresApart,
    file: "inspect/browseEnd.ts",
    text: `Client.requeue(channel, tag, "NackAll")`,
    replacement: "void channel"
  },
  {
    name: "puts what a browser has shown behind what others have browsed",
    kills:
      "browsing some of what others have browsed leaves all in their order, where the server counts failures apart",
    on: countsFailuresApart,
    file: "inspect/browseEnd.ts",
    text: "await passReturned(session, env)",
    replacement: "void passReturned"
  },
  {
    name: "gives delayed messages back to a queue that forgets its clock",
    kills: "browsing a delayed message leaves it its time, also where another one has come behind it meanwhile",
    on: forgetsClock,
    file: "inspect/browseDelayed.ts",
    text: `const givesBack = "4.0"`,
    replacement: `const givesBack = "3.0"`
  },
  {
    name: "browses delayed messages until the server hands them on early",
    kills: "a delayed message that was browsed 25 times waits on, and has used up no attempt",
    on: countsBrowsing,
    file: "inspect/browseDelayed.ts",
    text: "const few = 4",
    replacement: "const few = 1000"
  },
  {
    name: "takes every message of a place that queues share for this queue's",
    kills: "delayed messages of another queue are neither shown nor removed, where they wait in the same place",
    file: "inspect/browseDelayed.ts",
    text: "!from.isShared ||",
    replacement: "from.isShared ||"
  },
  {
    name: "counts nothing where a rung is missing",
    kills: "a backlog counts each rung that is there, and makes none",
    file: "inspect/delayQueues.ts",
    text: `({ reason }) => reason === "QueueMissing"`,
    replacement: `({ reason }) => reason === "Timeout"`
  },
  {
    name: "does not see that the server is about to give messages up",
    kills: "messages are there after more returns than their queue allows, where they are browsed in between",
    file: "inspect/browseReady.ts",
    text: "returns >= (deliveryLimit === undefined ? 1 : deliveryLimit / 2)",
    replacement: "returns > (deliveryLimit ?? 1000)"
  },
  {
    name: "takes out all messages with those that it has replaced",
    kills: "of 1,200 messages some are replaced, some are removed, and all others stay",
    on: countsFailuresApart,
    file: "inspect/browseEnd.ts",
    text: "if (session.held.size === 0)",
    replacement: "if (tags.length === contents.length)"
  },
  {
    name: "takes out messages whose copies are not confirmed",
    kills: "messages that a browser cannot replace stay what they are",
    on: withManagement,
    file: "inspect/browseEnd.ts",
    text: "errors[at] === undefined ? [message",
    replacement: "errors.length > at ? [message"
  },
  {
    name: "stores copies of messages whose producer has asked for less",
    kills: "the dead letter of a message that cannot be decoded is that message byte by byte",
    file: "publish/toPublication.ts",
    text: "deliveryMode: original.deliveryMode ?? persistent",
    replacement: "deliveryMode: persistent"
  },
  {
    name: "cuts long ids of messages",
    kills: "the dead letter of a message that cannot be decoded is that message byte by byte",
    file: "publish/toPublication.ts",
    text: "messageId: fitting(messageId)",
    replacement: "messageId: String(messageId).slice(0, 200)"
  },
  {
    name: "leaves out headers that the handler sees under another value",
    kills: "the dead letter of a message that cannot be decoded is that message byte by byte",
    file: "publish/toPublication.ts",
    text: "headers[name] === shown[name]",
    replacement: "String(original?.headers?.[name]) === shown[name]"
  },
  {
    name: "forgets when a message expires",
    kills: "a message that a browser has replaced is the same byte by byte",
    file: "publish/republishInPlace.ts",
    text: "...(expiration === undefined ? undefined : { expiration })",
    replacement: "...(expiration === null ? { expiration } : undefined)"
  },
  {
    name: "leads an exchange away from a queue before it leads elsewhere",
    kills: "while a clean begins, and is stopped, all that is published is routed",
    on: withManagement,
    file: "clean/removeGroups.ts",
    text: "for (const entry of removal.entries) yield* server.bind(entry, holdingQueue)",
    replacement:
      // The pause is for publishers on a busy machine: they must meet the gap.
      'for (const entry of removal.entries) yield* Effect.andThen(server.unbind(entry, entry.queue), Effect.delay(server.bind(entry, holdingQueue), "200 millis"))'
  },
  {
    name: "moves messages of foreign producers at once",
    kills: "a clean that is stopped has moved each message once, none before its time, and all is as it was",
    on: withManagement,
    file: "inspect/moving.ts",
    text: "return Math.min(Delay.max, ttlOf(queues.get(at)) ||",
    replacement: "return Math.min(0, ttlOf(queues.get(at)) ||"
  },
  {
    name: "takes out messages that it has not moved",
    kills: "a clean that is stopped has moved each message once, none before its time, and all is as it was",
    on: withManagement,
    file: "clean/server.ts",
    text: "const errors = yield* move(taken, queue)",
    replacement: "const errors: ReadonlyArray<undefined> = []"
  },
  {
    name: "does not lead an exchange back to its queue",
    kills: "a clean that is stopped has moved each message once, none before its time, and all is as it was",
    on: withManagement,
    file: "clean/removeGroups.ts",
    text: "yield* env.server.restore(removal.group)",
    replacement: ""
  },
  {
    name: "leaves the queue of its own on the server",
    kills: "a clean that is stopped has moved each message once, none before its time, and all is as it was",
    on: withManagement,
    file: "clean/cleaning.ts",
    text: "yield* server.deleteQueue({ name: holdingQueue, type: settings.queueType }, move)",
    replacement: "yield* Effect.void"
  },
  {
    name: "lets two of them clean",
    kills: "one clean runs at a time",
    on: withManagement,
    file: "clean/cleaning.ts",
    text: "exclusive: true, durable: false",
    replacement: "durable: false"
  },
  {
    name: "takes the way into a queue away that a consumer reads",
    kills: "a clean takes nothing away that a consumer reads",
    on: withManagement,
    file: "clean/removeGroups.ts",
    text: "if (consumed !== undefined) return",
    replacement: "if (consumed === null) return"
  },
  {
    name: "declares a queue of former settings as it would be made now",
    kills: "a queue that was made under another delivery limit is consumed, also on the next connection",
    file: "declare/legacyQueues.ts",
    text: "(known.get(object.name) ?? object)",
    replacement: "object"
  },
  {
    name: "takes what it has declared on a former connection for there",
    kills: "a binding that is deleted while the server is out of reach is there again on the next connection",
    file: "declare/declare.ts",
    text: "const known = new WeakMap<Live, Map<string, NativeObject>>()",
    replacement:
      "const all = new Map<string, NativeObject>()\n    const known = { get: (_: Live) => all, set: (_: Live, __: unknown) => {} }"
  }
]
