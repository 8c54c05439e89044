/**
 * Repeatable random numbers: each depends on the seed and on its purpose, and on no number before it. So the order of arrival
 * does not matter.
 */

/** A whole number of 32 bits: FNV-1a over the text, then the finaliser of MurmurHash3 to spread it. */
export const hash = (seed: number, ...parts: ReadonlyArray<string | number>): number => {
  let h = 0x811c9dc5 ^ seed
  for (const char of parts.join("\u0000")) h = Math.imul(h ^ char.codePointAt(0)!, 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** A number from 0 to below 1. */
export const draw = (seed: number, ...parts: ReadonlyArray<string | number>): number => hash(seed, ...parts) / 2 ** 32

/** A UUID: the same for the same seed and parts. */
export const uuid = (seed: number, ...parts: ReadonlyArray<string | number>): string => {
  const hex = [0, 1, 2, 3]
    .map((word) =>
      hash(seed, ...parts, word)
        .toString(16)
        .padStart(8, "0")
    )
    .join("")
  // Version 8 is for custom algorithms. The digit a stands for the variant of RFC 9562.
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}
