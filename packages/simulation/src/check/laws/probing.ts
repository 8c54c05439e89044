import { type Law, violation } from "../internal/law.ts"
import type { ProcessLife, Run, Seen } from "../internal/Lives.ts"
import { isTimedOut, slack } from "../internal/timing.ts"

type Told = Seen<"Told">

/** All reports of a process about its consumer backoff, in order. */
const changesOf = ({ told }: ProcessLife): ReadonlyArray<Told> =>
  told.filter(
    ({ entry: { detail, event } }) => detail === "handler" && (event === "BackoffEntered" || event === "BackoffLeft")
  )

/** Runs that begin something new, and do not repeat one whose message is still undecided. */
const newRuns = ({ attempts, runs }: ProcessLife): ReadonlyArray<Run> => {
  const repeated = new Set<Run>()
  for (const { prior, turns } of attempts) {
    const isContinued = prior !== undefined && prior.turns.length > 0 && prior.settlings.length === 0
    for (const { run } of isContinued ? turns : turns.slice(1)) repeated.add(run)
  }
  return runs.filter((run) => !repeated.has(run))
}

/** Whether something of a run had been decided by then. */
const isDecided = (run: Run, index: number, at: number): boolean =>
  (run.ended !== undefined && run.ended.index < index) ||
  run.calls.some((call) => call.index < index) ||
  isTimedOut(run, at)

/**
 * A consumer backoff: no handler begins in its pause, then one message is tried, and only its result ends the backoff. Its level
 * grows by one at a time.
 */
export const probing: Law = ({ history, processes }) =>
  [...processes.values()].flatMap((process) => {
    const { clock, name, runs, version } = process
    const policy = version?.consumerBackoff
    if (policy === undefined) return []
    const changes = changesOf(process)
    const begun = changes.length === 0 ? [] : newRuns(process)
    const reconnects = history.flatMap((each, index) =>
      each._tag === "Reconnected" && each.process === name ? [index] : []
    )
    const about = { process: name }
    return changes.flatMap((change, nth) => {
      const { entry, index } = change
      const until = changes[nth + 1]?.index ?? process.draining?.index ?? history.length
      const before = changes[nth - 1]
      if (entry.event === "BackoffLeft") {
        const since = Math.max(before?.index ?? -1, ...reconnects.filter((each) => each < index))
        const tried = runs.filter(({ began }) => began.index > since && began.index < index)
        if (tried.some((run) => isDecided(run, index, entry.at))) return []
        const what = `${name} left its backoff before the message that it tried had ended; expected it to wait for that.`
        return [
          violation("probing", entry.at, about, what, [before?.index, ...tried.map(({ began }) => began.index), index])
        ]
      }
      const level = entry.level ?? 0
      const most = (changes.slice(0, nth).findLast((each) => each.entry.level !== undefined)?.entry.level ?? 0) + 1
      if (level > most) {
        const what = `${name} entered level ${level} of its backoff; expected ${most} at most.`
        return [violation("probing", entry.at, about, what, [before?.index, index])]
      }
      const pause = Math.min(policy.multiplier * 2 ** level, policy.max)
      // The other messages of a batch that runs one by one have begun with the one that failed.
      const since = version?.each === true ? entry.at : -Infinity
      const tried = begun.filter(({ began }) => began.index > index && began.index < until && began.entry.at > since)
      const early = tried.find(({ began }) => clock.most(entry.at, began.entry.at) < pause - slack)
      if (early !== undefined) {
        const what = `${name} began a handler at ${early.began.entry.at} ms; expected none for ${pause} ms after ${entry.at} ms.`
        return [violation("probing", early.began.entry.at, about, what, [index, early.began.index])]
      }
      const allowed = 1 + reconnects.filter((each) => each > index && each < until).length
      const messages = tried.reduce((sum, { began }) => sum + began.entry.given.length, 0)
      if (messages <= allowed) return []
      const what = `${name} began ${messages} messages after a pause; expected ${allowed}, until that has shown how it is.`
      const shown = tried.map(({ began }) => began.index)
      return [violation("probing", tried.at(-1)?.began.entry.at ?? entry.at, about, what, [index, ...shown])]
    })
  })
