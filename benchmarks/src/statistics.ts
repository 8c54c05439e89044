/** Statistics over several rounds. Pure. */

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

const middle = (sorted: ReadonlyArray<number>): number => {
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

/** @throws RangeError when there is no value */
export const spread = (values: ReadonlyArray<number>): Spread => {
  if (values.length === 0) throw new RangeError("statistics.spread: needs a value, got none")
  const sorted = values.toSorted((a, b) => a - b)
  return { median: middle(sorted), min: sorted[0]!, max: sorted.at(-1)! }
}

/** The ratio of the medians, and the minimum and the maximum ratio of two values of one round: a disturbance affected both. */
export const ratio = (values: ReadonlyArray<number>, baseline: ReadonlyArray<number>): Spread => {
  const rounds = spread(values.map((value, round) => value / baseline[round]!))
  return { median: spread(values).median / spread(baseline).median, min: rounds.min, max: rounds.max }
}

/** The smallest value that `share` (0 to 1) of the values do not exceed. */
export const quantile = (values: ReadonlyArray<number>, share: number): number => {
  if (values.length === 0) throw new RangeError("statistics.quantile: needs a value, got none")
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))]!
}

/** The allowed difference between two measurements of the same thing. */
const tolerance = 0.05

/** Whether a control shows that the run was disturbed. */
export const isDisturbed = ({ median }: Spread): boolean => Math.abs(median - 1) > tolerance
