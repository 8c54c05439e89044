/**
 * Looks at the messages of a queue, and gives them back.
 *
 * nsqd shows a message only by handing it out, and hands out `--max-rdy-count` of them (2,500) to a connection at most. So a
 * look opens one connection after the other, and each holds what it has shown until the end: a message that is given back
 * before would come again. Only the ids are kept.
 */
import { type Broker, BrokerError, type Delivery, LookPage } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Client from "../client.ts"
import * as Connection from "../connect/connection.ts"
import * as Sessions from "../consume/sessions.ts"
import { toDelivery, toFrame } from "../consume/toDelivery.ts"
import { told } from "../native.ts"
import type * as Places from "./places.ts"

export interface LookDependencies extends Places.PlacesDependencies, Sessions.SessionsDependencies {
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Messages that wait on one nsqd, as they were counted. */
export interface Waiting {
  readonly place: Places.Place
  readonly ready: number
}

/** A connection that holds what it has shown. */
interface Holder {
  readonly connection: Client.Connection
  readonly ids: Array<string>
  /** Those that have come and have not been shown. */
  readonly arrived: Array<Delivery.Delivery>
  /** When its first message came, in monotonic milliseconds. */
  since: number | undefined
  /** Whether it takes no more. */
  isClosing: boolean
}

/** Milliseconds that no message comes though some were counted, and between two looks at what has come. */
const silence = 3000
const shortestPause = 1
const longestPause = 16

/** Milliseconds that nsqd may take to have all messages of a connection back. */
const closeTimeout = 30_000

/** The part of the longest lease for which messages are held. */
const safe = 0.9

const lost = "a connection was lost; nsqd has its messages back when their lease ends, unless their topic was deleted"

const ignore = (): void => {}

const commands = (name: string, ids: ReadonlyArray<string>, rest = ""): string =>
  ids.map((id) => `${name} ${id}${rest}\n`).join("")

/** Gives back what a connection holds. What was under way until then is given back as it comes. */
const giveBack = (holder: Holder): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { connection, ids } = holder
    holder.isClosing = true
    connection.write(`RDY 0\n${commands("REQ", ids, " 0")}`, ignore)
    ids.length = 0
    return Effect.tryPromise(connection.stop)
  }).pipe(Effect.timeout(closeTimeout), Effect.ignore, Effect.ensuring(Effect.sync(() => holder.connection.end())))

/** Opens a connection, on which nsqd sends nothing yet. */
const connect = (
  queue: string,
  { node, queue: topic }: Places.Place,
  { elapsed, messageTimeout, now, settings }: LookDependencies
): Effect.Effect<Holder, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    let holder: Holder | undefined
    const message = (payload: Buffer): void => {
      if (holder === undefined) return
      const frame = toFrame(payload)
      if (holder.isClosing) return holder.connection.write(`REQ ${frame.id} 0\n`, ignore)
      const { nonce: _, ...decoded } = toDelivery(frame, {
        now: now(),
        nsqdNow: node.clock.now(now(), elapsed()),
        due: undefined
      })
      holder.ids.push(frame.id)
      holder.since ??= elapsed()
      holder.arrived.push({
        ...decoded,
        get native() {
          return told(frame, { node, topic })
        },
        redelivered: frame.attempts !== 1,
        receipt: undefined
      })
    }
    const request = { topic: topic.topic, channel: topic.channel, messageTimeout }
    return Effect.map(
      Connection.open({ operation: "peek", queue, node: node.name }, settings, (signal) =>
        Client.subscribe(settings, node.address, request, { message, refused: ignore, closed: ignore }, signal)
      ),
      (connection) => (holder = { connection, ids: [], arrived: [], since: undefined, isClosing: false })
    )
  })

/** Looks at up to `limit` of the messages that were counted. */
export const open = (
  queue: string,
  limit: number,
  waiting: ReadonlyArray<Waiting>,
  env: LookDependencies
): Effect.Effect<Broker.Look, BrokerError.BrokerError, Scope.Scope> =>
  Effect.gen(function* () {
    const { elapsed, messageTimeout } = env
    const holders: Array<Holder> = []
    const places = waiting.filter(({ ready }) => ready > 0).map((each) => ({ ...each, shown: 0 }))
    const pages = LookPage.make()
    let shown = 0
    let holder: Holder | undefined

    yield* Effect.addFinalizer(() => Effect.forEach(holders, giveBack, { concurrency: "unbounded", discard: true }))
    // What is held for longer than a lease would come again.
    const touch = Effect.sync(() => {
      for (const { connection, ids } of holders) connection.write(commands("TOUCH", ids), ignore)
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(messageTimeout / 3), touch)))

    const failed = (reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
      new BrokerError.BrokerError({ broker: "nsq", operation: "peek", queue, reason, detail })

    /** Fails when messages that were shown may be on their way to somebody else. */
    const check = Effect.suspend(() => {
      if (holders.some(({ connection }) => !connection.isOpen())) return Effect.fail(failed("ConnectionLost", lost))
      const longest = safe * (holders[0]?.connection.identity.maxMsgTimeout ?? 0)
      return holders.some(({ since }) => since !== undefined && elapsed() - since > longest)
        ? Effect.fail(
            failed("LeaseLost", "nsqd lends a message for its --max-msg-timeout at most, and the look took longer")
          )
        : Effect.void
    })

    /** Takes up to so many messages on the connection. */
    const take = (from: Holder, count: number) =>
      Effect.gen(function* () {
        const { connection } = from
        connection.write(`RDY ${from.ids.length + count}\n`, ignore)
        let [pause, seen, quiet] = [shortestPause, 0, elapsed()]
        while (from.arrived.length < count && connection.isOpen() && elapsed() - quiet < silence) {
          yield* Effect.sleep(pause)
          pause = Math.min(2 * pause, longestPause)
          if (from.arrived.length > seen) quiet = elapsed()
          seen = from.arrived.length
        }
        yield* check
        return from.arrived.splice(0)
      })

    const next: Broker.Look["next"] = Effect.gen(function* () {
      for (let place = places[0]; place !== undefined && shown < limit; place = places[0]) {
        const wanted = Math.min(limit - shown, place.ready - place.shown)
        if (holder === undefined && wanted > 0) holders.push((holder = yield* connect(queue, place.place, env)))
        const room = holder === undefined ? 0 : holder.connection.identity.maxRdyCount - holder.ids.length
        if (holder !== undefined && wanted > 0 && room <= 0) {
          holder = undefined
          continue
        }
        const count = Math.min(wanted, room, pages.size())
        const page = holder === undefined ? [] : yield* take(holder, count)
        if (page.length < count || count <= 0) {
          // Others have the rest of it.
          places.shift()
          holder = undefined
        }
        if (page.length === 0) continue
        place.shown += page.length
        shown += page.length
        pages.seen(page.map(({ body }) => body.length))
        return page.toSorted((a, b) => a.metadata.firstPublished - b.metadata.firstPublished)
      }
      return []
    })
    return { next }
  })
