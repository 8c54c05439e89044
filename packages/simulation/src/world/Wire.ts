/**
 * Wires: connections between a process and a broker. Each direction keeps its order. A wire breaks at any of its messages; frames
 * in flight are lost from some point on, and each side notices that at its own time.
 */
import type { Machine } from "./Machine.ts"
import type { World } from "./World.ts"

/** The two ends, and what happens at them. */
export interface Ends<Up, Down> {
  /** A frame arrives at the broker. */
  readonly onUp: (frame: Up) => void
  /** The broker notices that the wire is broken. */
  readonly onLost: () => void
  /** A frame arrives at the process. */
  readonly onDown: (frame: Down) => void
  /** The process notices that the wire is broken. */
  readonly onBroken: () => void
}

/** A connection. */
export interface Wire<Up, Down> {
  /** To the broker; `isExposed`: it may break there. Default: true. */
  readonly up: (frame: Up, isExposed?: boolean) => void
  /** To the process. */
  readonly down: (frame: Down, isExposed?: boolean) => void
  /** Breaks it; `quickly`: both sides notice at once, as in an orderly close. */
  readonly cut: (quickly?: boolean) => void
  /** Whether the process considers it intact. */
  readonly isOpen: () => boolean
}

/** Milliseconds until a side that sends nothing notices that a wire is broken. */
const heartbeat = 10_000

/** Opens a wire. `place` names it among the faults. */
export const open = <Up, Down>(world: World, machine: Machine, place: string, ends: Ends<Up, Down>): Wire<Up, Down> => {
  const arrival = { up: 0, down: 0 }
  /** Nothing arrives after this. */
  const silent = { up: Number.POSITIVE_INFINITY, down: Number.POSITIVE_INFINITY }
  let isBroken = false
  let isOpen = true

  const carry = (way: "up" | "down", arrive: () => void, isExposed = true): void => {
    if (isExposed && world.fault("cut", `${place} ${way}`)) cut()
    const at = Math.max(arrival[way], world.now() + world.latency(place))
    arrival[way] = at
    if (at > silent[way]) return
    world.at(at, () => {
      if (at <= silent[way]) arrive()
    })
  }

  const broken = (): void => {
    if (!isOpen) return
    isOpen = false
    ends.onBroken()
  }

  const cut = (quickly = false): void => {
    if (isBroken) return
    isBroken = true
    const now = world.now()
    const notice = (side: string) =>
      quickly || world.draw.chance(`${place} ${side} quick`, 0.6)
        ? world.latency(place)
        : world.draw.between(`${place} ${side} notices`, 0, heartbeat)
    silent.up = quickly ? Math.max(arrival.up, now) : now + world.latency(place)
    silent.down = now + (quickly ? 0 : world.latency(place))
    world.after(Math.max(notice("broker"), silent.up - now), ends.onLost)
    world.after(notice("process"), () => machine.perform(broken))
  }

  machine.onKilled(() => cut())

  return {
    up: (frame, isExposed) => isOpen && carry("up", () => ends.onUp(frame), isExposed),
    down: (frame, isExposed) => carry("down", () => machine.perform(() => isOpen && ends.onDown(frame)), isExposed),
    cut,
    isOpen: () => isOpen
  }
}
