/**
 * A bounded memory of names; the oldest are forgotten first.
 *
 * When to use: for what was done but may come again, because the broker did not hear of it.
 */

export interface RecentSet {
  readonly add: (name: string) => void
  readonly has: (name: string) => boolean
  readonly delete: (name: string) => void
  readonly isEmpty: () => boolean
}

/**
 * Remembers the last `limit` names, and up to as many before them: they are forgotten together, which costs nothing. A
 * limit of 0 remembers none.
 */
export const make = (limit: number): RecentSet => {
  let recent = new Set<string>()
  let older = new Set<string>()
  return {
    add: (name) => {
      if (limit === 0) return
      recent.add(name)
      if (recent.size < limit) return
      older = recent
      recent = new Set()
    },
    has: (name) => recent.has(name) || older.has(name),
    delete: (name) => {
      recent.delete(name)
      older.delete(name)
    },
    isEmpty: () => recent.size === 0 && older.size === 0
  }
}
