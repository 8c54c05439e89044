/** A number over time: its highest value in each slice of time. */

export interface History {
  /** Sets the number from a time on. Times must not decrease. */
  readonly note: (at: number, value: number) => void
  /** Returns the highest value of each slice, and of all. */
  readonly all: () => { readonly slice: number; readonly values: ReadonlyArray<number>; readonly peak: number }
}

/** Makes a history of a number that is 0 at first. `slice` is in milliseconds. */
export const make = (slice: number): History => {
  const values: Array<number> = []
  let current = 0
  return {
    note: (at, value) => {
      const last = Math.floor(at / slice)
      while (values.length <= last) values.push(current)
      values[last] = Math.max(values[last]!, value)
      current = value
    },
    all: () => ({ slice, values, peak: Math.max(0, ...values) })
  }
}
