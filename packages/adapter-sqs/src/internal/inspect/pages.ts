/** Receives the messages of a queue page by page, and knows when none is left. */
import { type Broker, BrokerError, type Delivery } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Message } from "../client.ts"
import type { Receive } from "../consume/receive.ts"
import * as Limits from "../limits.ts"
import type { Hold } from "./hold.ts"

/** Receives that may be under way, and the bytes that they should bring at most. */
const parallel = 16
const pageBytes = 4 * 2 ** 20

/** Milliseconds that a receive waits for messages. With none, SQS asks only some of its servers. */
export const waitTime = 1000

/** Milliseconds for which the end waits for receives that are under way: they have waited by then. */
const lastGrace = waitTime + 2000

interface Dependencies {
  readonly fifo: boolean
  /** The most messages that are held at a time. */
  readonly limit: number
  /** Milliseconds for which messages are hidden. */
  readonly visibilityTimeout: number
  /** Receives without waiting: only then, a standard queue refuses to deliver above its quota of messages in flight. */
  readonly probe: Receive<Message>
  readonly receive: Receive<Message>
  readonly hold: Hold
  /** Counts the messages that are ready; `undefined` where that fails. */
  readonly countReady: Effect.Effect<number | undefined>
  readonly toDelivery: (message: Message, name: string) => Delivery.Delivery
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}

interface Pages extends Pick<Broker.Browser, "browsed"> {
  readonly next: (count: number) => Effect.Effect<ReadonlyArray<Delivery.Delivery>, BrokerError.BrokerError>
  /** Returns all that is held, and what receives under way still bring. */
  readonly close: Effect.Effect<void>
}

/**
 * Nothing was received yet.
 *
 * Long, because pages, and what receives bring when nobody waits for them any more, share what is known.
 */
export const make = (env: Dependencies): Pages => {
  const { countReady, fifo, hold, limit, now, visibilityTimeout } = env
  const underWay = new Set<Promise<BrokerError.BrokerError | undefined>>()
  let unshown: Array<Delivery.Delivery> = []
  /** `asked` counts messages that receives under way may bring, `received` those that came, with their `bytes`. */
  let [asked, received, bytes] = [0, 0, 0]
  /** Until when messages may be hidden that came in no answer. */
  let doubtUntil = Number.NEGATIVE_INFINITY
  let [isFlowing, isClosed] = [false, false]
  /** Messages of a FIFO queue that were ready before the first was received, and those of them that did not come. */
  let [counted, missing]: [number | undefined, number | undefined] = [undefined, fifo ? undefined : 0]
  let isOver = false

  const keep = (messages: ReadonlyArray<Message>, receivedAt: number): void => {
    for (const message of messages) {
      const { Body = "", MessageId = "", ReceiptHandle = "" } = message
      const name = MessageId === "" ? ReceiptHandle : MessageId
      if (hold.add(name, ReceiptHandle, receivedAt)) unshown.push(env.toDelivery(message, name))
      bytes += Body.length
      received++
    }
    if (isClosed) env.fork(hold.release)
  }

  /** Keeps what comes, whether or not anybody still waits for it. */
  const receive = (count: number, by = env.receive): Promise<BrokerError.BrokerError | undefined> => {
    const receivedAt = now()
    const { promise, resolve } = Promise.withResolvers<BrokerError.BrokerError | undefined>()
    const end = (error?: BrokerError.BrokerError): void => {
      asked -= count
      underWay.delete(promise)
      if (error !== undefined && BrokerError.isDoubtful(error)) doubtUntil = now() + waitTime + visibilityTimeout
      resolve(error)
    }
    asked += count
    underWay.add(promise)
    by(count, {
      failed: end,
      received: (messages) => {
        keep(messages, receivedAt)
        end()
      }
    })
    return promise
  }

  /** Receives up to so many messages, and waits for receives of calls that were interrupted as well; answers an error of these. */
  const receiveAll = (wanted: number) =>
    Effect.promise(async () => {
      const fitting = Math.ceil((pageBytes * received) / (bytes + 1) / Limits.batch)
      const most = isFlowing ? Math.max(1, Math.min(parallel, fitting)) : 1
      const calls = Math.max(0, Math.min(most, Math.ceil(wanted / Limits.batch)))
      const counts = Array.from({ length: calls }, (_, at) => Math.min(Limits.batch, wanted - at * Limits.batch))
      const before = received
      for (const count of counts) void receive(count)
      const errors = await Promise.all(underWay)
      const isEmpty = received === before && calls > 0 && !errors.some((error) => error !== undefined)
      if (isEmpty && !fifo) errors.push(await receive(counts[0]!, env.probe))
      isFlowing = received > before
      return errors.find((error) => error !== undefined)
    })

  const next: Pages["next"] = (count) =>
    Effect.gen(function* () {
      isOver = false
      const lost = hold.lost()
      if (lost !== undefined) {
        unshown = []
        received = bytes = 0
        yield* hold.release
        return yield* lost
      }
      if (fifo && received === 0) counted = yield* countReady
      const began = now()
      const wanted = Math.min(count - unshown.length, limit - hold.size() - asked)
      const error = yield* receiveAll(wanted)
      const page = unshown.splice(0, count)
      if (page.length > 0) return page
      const isRefused = error !== undefined && error.reason !== "QueueFull"
      if (isRefused && (error.reason !== "QueueMissing" || received > 0)) return yield* error
      isOver = wanted > 0 && error?.reason !== "QueueFull" && !isFlowing && began >= doubtUntil
      if (fifo && wanted > 0) {
        const ready = yield* countReady
        missing =
          ready === undefined || counted === undefined ? undefined : Math.max(0, Math.min(ready, counted - received))
      }
      return []
    })

  return {
    next,
    close: Effect.gen(function* () {
      yield* Effect.timeoutOption(
        Effect.promise(() => Promise.all(underWay)),
        Duration.millis(lastGrace)
      )
      isClosed = true
      yield* hold.release
    }),
    // With nothing held, it is others that have the first messages of groups.
    browsed: () => ({ isWhole: isOver && missing === 0, hidden: hold.size() === 0 ? 0 : missing })
  }
}
