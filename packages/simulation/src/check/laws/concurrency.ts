import { type Law, violation } from "../internal/law.ts"
import type { ProcessLife, Run } from "../internal/Lives.ts"
import { isTimedOut } from "../internal/timing.ts"

const faultOf = ({ runs, version }: ProcessLife, run: Run, open: ReadonlyArray<Run>): string | undefined => {
  if (version === undefined) return undefined
  const { batch, consumerBackoff, each = false, maxAttempts } = version
  const { given } = run.began.entry
  const size = each ? 1 : (batch?.size ?? 1)
  const concurrency = version.concurrency * (each ? (batch?.size ?? 1) : 1)
  if (given.length > size) return `with ${given.length} messages; expected at most ${size}`
  // The probe of a backoff does not wait for running handlers.
  const limit = concurrency + (consumerBackoff === undefined ? 0 : 1)
  if (open.length >= limit) return `while ${open.length} others ran; expected at most ${limit} at a time`

  const isOfSame = (each: Run, other: Run) =>
    each !== other && each.began.entry.given.every(({ key }) => other.began.entry.given.some((one) => one.key === key))
  // If it began as no suspect, the immediate next run is no suspect either, though the message was redelivered meanwhile.
  const isContinued = (each: Run) =>
    runs.some((other) => other.began.index < each.began.index && isOfSame(each, other) && !exceeds(other))
  const exceeds = (each: Run) => each.began.entry.given.some(({ attempts }) => attempts > maxAttempts)
  const isSuspect = (each: Run) => exceeds(each) && !isContinued(each)
  // A redelivery may be inserted between two runs of the same messages.
  if (runs.some((other) => isOfSame(run, other))) return undefined
  if (isSuspect(run) && given.length > 1) return `for a suspect among ${given.length} messages; expected it alone`
  if (isSuspect(run) && open.length > 0) return "for a suspect while others ran; expected it alone"
  return open.some(isSuspect) ? "while a suspect ran; expected none until it has ended" : undefined
}

/** At most as many handlers run as the program allows, and a suspect runs alone. Handlers whose time is over do not count. */
export const concurrency: Law = ({ processes }) =>
  [...processes.values()].flatMap((process) => {
    let open: ReadonlyArray<Run> = []
    return process.runs.flatMap((run) => {
      const { entry, index } = run.began
      open = open.filter(
        (each) => !(each.ended !== undefined && each.ended.index < index) && !isTimedOut(each, entry.at)
      )
      const fault = faultOf(process, run, open)
      const shown = open.map(({ began }) => began.index)
      open = [...open, run]
      if (fault === undefined) return []
      const [first] = entry.given
      const about = {
        process: process.name,
        ...(first === undefined ? {} : { key: first.key, delivery: first.delivery })
      }
      return [violation("concurrency", entry.at, about, `${process.name} began a handler ${fault}.`, [...shown, index])]
    })
  })
