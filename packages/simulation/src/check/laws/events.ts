import { type Law, violation } from "../internal/law.ts"
import type { ProcessLife } from "../internal/Lives.ts"

const ends = new Set(["Succeeded", "RetryScheduled", "DeadLettered", "Dropped", "Released"])

/** Deliveries that the broker has accepted no settlement of: they may be received, and have no end. */
const openOf = ({ deliveries }: ProcessLife): number =>
  deliveries.filter(({ settlings }) => !settlings.some(({ fate }) => fate === "taken")).length

/** Events balance: received = succeeded + retried + dead-lettered + dropped + released + in progress and lost. */
export const events: Law = ({ processes }) =>
  [...processes.values()].flatMap((process) => {
    const { name, told } = process
    let received = 0
    let ended = 0
    for (const { entry, index } of told) {
      if (entry.event === "Received") received++
      else if (ends.has(entry.event)) ended++
      if (ended > received) {
        const what = `${name} reported ${ended} ends; expected at most the ${received} received.`
        return [violation("events", entry.at, { process: name }, what, [index])]
      }
    }
    const open = openOf(process)
    const last = told.at(-1)
    // A handler that kills its process may do so between an answer and its event.
    if (process.killed?.entry.because === "handler") return []
    if (last === undefined || process.version === undefined || received - ended <= open) return []
    const what = `${name} reported ${received} received and ${ended} ends; expected at most ${open} without an end.`
    return [violation("events", last.entry.at, { process: name }, what, [last.index])]
  })
