import { familyOf } from "../../Scenario.ts"
import { type Law, violation } from "../internal/law.ts"
import type { Attempt, ProcessLife, Seen, Settling } from "../internal/Lives.ts"
import type { Violation } from "../Violation.ts"

/** Milliseconds for which settlements that were decided may wait to be requested. */
const waiting = 30_000

/** Floating-point error. */
const tolerance = 1e-6

/** Whether a settlement ends a message in failure, other than by an error that drops it. */
const isGivenUp = ({ asked: { reason, tag } }: Settling): boolean =>
  tag === "DeadLetter" || (tag === "Drop" && reason !== "dropped")

/** Whether it only removes a redelivery of a message that its process had settled before, and so is no success. */
const endsDuplicate = ({ index, of: { copy, process, runs } }: Settling): boolean =>
  runs.length === 0 &&
  process.settlings.some(
    ({ answer, asked: { tag }, fate, of }) =>
      of.copy === copy && fate === "taken" && answer < index && tag !== "Retry" && tag !== "Release"
  )

/** Whether a process may have given a message up by then, and has died before it could request that. */
const mayBeGivenUp = ({ copy, deliveries, settlings, turns }: Attempt, index: number): boolean =>
  settlings.length === 0 &&
  (copy.message.plan?.body === "good"
    ? turns.some(({ run }) => run.began.index < index)
    : deliveries.some(({ arrived }) => (arrived?.index ?? Infinity) < index))

/** Milliseconds after which a process repeats a settlement that has failed, at the earliest. */
const pause = 1000

/** Whether a process may have decided by then to repeat a dead letter that has failed, which waits until its lease is extended. */
const mayBeRepeated = ({ settlings }: Attempt, { entry: { at }, index }: Seen<"Draining">): boolean => {
  const last = settlings.findLast((each) => each.index < index)
  const hasFailed = last?.fate === "unknown" || last?.fate === "transient"
  return hasFailed && isGivenUp(last) && last.answer < index && at - last.at >= pause
}

/** The requests and the answers of a process, in order. */
const stepsOf = ({ settlings }: ProcessLife) =>
  settlings
    .flatMap((settling) => [
      { index: settling.index, settling, isAnswer: false },
      ...(settling.answer < 0 ? [] : [{ index: settling.answer, settling, isAnswer: true }])
    ])
    .toSorted((one, other) => one.index - other.index)

/** A process makes no more dead letters than its budget allows, and stops only when none is left. */
export const budget: Law = ({ processes, scenario }) =>
  [...processes.values()].flatMap((process): ReadonlyArray<Violation> => {
    const { draining, name, version } = process
    const limit = version?.budget
    // In a transaction, the answer to an ack does not show whether a message is done.
    if (limit === undefined || process.deliveries.some(({ enlisted }) => enlisted >= 0)) return []
    const { max, perSuccess } = limit
    /** Without the upper limit, which depends on the order of requests and answers; and with it, at its least. */
    let [most, least] = [max, max]
    const found: Array<Violation> = []
    const steps = stepsOf(process)
    const end = draining?.entry.because === "budget" ? draining : undefined
    for (const { index, isAnswer, settling } of steps) {
      const isAfter = end !== undefined && (isAnswer ? index > end.index : settling.at > end.entry.at + waiting)
      const isSuccess = settling.fate === "taken" && settling.asked.tag === "Ack" && !endsDuplicate(settling)
      const earned = isAnswer && isSuccess ? perSuccess : 0
      const refunded = isAnswer && settling.fate !== "taken" && isGivenUp(settling) ? 1 : 0
      const spent = !isAnswer && isGivenUp(settling) ? 1 : 0
      // After its stop, a process requests what it had decided before, and what a success or a lost dead letter leaves room for.
      if (isAfter) {
        most += earned + refunded
        continue
      }
      most += earned + refunded - spent
      least = Math.min(max, least + earned + refunded) - spent
      if (spent === 0 || most > -tolerance) continue
      const what = `${name} asked for a dead letter beyond its budget of ${max}; expected it to stop.`
      found.push(violation("budget", settling.at, { process: name }, what, [index]))
    }
    if (end === undefined) return found
    const hasLeases = familyOf(scenario) === "lease"
    least -= process.attempts.filter(
      (each) => mayBeGivenUp(each, end.index) || (hasLeases && mayBeRepeated(each, end))
    ).length
    if (least < 1 - tolerance) return found
    const what = `${name} stopped with a budget of ${least.toFixed(1)}; expected it to continue while that is 1 or more.`
    return [...found, violation("budget", end.entry.at, { process: name }, what, [end.index])]
  })
