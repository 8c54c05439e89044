/** The channels of a daemon, and its searches for due messages. */
import type { World } from "../world/World.ts"

/** The channels of a daemon. */
export interface Channels {
  /** Makes a channel, unless it exists. */
  readonly open: (queue: string) => void
  readonly names: () => ReadonlyArray<string>
  /** Milliseconds until the daemon notices that this delay is over. */
  readonly noticed: (queue: string, delay: number) => number
  /** A daemon that restarts knows its channels at once. */
  readonly reread: () => void
}

/** Milliseconds between two searches for due messages, and between two searches for new channels. */
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
