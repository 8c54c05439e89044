import { describe, matches } from "../internal/Allowed.ts"
import { isWork, type Law, of, violation } from "../internal/law.ts"
import { allowedAt } from "../internal/outcome.ts"

/** The settlement of a delivery follows from the calls on its message and the end of its handler: section 2.2 of the design. */
export const precedence: Law = (lives) =>
  lives.attempts.flatMap((attempt) => {
    if (!isWork(lives, attempt)) return []
    const { decided, turns } = attempt
    return attempt.settlings.flatMap((settling) => {
      if (decided !== undefined && settling.index > decided.index) return []
      const allowed = allowedAt(lives, settling)
      if (allowed === undefined || allowed.some((each) => matches(settling.asked, each))) return []
      const expected = allowed.length === 0 ? "nothing yet" : [...new Set(allowed.map(describe))].join(" or ")
      const seen = turns.filter(({ run }) => run.began.index < settling.index)
      const shown = seen.flatMap(({ given, run }) => [
        run.began.index,
        ...run.calls.filter(({ call }) => call.key === undefined || call.key === given.key).map(({ index }) => index),
        run.ended?.index
      ])
      const what = `${attempt.process.name} asked for ${describe(settling.asked)}; expected ${expected}.`
      return [violation("precedence", settling.at, of(settling.of), what, [...shown, settling.index])]
    })
  })
