/** Connections of a client to a daemon, which are always restored. */
import { BrokerError } from "@requeue/core/port"
import type { Machine } from "../world/Machine.ts"
import type { Down, Ends, Opened } from "./Protocol.ts"
import type { Server } from "./Server.ts"

/** Milliseconds after which an answer is late. */
export const timeout = 10_000

/** Pauses between attempts to reconnect, in milliseconds. The first attempt is made at once. */
const pauses = { first: 100, factor: 1.5, longest: 5000 }

/** An error of this client. */
export const errorOf = (operation: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "lossy", operation, reason, detail })

/** A permanent connection. */
export interface Link {
  readonly current: () => Opened | undefined
  /** It is not restored once it has ended. */
  readonly retire: () => void
}

/** Keeps a connection. `opened` is called for each one, and returns its callbacks. */
export const keep = (machine: Machine, server: Server, place: string, opened: (connection: Opened) => Ends): Link => {
  let current: Opened | undefined
  let isEnding = false
  let tries = 0

  const connect = (): void => {
    if (isEnding) return
    const connection = server.connect(machine, place, {
      onDown: (frame: Down) => ends.onDown(frame),
      onWaiting: () => ends.onWaiting?.(),
      onBroken: () => {
        current = undefined
        ends.onBroken()
        machine.after(0, connect)
      }
    })
    if (connection === undefined) {
      machine.after(Math.min(pauses.first * pauses.factor ** tries++, pauses.longest), connect)
      return
    }
    tries = 0
    current = connection
    const ends: Ends = opened(connection)
  }

  connect()
  return {
    current: () => current,
    retire: () => {
      isEnding = true
    }
  }
}
