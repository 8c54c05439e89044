/** The dispatcher: a consumer that handles a feed of messages, until every message has ended or it is stopped. */
import type { Requeue } from "@requeue/core/promise"
import type { Feed } from "./feed.ts"
import { makeHandler } from "./handler.ts"
import { type Ledger, makeLedger } from "./ledger.ts"
import { policy, queue } from "./policy.ts"
import type { Receiver } from "./receiver.ts"
import type { Stop } from "./report.ts"
import type { Screen } from "./screen.ts"
import type { Signals } from "./signals.ts"
import { watch } from "./watch.ts"

export interface Dispatcher {
  /** Uses this ledger from now on. Its feed starts after this, because its first message may be received at once. */
  readonly keep: (ledger: Ledger) => void
  /**
   * Handles a feed. Returns how it was stopped; `null` if every message has ended. It stops after this many milliseconds without
   * any event; a person may take longer than a machine.
   */
  readonly dispatch: (feed: Feed, stallAfter?: number) => Promise<Stop | null>
}

export interface DispatcherOptions {
  readonly requeue: Requeue
  readonly receiver: Receiver
  readonly secret: string
  readonly screen: Screen
  readonly signals: Signals
  /** Milliseconds that handlers may take to end when the dispatcher is stopped. */
  readonly drain: number
}

/** Milliseconds without any event after which a run stops; much more than a handler or a delay takes. */
const timeout = 60_000

export const startDispatcher = async (options: DispatcherOptions): Promise<Dispatcher> => {
  const { drain, receiver, requeue, screen, secret, signals } = options
  let ledger = makeLedger()
  let lastEvent = 0
  const worker = await requeue.consume(
    queue,
    {
      ...policy,
      onEvent: (event) => {
        lastEvent = performance.now()
        ledger.onEvent(event)
      }
    },
    makeHandler({ secret, urlOf: receiver.urlOf })
  )

  return {
    keep: (kept) => {
      ledger = kept
    },
    dispatch: async (feed, stallAfter = timeout) => {
      const start = performance.now()
      // The time since the last event was no stall: the books were computed, for example.
      lastEvent = start
      const snapshot = () => ({ feed, ledger, visits: receiver.visits, elapsed: performance.now() - start })
      const isOver = (): boolean => feed.isOver() && ledger.ended() >= feed.count()
      const isStalled = (): boolean => performance.now() - lastEvent > stallAfter
      await watch(screen, snapshot, () => isOver() || isStalled() || signals.asked() !== undefined)
      if (isOver()) {
        await feed.stop()
        return null
      }
      let drained = false
      const draining = Promise.all([worker.drain(drain), feed.stop()]).finally(() => {
        drained = true
      })
      const [[{ complete, elapsed, interrupted }]] = await Promise.all([
        draining,
        watch(screen, snapshot, () => drained)
      ])
      return { by: signals.asked() ?? "stall", complete, interrupted, drainMs: Math.round(elapsed) }
    }
  }
}
