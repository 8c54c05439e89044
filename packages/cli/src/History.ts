/** The highest of a number in each slice of time. */

export interface History {
  /** The number is this from now on; times do not go back. */
  readonly note: (at: number, value: number) => void
  readonly all: () => { readonly slice: number; readonly values: ReadonlyArray<number>; readonly peak: number }
}

/** `slice` is in milliseconds. */
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
