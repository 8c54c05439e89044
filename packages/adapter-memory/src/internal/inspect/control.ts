/** The control handle over a broker's own parts. */
import { Metadata } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Control, Snapshot } from "../../Control.ts"
import { delivered, type Dispatch, view } from "../consume/dispatch.ts"
import type { Publish } from "../publish/publisher.ts"
import type { Queue, Store } from "../queues.ts"

export const make = (env: {
  readonly store: Store
  readonly dispatch: Dispatch
  readonly publish: Publish
  /** Whether foreign headers are carried. */
  readonly headers: boolean
  /** Whether a cut takes the deliveries with it. */
  readonly connectionBound: boolean
  readonly forgetDelays: boolean
  /** Wall-clock milliseconds. */
  readonly now: () => number
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
  /** The connection is another one. */
  readonly onCut: () => void
}): Control => {
  const { dispatch, store } = env
  let foreign = 0

  const reconnect = (queue: Queue, forgetDelays: boolean): void =>
    dispatch.quietly(queue, () => {
      const consumers = [...queue.consumers]
      dispatch.lose(
        queue,
        consumers.flatMap(({ loans }) => [...loans])
      )
      if (forgetDelays) store.forgetDelays(queue)
      for (const { options } of consumers) options.onReconnect()
    })

  const reconnectAll = (forgetDelays: boolean): Effect.Effect<void> =>
    Effect.sync(() => {
      env.onCut()
      for (const queue of store.queues.values()) reconnect(queue, forgetDelays)
    })

  const snapshot = ({ consumers, delayed, ready }: Queue): Snapshot => ({
    ready: Array.from(ready, (stored) => view(stored, stored.deliveries + 1)),
    delayed: [...delayed]
      .toSorted((a, b) => a.due - b.due)
      .map((stored) => ({ delivery: view(stored, stored.deliveries + 1), dueIn: stored.due - env.elapsed() })),
    inFlight: [...consumers]
      .flatMap(({ loans }) => [...loans])
      .toSorted((a, b) => a.number - b.number)
      .map(delivered),
    consumers: consumers.size
  })

  return {
    publishRaw: (queue, body, headers = {}) =>
      Effect.suspend(() => {
        const metadata = Metadata.make(`foreign-${++foreign}`, env.now())
        return env.publish.publish([{ queue, body, headers: env.headers ? headers : {}, delay: 0, metadata }])
      }),
    cut: env.connectionBound ? reconnectAll(false) : Effect.void,
    restart: reconnectAll(env.forgetDelays),
    snapshot: (name) => Effect.sync(() => snapshot(store.queue(name))),
    queues: Effect.sync(() => new Map([...store.queues.values()].map((queue) => [queue.name, snapshot(queue)])))
  }
}
