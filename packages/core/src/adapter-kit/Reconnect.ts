/**
 * Attempts that fail in a row, such as those to connect again: how they are spaced, and which of them the log tells of.
 * Pure; an adapter sleeps and logs.
 */

export interface Options {
  /** Milliseconds before the second attempt; the first is at once. */
  readonly first: number
  /** No pause is longer, in milliseconds. */
  readonly max: number
}

/** By how much each pause is longer than the one before. */
const factor = 1.5

/**
 * Milliseconds before the next attempt, when so many have failed: none, then growing, each spread by half so that many
 * clients do not come back at the same moment. `random` is from 0 to 1.
 */
export const pause = (failures: number, random: number, { first, max }: Options): number =>
  failures === 0 ? 0 : Math.min(first * factor ** (failures - 1), max) * (0.5 + random / 2)

/** The first failures of an outage are told, then every twentieth: `failures` were before this one. */
export const isTold = (failures: number): boolean => failures < 2 || failures % 20 === 0
