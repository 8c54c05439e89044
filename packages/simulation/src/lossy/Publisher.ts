/**
 * Publishes on the first daemon that is up, in each process's order. A publish whose connection is lost before its answer is
 * written again, on any daemon, and may then be stored twice.
 */
import type { BrokerError, Outgoing } from "@requeue/core/port"
import type { Machine } from "../world/Machine.ts"
import * as Parcels from "../world/Parcels.ts"
import type { Parcel } from "../world/Store.ts"
import type { World } from "../world/World.ts"
import * as Line from "./Line.ts"
import * as Link from "./Link.ts"
import type { Settings, Up } from "./Protocol.ts"
import type { Server } from "./Server.ts"

/** How a publish has ended; `undefined`: it is stored. */
export type Then = (error?: BrokerError.BrokerError) => void

/** The delivery that a copy is of. */
interface Origin {
  readonly of: number
  /** The daemon that is the first choice. */
  readonly prefer: Server
  /** Whether the copy keeps waiting for a time that another process may have set. */
  readonly isHop: boolean
}

/** Publishes of one process. */
export interface Publisher {
  readonly publish: (outgoing: Outgoing.Outgoing, origin: Partial<Origin> | undefined, then: Then) => void
  readonly isUp: () => boolean
  /** Waits until a daemon is up. */
  readonly ready: (then: Then) => void
}

/** How often a publish is repeated after a lost connection. */
const rounds = 3

/** The frame of a publish at this time, in milliseconds since the epoch: its waiting time counts. */
const frameOf = (
  { delay, metadata: { notBefore }, queue }: Outgoing.Outgoing,
  parcel: Parcel,
  { isHop = false, of }: Partial<Origin>,
  { cap, now }: { readonly cap: number; readonly now: number }
): Up => {
  if (delay === 0) return { _tag: "Pub", queue, parcel, delay, of }
  const wait = Math.max(1, Math.ceil(notBefore === 0 ? delay : Math.min(delay, notBefore - now)))
  // How long a hop waits is the difference of two clocks.
  if (wait > cap || isHop) return { _tag: "Pub", queue, parcel, delay: Math.min(wait, cap), of }
  return { _tag: "Pub", queue, parcel: { ...parcel, deferred: wait }, delay: wait, of }
}

/** Lines to all daemons, and the publishes that wait for one of them. */
const makeLines = (machine: Machine, servers: ReadonlyArray<Server>, onChange: () => void) => {
  const waiting = new Set<() => void>()
  const changed = (): void => {
    onChange()
    for (const each of waiting) {
      if (pick() === undefined) return
      waiting.delete(each)
      each()
    }
  }
  const lines = servers.map((server) => Line.open(machine, server, changed))
  const pick = (prefer?: Server): Line.Line | undefined =>
    lines.find((line) => line.server === prefer && line.isOpen()) ?? lines.find(({ isOpen }) => isOpen())
  return { pick, waiting }
}

/** Opens connections to all daemons. `onChange` is called when one of them opens or closes. */
export const make = (
  world: World,
  machine: Machine,
  servers: ReadonlyArray<Server>,
  { cap }: Settings,
  onChange: () => void
): Publisher => {
  const { pick, waiting } = makeLines(machine, servers, onChange)

  const publish: Publisher["publish"] = (outgoing, origin = {}, then) => {
    const parcel = Parcels.fromOutgoing(world, outgoing)
    let written: Line.Line | undefined
    let lost: BrokerError.BrokerError | undefined
    let losses = 0
    let isOver = false

    const end: Then = (error) => {
      isOver = true
      timer.run = undefined
      then(error)
    }
    const onOutcome = (outcome: Line.Outcome): void => {
      written = undefined
      if (isOver) return
      if (outcome === "stored") return end()
      if (outcome === "unread") return write()
      if (outcome.reason !== "ConnectionLost") return end(outcome)
      lost = outcome
      if (++losses === rounds) end(lost)
      else write()
    }
    const write = (): void => {
      written = pick(origin.prefer)
      if (written === undefined) waiting.add(write)
      else written.ask(frameOf(outgoing, parcel, origin, { cap, now: machine.wallClock() }), onOutcome)
    }
    const timer = machine.after(Link.timeout, () => {
      waiting.delete(write)
      if (written === undefined) return end(lost ?? Link.errorOf("publish", "ConnectionFailed", "no daemon is up"))
      end(Link.errorOf("publish", "Timeout", "no answer came"))
      // Later answers on this connection would be as late.
      written.reset()
    })
    write()
  }

  return {
    publish,
    isUp: () => pick() !== undefined,
    ready: (then) => {
      if (pick() !== undefined) return then()
      const isReady = (): void => {
        timer.run = undefined
        then()
      }
      const timer = machine.after(Link.timeout, () => {
        waiting.delete(isReady)
        then(Link.errorOf("subscribe", "ConnectionFailed", "no daemon is up"))
      })
      waiting.add(isReady)
    }
  }
}
