/**
 * The pace of scans that pass dead rows. A transaction that stays open keeps the rows that were removed since it began, and scans
 * become slow: they then run less often.
 */

/** The shortest pause, in milliseconds. */
export const shortest = 1000

/** The longest. */
const longest = 10_000

/** The ratio of a pause to its scan. */
const factor = 20

/** Returns the pause after a scan. Both are in milliseconds. */
export const pause = (duration: number): number => Math.min(Math.max(shortest, factor * duration), longest)
