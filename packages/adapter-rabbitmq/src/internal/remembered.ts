/** A bounded memory of names; the oldest are forgotten first. */
export interface Remembered {
  readonly add: (name: string) => void
  readonly has: (name: string) => boolean
}

export const make = (limit: number): Remembered => {
  const names = new Set<string>()
  return {
    add: (name) => {
      names.add(name)
      if (names.size > limit) names.delete(names.values().next().value!)
    },
    has: (name) => names.has(name)
  }
}
