/** The median of many numbers, and the range in which nine of ten lie. */
export interface Range {
  readonly low: number
  readonly median: number
  readonly high: number
}

/** Returns the range of one or more numbers. */
export const of = (values: ReadonlyArray<number>): Range => {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part: number): number => sorted[Math.round(part * (sorted.length - 1))]!
  return { low: at(0.05), median: at(0.5), high: at(0.95) }
}
