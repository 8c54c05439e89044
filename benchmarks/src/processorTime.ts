/** The CPU time of other processes, as Linux counts it: a server's, in addition to the client's. */
import { readFileSync } from "node:fs"

/** Linux counts in hundredths of a second on every machine: `sysconf(_SC_CLK_TCK)`. */
const tick = 10

/** The process and those that it has started: PostgreSQL has one for each connection. */
export const family = (pid: number): ReadonlyArray<number> => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean)
  return [pid, ...children.map(Number)]
}

/** User and system time of a process and of its children that have ended; none if it has ended itself. */
const ticksOf = (pid: number): number => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
    // The command's name may contain anything. The fields begin after the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
    return fields.slice(11, 15).reduce((sum, each) => sum + Number(each), 0)
  } catch {
    return 0
  }
}

/**
 * User and system time of these processes and of their children so far, with all their threads, in milliseconds; `undefined`
 * without `/proc`.
 */
export const of = (pids: ReadonlyArray<number>): number | undefined => {
  if (pids.length === 0) return undefined
  try {
    return pids.flatMap(family).reduce((sum, pid) => sum + ticksOf(pid) * tick, 0)
  } catch {
    return undefined
  }
}
