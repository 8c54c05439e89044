import { type Law, violation } from "../internal/law.ts"
import type { DeliveryLife, ProcessLife, Seen } from "../internal/Lives.ts"
import { isTimedOut } from "../internal/timing.ts"

/** Messages that a handler has at a moment; of these, those whose delivery is lost. */
const atWork = ({ deliveries }: ProcessLife, { entry, index }: Seen<"Credit">) => {
  const begun = deliveries.filter(
    ({ runs, settlings }) =>
      runs.some(
        (run) =>
          run.began.index < index &&
          !(run.ended !== undefined && run.ended.index < index) &&
          !isTimedOut(run, entry.at)
      ) && !settlings.some((each) => each.index < index)
  )
  const isLost = ({ back, disconnected }: DeliveryLife): boolean =>
    (disconnected >= 0 && disconnected < index) || (back !== undefined && back.index < index)
  const lost = begun.filter(isLost).length
  return { lost, begun: begun.length - lost }
}

/** A credit that lets anything in lets in a message beside those that handlers are at work with. */
export const room: Law = ({ processes }) =>
  [...processes.values()].flatMap((process) => {
    const { credits, name, version } = process
    if (version === undefined) return []
    const full = version.concurrency * (version.batch?.size ?? 1) + version.prefetch
    return credits.flatMap((credit) => {
      const { entry, index } = credit
      if (entry.limit === 0 || entry.limit >= full) return []
      const { begun, lost } = atWork(process, credit)
      if (entry.limit > begun || full - lost <= begun) return []
      const what = `${name} told a credit of ${entry.limit}, and handlers are at work with ${begun}; expected room for another.`
      return [violation("room", entry.at, { process: name }, what, [index])]
    })
  })
