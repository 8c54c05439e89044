/** The CPU time of other processes, as Linux counts it: a server's, in addition to the client's. */
import { readFileSync } from "node:fs"

/** Linux counts in hundredths of a second on every machine: `sysconf(_SC_CLK_TCK)`. */
const tick = 10

/** User and system time of these processes so far, with all their threads, in milliseconds; `undefined` without `/proc`. */
export const of = (pids: ReadonlyArray<number>): number | undefined => {
  if (pids.length === 0) return undefined
  try {
    return pids.reduce((sum, pid) => {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
      // The command's name may contain anything. The fields begin after the last parenthesis.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
      return sum + (Number(fields[11]) + Number(fields[12])) * tick
    }, 0)
  } catch {
    return undefined
  }
}
