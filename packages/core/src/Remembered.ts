/**
 * A bounded memory of names; the oldest are forgotten first.
 *
 * When to use: for what was done but may come again, because the broker did not hear of it.
 */

export interface Remembered {
  readonly add: (name: string) => void
  readonly has: (name: string) => boolean
  readonly delete: (name: string) => void
}

/** Remembers the last `limit` names. */
export const make = (limit: number): Remembered => {
  const names = new Set<string>()
  return {
    add: (name) => {
      names.add(name)
      if (names.size > limit) names.delete(names.values().next().value!)
    },
    has: (name) => names.size > 0 && names.has(name),
    delete: (name) => {
      if (names.size > 0) names.delete(name)
    }
  }
}
