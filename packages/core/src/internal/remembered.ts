/** The last so many message ids: those that were handled, but whose ack the broker did not take. */

export interface Remembered {
  readonly add: (id: string) => void
  readonly has: (id: string) => boolean
  readonly delete: (id: string) => void
}

export const make = (limit: number): Remembered => {
  const ids = new Set<string>()
  return {
    add: (id) => {
      ids.add(id)
      if (ids.size > limit) ids.delete(ids.values().next().value!)
    },
    has: (id) => ids.size > 0 && ids.has(id),
    delete: (id) => {
      if (ids.size > 0) ids.delete(id)
    }
  }
}
