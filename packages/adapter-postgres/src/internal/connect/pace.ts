/**
 * The pace of scans that pass the dead rows of a table. A transaction that stays open keeps the rows that were removed since it began,
 * so such a scan may become slow: it then takes place less often.
 */

/** The shortest pause, in milliseconds. */
export const shortest = 1000

/** The longest. */
const longest = 10_000

/** How many times as long as a scan its pause is. */
const factor = 5

/** Returns the pause after a scan. Both are in milliseconds. */
export const pause = (duration: number): number => Math.min(Math.max(shortest, factor * duration), longest)
