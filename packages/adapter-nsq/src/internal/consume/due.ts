/**
 * When requeued messages are to come again. `REQ` carries no metadata, and an nsqd that restarts forgets what it held
 * back, so that this process remembers it. Bounded; the oldest are forgotten first.
 */
export interface Due {
  /** `at` in milliseconds since the epoch. */
  readonly remember: (message: string, at: number) => void
  /** When it was to come; `undefined` when nothing is known. It is forgotten with the answer. */
  readonly take: (message: string) => number | undefined
}

export const make = (limit: number): Due => {
  const times = new Map<string, number>()
  return {
    remember: (message, at) => {
      times.delete(message)
      times.set(message, at)
      if (times.size > limit) times.delete(times.keys().next().value!)
    },
    take: (message) => {
      const at = times.get(message)
      times.delete(message)
      return at
    }
  }
}
