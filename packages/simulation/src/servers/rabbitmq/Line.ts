/** One direction of a connection: frames arrive in their order, some time after they were sent. */
import type { Host } from "../Host.ts"

/** A direction. */
export interface Line {
  readonly send: (arrive: () => void) => void
  /** From now on nothing arrives until the returned function is called. */
  readonly hold: () => () => void
  /** Nothing arrives any more. */
  readonly cut: () => void
}

/** Makes a direction with this latency in milliseconds. Frames that are sent together arrive together. */
export const make = (host: Host, latency: number): Line => {
  let frames: Array<{ readonly at: number; readonly arrive: () => void }> = []
  let isArmed = false
  let holds = 0
  let isCut = false

  const pass = (): void => {
    isArmed = false
    while (holds === 0 && !isCut && frames.length > 0 && frames[0]!.at <= host.now()) frames.shift()!.arrive()
    arm()
  }
  const arm = (): void => {
    const [first] = frames
    if (isArmed || isCut || holds > 0 || first === undefined) return
    isArmed = true
    host.after(Math.max(0, first.at - host.now()), pass)
  }

  return {
    send: (arrive) => {
      if (isCut) return
      frames.push({ at: host.now() + latency, arrive })
      arm()
    },
    hold: () => {
      holds++
      return () => {
        holds--
        arm()
      }
    },
    cut: () => {
      isCut = true
      frames = []
    }
  }
}
