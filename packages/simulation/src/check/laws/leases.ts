import { familyOf } from "../../Scenario.ts"
import { type Law, of, violation } from "../internal/law.ts"

/**
 * In a file, at most one process has a message: a lease ends when its process returns the message, or when its time is over by the
 * clock of the process that takes it.
 */
export const leases: Law = ({ deliveries, scenario }) =>
  (familyOf(scenario) === "store" ? [...deliveries.values()] : []).flatMap((life) => {
    const { back, copy, handedOut, isEcho, process } = life
    const early = back?.entry.early ?? 0
    if (handedOut !== undefined && isEcho) {
      const what = `${process.name} has a message that another delivery has; expected it to wait for the end of the lease.`
      const before = copy.deliveries[copy.deliveries.indexOf(life) - 1]
      return [violation("leases", handedOut.entry.at, of(life), what, [before?.handedOut?.index, handedOut.index])]
    }
    if (back === undefined || early === 0) return []
    const what = `Its lease ended ${Math.ceil(early)} ms early; expected its whole time.`
    return [violation("leases", back.entry.at, of(life), what, [handedOut?.index, back.index])]
  })
