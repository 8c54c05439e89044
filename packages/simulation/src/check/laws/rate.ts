import { type Law, violation } from "../internal/law.ts"
import { slack } from "../internal/timing.ts"

/** In any time of a program's rate limit, no more runs begin than that allows. */
export const rate: Law = ({ processes }) =>
  [...processes.values()].flatMap(({ clock, name, runs, version }) => {
    const limit = version?.rateLimit
    if (limit === undefined) return []
    return runs.flatMap(({ began }, nth) => {
      const before = runs[nth - limit.max]?.began
      if (before === undefined || clock.most(before.entry.at, began.entry.at) >= limit.per - slack) return []
      const what = `${name} began ${limit.max + 1} runs within ${Math.round(began.entry.at - before.entry.at)} ms; expected ${limit.max} at most in ${limit.per} ms.`
      return [violation("rate", began.entry.at, { process: name }, what, [before.index, began.index])]
    })
  })
