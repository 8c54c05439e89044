import { type Law, violation } from "../internal/law.ts"

const acts = new Set([
  "Began",
  "Called",
  "Ended",
  "Asked",
  "Answered",
  "Told",
  "Arrived",
  "Credit",
  "Health",
  "Reconnected"
])

/** Nothing of a process happens after it was killed. */
export const afterDeath: Law = ({ history, processes }) =>
  history.flatMap((entry, index) => {
    if (!acts.has(entry._tag) || !("process" in entry) || entry.process === undefined) return []
    const killed = processes.get(entry.process)?.killed
    if (killed === undefined || killed.index > index) return []
    const what = `${entry._tag} of ${entry.process}, which was dead; expected nothing of it.`
    return [violation("after death", entry.at, { process: entry.process }, what, [killed.index, index])]
  })
