import { hasName, isWork, type Law, of, violation } from "../internal/law.ts"
import { isTimedOut } from "../internal/timing.ts"

/**
 * At most one handler of a process runs for one copy at a time. Handlers that are over for the core may still run: their time is
 * over, or one of their calls has settled their message.
 */
export const doubleRun: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    if (!isWork(lives, attempt)) return []
    const turns =
      attempt.prior === undefined || attempt.prior.isOver
        ? attempt.turns
        : [...attempt.prior.turns.slice(-1), ...attempt.turns]
    return turns.flatMap((turn, nth) => {
      const before = turns[nth - 1]
      if (before === undefined) return []
      const { began } = turn.run
      const hasEnded = before.run.ended !== undefined && before.run.ended.index < began.index
      if (before.run !== turn.run && (hasEnded || isTimedOut(before.run, began.entry.at))) return []
      if (before.of.settlings.some(({ index }) => index < began.index) && before.of !== turn.of) return []
      if (before.of !== turn.of && !hasName(lives, attempt.copy)) return []
      const what = `${attempt.process.name} began a handler for a copy whose handler still ran; expected one at a time.`
      return [violation("double run", began.entry.at, of(turn.of), what, [before.run.began.index, began.index])]
    })
  })
