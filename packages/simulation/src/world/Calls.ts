/**
 * Calls: a request of a process and the server's answer, each call separate, as over HTTP. Requests and answers are lost, arrive
 * late, and are repeated by the driver; a request may take effect long after its caller has timed out.
 */
import type { Machine } from "./Machine.ts"
import type { World } from "./World.ts"

/** Why a call has no answer. `Throttled`: the server is too busy, and has done nothing. */
type Failure = "ConnectionFailed" | "ConnectionLost" | "Throttled" | "Timeout"

/** How a call ends for its caller. */
export type Outcome<A> = { readonly value: A } | { readonly failure: Failure }

/** A call. */
interface Call<A> {
  readonly machine: Machine
  /** Its name among the faults. */
  readonly place: string
  /** Milliseconds that the caller waits for an answer. */
  readonly timeout: number
  /** Whether the driver repeats it when its first request had no answer. */
  readonly repeats: boolean
  /** Carries out a request that has arrived. It answers at once, or later. */
  readonly act: (answer: (value: A) => void) => void
  /** Called once, unless the process is dead by then. */
  readonly onEnd: (outcome: Outcome<A>) => void
}

/** The connection to one server. */
export interface Calls {
  readonly make: <A>(call: Call<A>) => void
  /** The requests that will still arrive. */
  readonly underWay: () => number
  /** Ends all calls, and fails new ones until the server is back. */
  readonly restart: (away: number) => void
  /** Refuses all calls for a while. */
  readonly throttle: (millis: number) => void
}

/** Maximum milliseconds of a late message. */
const longest = 30_000

/** Maximum milliseconds until the driver repeats a call. */
const pause = 1000

/** The connection to a server that is up. */
export const make = (world: World): Calls => {
  /** Ends the calls in flight. */
  const open = new Set<() => void>()
  let isUp = true
  let busyUntil = 0
  let underWay = 0

  /** Milliseconds of one way. */
  const way = (place: string): number =>
    world.latency(place) + (world.fault("late", place) ? world.draw.between(`${place} late`, 0, longest) : 0)

  const call = <A>({ act, machine, timeout, place, repeats, onEnd }: Call<A>): void => {
    let isOpen = true

    const end = (outcome: Outcome<A>): void => {
      if (!isOpen) return
      isOpen = false
      open.delete(broken)
      timer.run = undefined
      onEnd(outcome)
    }
    const tell = (delay: number, outcome: Outcome<A>): void =>
      void world.after(delay, () => machine.perform(() => end(outcome)))
    const broken = (): void => tell(world.latency(place), { failure: "ConnectionLost" })

    /** Sends a request. Its answer is discarded if the connection is cut, or the driver has repeated the call. */
    const send = (isHeard: boolean): void => {
      if (world.fault("lostRequest", place)) return
      underWay++
      world.after(way(place), () => {
        underWay--
        if (!isUp) return broken()
        if (world.now() < busyUntil || world.fault("busy", place)) {
          return isHeard ? tell(way(place), { failure: "Throttled" }) : undefined
        }
        act((value) => {
          if (isHeard && !world.fault("lostAnswer", place)) tell(way(place), { value })
        })
      })
    }

    const timer = machine.after(timeout, () => end({ failure: "Timeout" }))
    open.add(broken)
    if (!isUp) return tell(world.latency(place), { failure: "ConnectionFailed" })
    if (world.fault("cut", place)) {
      broken()
      if (world.draw.chance(`${place} cut behind`, 0.5)) send(false)
    } else if (repeats && world.fault("twice", place)) {
      send(false)
      world.after(world.draw.between(`${place} again`, 0, pause), () => send(true))
    } else send(true)
  }

  return {
    make: call,
    underWay: () => underWay,
    restart: (away) => {
      isUp = false
      for (const broken of open) broken()
      world.after(away, () => {
        isUp = true
      })
    },
    throttle: (millis) => {
      busyUntil = world.now() + millis
    }
  }
}
