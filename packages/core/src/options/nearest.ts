/** Finds the known name that was probably meant. */

/** The edit distance of two words: letters changed, missing, added, or swapped with their neighbour. */
const distance = (a: string, b: string): number => {
  const rows: Array<Array<number>> = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const best = Math.min(changed, rows[i - 1]![j]! + 1, row[j - 1]! + 1)
      row.push(swapped ? Math.min(best, rows[i - 2]![j - 2]! + 1) : best)
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}

/** Returns the most similar known name, or else one that begins it: `delay` of `delaySeconds`, `retry` of `retries`. */
export const nearest = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const given = name.toLowerCase()
  const [best] = known
    .map((candidate) => ({ candidate, far: distance(given, candidate.toLowerCase()) }))
    .filter(({ candidate, far }) => far <= Math.max(1, Math.floor(candidate.length / 3)))
    .toSorted((a, b) => a.far - b.far)
  const begins = (candidate: string) => candidate.length > 3 && given.startsWith(candidate.toLowerCase())
  const nearlyBegins = (candidate: string) =>
    candidate.length > 4 && given.startsWith(candidate.toLowerCase().slice(0, -1))
  return best?.candidate ?? known.find(begins) ?? known.find(nearlyBegins)
}
