import { familyOf } from "../../Scenario.ts"
import { hasName, isWork, type Law, of, violation } from "../internal/law.ts"
import type { Attempt, Bound, Lives, ProcessLife, Settling, Turn } from "../internal/Lives.ts"
import { decidedAt, slack } from "../internal/timing.ts"
import type { Violation } from "../Violation.ts"

/**
 * Milliseconds by which a handler may be early because clocks differ: the running process's clock is ahead, or the clock that
 * wrote the time is behind. If the broker shows its own time, a publisher that is ahead is corrected.
 */
const tolerance = (
  { processes, scenario }: Lives,
  { measured = [], process, since }: Bound,
  runs: ProcessLife,
  at: number
): number => {
  // With this topology of RabbitMQ, each consumer decides for the others by its own clock.
  const deciding = scenario.rabbitmq?.topology === "waitLoop" ? [...processes.values()] : [runs, ...measured]
  const ahead = Math.max(...deciding.map(({ clock }) => clock.mostAhead(since, at)))
  const rewriting = familyOf(scenario) === "lossy" ? measured : []
  const written = Math.min(
    process === undefined ? 0 : process.clock.leastAhead(since, at),
    ...rewriting.map(({ clock }) => clock.leastAhead(since, at))
  )
  return Math.max(0, familyOf(scenario) === "push" ? ahead - written : Math.max(0, ahead) - Math.min(0, written))
}

/** Whether its process takes a transaction for committed that has acked the message. */
const seemsCommitted = ({ fate, of: { enlisted, isRefused } }: Settling): boolean =>
  fate === "lost" && enlisted >= 0 && !isRefused

/** The retry that a process has decided on before it receives the copy again, if it recognises that. */
const decidedOf = (lives: Lives, { copy, prior, process }: Attempt): Bound | undefined => {
  const decided = prior?.decided
  if (decided?.asked.tag !== "Retry" || !hasName(lives, copy)) return undefined
  // What the broker has accepted, perhaps on a repeated request, is forgotten.
  if (prior?.settlings.some((each) => each.fate === "taken" || seemsCommitted(each)) === true) return undefined
  const since = decidedAt(decided)
  return { at: since + decided.asked.delay, since, process, index: decided.index }
}

/** Whether a run began before the time of its copy, as its clocks have it. */
const isBefore = (lives: Lives, { run: { began, process } }: Turn, bound: Bound): boolean => {
  const { at } = began.entry
  return at + tolerance(lives, bound, process, at) < bound.at - slack
}

/** Whether a run began before the retry that its process had decided on. */
const isBeforeRetry = ({ run: { began, process } }: Turn, { at, since }: Bound): boolean => {
  // A broker's clock may have waited for it: a process with a slow clock cannot see that.
  const counted = Math.max(began.entry.at - since, process.clock.most(since, began.entry.at))
  return since + counted < at - slack
}

/** Whether its delay is longer than its daemon can wait, while the copy that would wait longer is refused. */
const isCapped = ({ scenario }: Lives, { copy }: Attempt): boolean =>
  familyOf(scenario) === "lossy" && scenario.refusals.some(({ key }) => key === copy.message.key)

/** A copy in a file that is due before its delay is over, if the clock that wrote it is steady. The core would wait. */
const storedEarly = ({ copies, scenario, work }: Lives): ReadonlyArray<Violation> =>
  (familyOf(scenario) === "store" ? [...copies.values()] : []).flatMap(({ message, parent, stored }) => {
    if (stored === undefined || !work.has(stored.entry.queue)) return []
    const { at, due, process } = stored.entry
    const settling = parent?.settlings.findLast(({ index }) => index < stored.index)
    const sending = parent === undefined && process === "sender" ? message.sending?.entry.earliest : undefined
    const { jumps = [], speed = 1 } = parent?.process.plan?.clock ?? {}
    const expected = settling === undefined ? sending : settling.at + settling.asked.delay
    const isSteady = jumps.length === 0 && speed === 1
    if (expected === undefined || !isSteady || due >= expected - 2 * slack) return []
    const what = `A copy is due at ${Math.round(due)} ms; expected ${Math.round(expected)} ms, as was asked.`
    return [violation("early", at, { key: message.key }, what, [settling?.index, stored.index])]
  })

/** The runs that begin before a bound. */
const begunEarly = (lives: Lives, brokenBy: (attempt: Attempt, turn: Turn) => Bound | undefined) =>
  lives.attempts.flatMap((attempt) => {
    if (!isWork(lives, attempt) || isCapped(lives, attempt)) return []
    return attempt.turns.flatMap((turn) => {
      const bound = brokenBy(attempt, turn)
      if (bound === undefined) return []
      const { began } = turn.run
      const what = `${attempt.process.name} began a handler at ${Math.round(began.entry.at)} ms; expected none before ${Math.round(bound.at)} ms, as its clocks have it.`
      return [violation("early", began.entry.at, of(turn.of), what, [bound.index, began.index])]
    })
  })

/** No handler begins before the time of its send or retry. */
export const early: Law = (lives) => [
  ...storedEarly(lives),
  ...begunEarly(lives, (_, turn) => {
    const { bound } = turn.of
    return bound !== undefined && isBefore(lives, turn, bound) ? bound : undefined
  })
]

/** No handler begins before the retry that its process has decided on, as far as that recognises the message. */
export const earlyAgain: Law = (lives) =>
  begunEarly(lives, (attempt, turn) => {
    const bound = decidedOf(lives, attempt)
    return bound !== undefined && isBeforeRetry(turn, bound) ? bound : undefined
  })
