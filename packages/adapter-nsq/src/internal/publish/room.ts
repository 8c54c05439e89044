/** Limits the messages that await their answers, first come, first served. */
import * as Effect from "effect/Effect"

export interface Room {
  /** Whether `size` is free and no other message waits for room. */
  readonly has: (size: number) => boolean
  /** Takes free room. */
  readonly take: (size: number) => void
  /** Releases taken room. */
  readonly release: (size: number) => void
  /** Runs an effect when there is room for it. If it has to wait, `inTime` limits the wait and the effect together. */
  readonly within: <A, E>(
    size: number,
    effect: Effect.Effect<A, E>,
    inTime: (late: Effect.Effect<A, E>) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E>
}

interface Guest {
  readonly size: number
  isIn: boolean
  enter: (entered: Effect.Effect<void>) => void
}

/** Makes room of the size `limit`, the largest request. */
export const make = (limit: number): Room => {
  let free = limit
  const waiting = new Set<Guest>()

  const has = (size: number): boolean => waiting.size === 0 && free >= size

  const take = (size: number): void => {
    free -= size
  }

  const release = (size: number): void => {
    free += size
    for (const guest of waiting) {
      if (free < guest.size) return
      waiting.delete(guest)
      take(guest.size)
      guest.isIn = true
      guest.enter(Effect.void)
    }
  }

  /** Ends when a guest is let in. */
  const wait = (guest: Guest): Effect.Effect<void> =>
    Effect.callback((resume) => {
      guest.enter = resume
      waiting.add(guest)
    })

  const leave = (guest: Guest): void => {
    const size = guest.isIn ? guest.size : 0
    waiting.delete(guest)
    // Also if it took none: the next ones may need less.
    release(size)
  }

  return {
    has,
    take,
    release,
    within: (size, effect, inTime) =>
      Effect.suspend(() => {
        const guest: Guest = { size, isIn: false, enter: () => {} }
        const entered = Effect.suspend(() => {
          if (!has(size)) return inTime(Effect.andThen(wait(guest), effect))
          take(size)
          guest.isIn = true
          return effect
        })
        return Effect.ensuring(
          entered,
          Effect.sync(() => leave(guest))
        )
      })
  }
}
