/**
 * A bounded memory of names; the oldest are forgotten first.
 *
 * When to use: for what was done but may come again, because the broker did not hear of it.
 */

export interface Remembered {
  /** `stamp` tells apart what has the same name; the last one is remembered. */
  readonly add: (name: string, stamp?: number) => void
  readonly has: (name: string, stamp?: number) => boolean
  readonly delete: (name: string) => void
}

/** Remembers the last `limit` names, and up to as many before them: they are forgotten together, which costs nothing. */
export const make = (limit: number): Remembered => {
  let recent = new Map<string, number>()
  let older = new Map<string, number>()
  return {
    add: (name, stamp = 0) => {
      recent.set(name, stamp)
      if (recent.size < limit) return
      older = recent
      recent = new Map()
    },
    has: (name, stamp = 0) => (recent.get(name) ?? older.get(name)) === stamp,
    delete: (name) => {
      recent.delete(name)
      older.delete(name)
    }
  }
}
