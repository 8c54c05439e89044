/** Versions of nsqd, where they behave differently. */

/** Whether a version, such as `1.3.0`, is at least another one. */
export const isAtLeast = (version: string, other: string): boolean => {
  const [ours = [], theirs = []] = [version, other].map((each) => each.split(".").map(Number))
  const at = theirs.findIndex((number, index) => number !== (ours[index] ?? 0))
  return at < 0 || (ours[at] ?? 0) > theirs[at]!
}
