/** Messages that wait for their delay, for tests. */
import { type Message } from "@requeue/core"
import { Outgoing } from "@requeue/core/port"

/** A message that waits. */
export interface Waiting {
  readonly id: string
  /** Milliseconds until it is due. */
  readonly delay: number
  readonly error?: string
  readonly headers?: Message.Headers
}

/** The message as a consumer of `orders` would have retried it; without an error, as one that was sent for later. */
export const waiting = ({ delay, error, headers = {}, id }: Waiting, now: number) => {
  const body = new TextEncoder().encode(`{"note":"the-body"}`)
  const made = Outgoing.make({ queue: "orders", id, body, headers, delay }, now)
  const history = error === undefined ? [] : [{ attempt: 1, at: now, delay, error }]
  return { ...made, metadata: { ...made.metadata, history } }
}

/** The page of what waits for `orders`. */
export const page = "/delayed?broker=local&queue=orders"
