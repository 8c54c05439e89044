/** Makes the `Control` of a broker from its parts. */
import { type Connection, Metadata } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Control, Snapshot } from "../../Control.ts"
import type { Dispatch } from "../consume/dispatch.ts"
import { deliveryOf, nextDelivery } from "../consume/toDelivery.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { Queue, Queues } from "../queues.ts"

export const make = (env: {
  readonly queues: Queues
  readonly dispatch: Dispatch
  readonly publisher: Publisher
  /** Whether the broker keeps foreign headers. */
  readonly headers: boolean
  /** Whether deliveries end with their connection. */
  readonly connectionBound: boolean
  readonly forgetDelays: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
  /** Called when the connections are lost and when they are reopened. */
  readonly onState: (state: Connection.Connection["state"]) => void
}): Control => {
  const { dispatch, queues } = env
  let foreign = 0

  const reconnect = (queue: Queue, forgetDelays: boolean): void =>
    dispatch.quietly(queue, () => {
      const consumers = [...queue.consumers]
      dispatch.lose(
        queue,
        consumers.flatMap(({ receipts }) => [...receipts])
      )
      if (forgetDelays) queues.forgetDelays(queue)
      for (const { options } of consumers) options.onReconnect()
    })

  const reconnectAll = (forgetDelays: boolean): Effect.Effect<void> =>
    Effect.gen(function* () {
      env.onState("down")
      // As on a network, other fibers have time to see it.
      yield* Effect.yieldNow
      env.onState("up")
      for (const queue of queues.all.values()) reconnect(queue, forgetDelays)
    })

  const snapshot = ({ consumers, delayed, ready }: Queue): Snapshot => ({
    ready: Array.from(ready, nextDelivery),
    delayed: [...delayed]
      .toSorted((a, b) => a.due - b.due)
      .map((message) => ({ delivery: nextDelivery(message), dueIn: message.due - env.elapsed() })),
    inFlight: [...consumers]
      .flatMap(({ receipts }) => [...receipts])
      .toSorted((a, b) => a.number - b.number)
      .map(deliveryOf),
    consumers: consumers.size
  })

  return {
    publishRaw: (queue, body, headers = {}) =>
      Effect.suspend(() => {
        const metadata = Metadata.make(`foreign-${++foreign}`, env.now())
        const copy = { body: new Uint8Array(body), headers: Object.freeze(env.headers ? { ...headers } : {}) }
        return env.publisher.publish([{ queue, ...copy, delay: 0, metadata }])
      }),
    cut: env.connectionBound ? reconnectAll(false) : Effect.void,
    restart: reconnectAll(env.forgetDelays),
    snapshot: (name) => Effect.sync(() => snapshot(queues.get(name))),
    queues: Effect.sync(() => new Map([...queues.all.values()].map((queue) => [queue.name, snapshot(queue)])))
  }
}
