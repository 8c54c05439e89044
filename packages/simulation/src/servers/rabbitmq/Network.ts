/** The way between a driver and a server: both directions of a connection keep the order of their frames until it breaks. */
import type { Sent } from "./Faults.ts"
import * as Line from "./Line.ts"
import type { Server } from "./Server.ts"

/** The ends of a connection, which learn that it is broken. */
interface Ends {
  readonly server: () => void
  readonly client: () => void
}

/** A connection of the network. */
export interface Way {
  readonly up: (sent: Sent, arrive: () => void) => void
  /** `isAsked`: the frame answers a request. */
  readonly down: (arrive: () => void, isAsked?: boolean) => void
  /** Breaks it, or ends it. Frames that are under way may be lost. */
  readonly cut: () => void
}

/** Connects a client, which names the connection's role, with the server. */
export type Network = (role: string, ends: Ends) => Way

/** The network of a server with its latency and its armed faults. */
export const make =
  ({ faults, host, settings: { latency } }: Server): Network =>
  (_, ends) => {
    const up = Line.make(host, latency)
    const down = Line.make(host, latency)
    const cut = (): void => {
      up.cut()
      down.cut()
      host.after(latency, () => {
        ends.server()
        ends.client()
      })
    }
    return {
      cut,
      down: down.send,
      up: (sent, arrive) => {
        const fault = faults.of(sent)
        switch (fault?.kind) {
          case undefined:
            return up.send(arrive)
          case "lostRequest":
            return cut()
          case "lostAnswer":
            return up.send(() => {
              down.cut()
              arrive()
              cut()
            })
          case "lateAnswer":
            return up.send(() => {
              fault.release = down.hold()
              arrive()
            })
        }
      }
    }
  }
