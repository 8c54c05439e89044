/** Compares versions of the server. */

const rank = (version: string): number =>
  version.split(".").reduce((sum, part, index) => sum + Number(part) * 1000 ** (2 - index), 0)

/** Whether a version is `wanted` or later. */
export const isAtLeast = (version: string, wanted: string): boolean => rank(version) >= rank(wanted)
