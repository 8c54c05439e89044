/** Compares versions of the server. */

/** The ranks of the few versions that exist, because every delivery compares them. */
const ranks = new Map<string, number>()

const rank = (version: string): number => {
  const known = ranks.get(version)
  if (known !== undefined) return known
  const made = version.split(".").reduce((sum, part, index) => sum + Number(part) * 1000 ** (2 - index), 0)
  ranks.set(version, made)
  return made
}

/** Whether a version is `wanted` or later. */
export const isAtLeast = (version: string, wanted: string): boolean => rank(version) >= rank(wanted)
