/** The connection of a publisher to one daemon, which answers in the order of the publishes. */
import type { BrokerError } from "@requeue/core/port"
import type { Machine } from "../world/Machine.ts"
import * as Link from "./Link.ts"
import type { Server } from "./Server.ts"
import type { Down, Up } from "./Protocol.ts"

/** The outcome of a publish. `unread`: the daemon has refused an earlier one, and stopped reading. */
export type Outcome = "stored" | "unread" | BrokerError.BrokerError

/** A permanent connection. */
export interface Line {
  readonly server: Server
  readonly isOpen: () => boolean
  readonly ask: (frame: Up, then: (outcome: Outcome) => void) => void
  /** Breaks the connection, which is then restored. */
  readonly reset: () => void
}

/** Keeps a connection. `onChange` is called when it opens or closes. */
export const open = (machine: Machine, server: Server, onChange: () => void): Line => {
  const asked: Array<(outcome: Outcome) => void> = []

  const endAll = (outcome: Outcome): void => {
    for (const then of asked.splice(0)) then(outcome)
  }
  const changed = (): void => void machine.after(0, onChange)

  const { current } = Link.keep(machine, server, `${machine.name} publish ${server.name}`, (connection) => {
    changed()
    return {
      onDown: (frame: Down) => {
        if (frame._tag === "Ok") return asked.shift()?.("stored")
        if (frame._tag !== "Refused") return
        connection.cut(true)
        const reason = frame.reason as BrokerError.Reason // the server's reasons are all reasons of errors
        asked.shift()?.(Link.errorOf("publish", reason, "the daemon refuses it"))
        endAll("unread")
      },
      onBroken: () => {
        changed()
        endAll(Link.errorOf("publish", "ConnectionLost", "the connection broke"))
      }
    }
  })

  return {
    server,
    isOpen: () => current()?.isOpen() === true,
    ask: (frame, then) => {
      asked.push(then)
      current()?.up(frame)
    },
    reset: () => current()?.cut(true)
  }
}
