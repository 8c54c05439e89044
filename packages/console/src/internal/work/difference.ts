/** The difference of two texts, line by line. */

/** A line of both texts, or of one. */
export interface Line {
  readonly kind: "both" | "old" | "new"
  readonly text: string
}

/** The most lines that are compared. In larger parts, all lines count as changed. */
const largest = 500

/** Lengths of the longest common subsequences of the rest. */
const lengths = (old: ReadonlyArray<string>, now: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<number>> => {
  const table = Array.from({ length: old.length + 1 }, () => Array.from({ length: now.length + 1 }, () => 0))
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      table[i]![j] = old[i] === now[j] ? table[i + 1]![j + 1]! + 1 : Math.max(table[i + 1]![j]!, table[i]![j + 1]!)
    }
  }
  return table
}

const compared = (old: ReadonlyArray<string>, now: ReadonlyArray<string>): ReadonlyArray<Line> => {
  const isLarge = old.length > largest || now.length > largest
  const table = isLarge ? undefined : lengths(old, now)
  const lines: Array<Line> = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    if (table !== undefined && i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ kind: "both", text: old[i]! })
      i++
      j++
    } else if (i < old.length && (table === undefined || j >= now.length || table[i + 1]![j]! >= table[i]![j + 1]!)) {
      lines.push({ kind: "old", text: old[i++]! })
    } else {
      lines.push({ kind: "new", text: now[j++]! })
    }
  }
  return lines
}

/** The lines of context around a change. */
const context = 3

/** Returns the lines that differ, with context; `undefined` stands for equal lines that are left out. */
export const of = (old: string, now: string): ReadonlyArray<Line | undefined> => {
  const [one, other] = [old.split("\n"), now.split("\n")]
  const shortest = Math.min(one.length, other.length)
  let [begin, end] = [0, 0]
  while (begin < shortest && one[begin] === other[begin]) begin++
  while (end < shortest - begin && one.at(-1 - end) === other.at(-1 - end)) end++
  const both = (lines: ReadonlyArray<string>) => lines.map((text): Line => ({ kind: "both", text }))
  const all = [
    ...both(one.slice(0, begin)),
    ...compared(one.slice(begin, one.length - end), other.slice(begin, other.length - end)),
    ...both(one.slice(one.length - end))
  ]
  const isNear = all.map((_, index) =>
    all.slice(Math.max(0, index - context), index + context + 1).some(({ kind }) => kind !== "both")
  )
  return all.flatMap((line, index) => (isNear[index] ? [line] : (isNear[index - 1] ?? index === 0) ? [undefined] : []))
}
