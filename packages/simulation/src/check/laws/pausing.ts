import { type Law, violation } from "../internal/law.ts"

/**
 * A process waits for its broker if that accepted no settlement for a reason that affects all of them. A refusal affects one
 * message only, and pauses nothing.
 */
export const pausing: Law = ({ processes }) =>
  [...processes.values()].flatMap(({ name, settlings, told }) => {
    const entered = told.filter(({ entry }) => entry.event === "BackoffEntered" && entry.detail === "broker")
    return entered.flatMap(({ entry, index }, nth) => {
      const since = entered[nth - 1]?.index ?? -1
      const answered = settlings.filter(({ answer }) => answer > since && answer < index)
      if (answered.some(({ fate }) => fate !== "taken" && fate !== "rejected")) return []
      const what = `${name} waits for its broker; expected a settlement that failed for a reason of the broker's own.`
      const shown = answered.filter(({ fate }) => fate === "rejected").map(({ answer }) => answer)
      return [violation("pausing", entry.at, { process: name }, what, [...shown, index])]
    })
  })
