import type { Violation } from "../Violation.ts"
import { type Law, violation } from "../internal/law.ts"

/** Facts that a process makes itself; what it has sent may reach the broker later. */
const acts = new Set([
  "Began",
  "Called",
  "Ended",
  "Asked",
  "Answered",
  "Told",
  "Arrived",
  "Lapsed",
  "Credit",
  "Health",
  "Reconnected"
])

/** Nothing of a process happens after it was killed. */
export const afterDeath: Law = ({ history, processes }) => {
  const found: Array<Violation> = []
  for (const { killed, name } of processes.values()) {
    if (killed === undefined) continue
    for (let index = killed.index + 1; index < history.length; index++) {
      const entry = history[index]
      if (entry === undefined || !("process" in entry) || entry.process !== name || !acts.has(entry._tag)) continue
      const what = `${entry._tag} of ${name}, which was dead; expected nothing of it.`
      found.push(violation("after death", entry.at, { process: name }, what, [killed.index, index]))
    }
  }
  return found
}
