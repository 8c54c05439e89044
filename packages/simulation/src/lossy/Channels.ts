/** The channels of a daemon, and its searches for what is due in them. */
import type { World } from "../world/World.ts"

/** The channels of a daemon. */
export interface Channels {
  /** Makes a channel, if there is none of this name. */
  readonly open: (queue: string) => void
  readonly names: () => ReadonlyArray<string>
  /** Milliseconds until the daemon notices that this delay is over. */
  readonly noticed: (queue: string, delay: number) => number
  /** A daemon that begins again knows its channels from the start. */
  readonly reread: () => void
}

/** Milliseconds between two searches for what is due, and between two searches for new channels. */
const searches = { due: 100, channels: 5000 }

const nextOf = (time: number, interval: number): number => Math.ceil(time / interval) * interval

/** No channels. */
export const make = (world: World): Channels => {
  const madeAt = new Map<string, number>()
  return {
    open: (queue) => {
      if (!madeAt.has(queue)) madeAt.set(queue, world.now())
    },
    names: () => [...madeAt.keys()],
    noticed: (queue, delay) => {
      if (delay <= 0) return 0
      const known = nextOf(madeAt.get(queue) ?? world.now(), searches.channels)
      return Math.max(nextOf(world.now() + delay, searches.due), known) - world.now()
    },
    reread: () => {
      for (const queue of madeAt.keys()) madeAt.set(queue, 0)
    }
  }
}
