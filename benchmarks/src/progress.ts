/** How far a run is, and how long the rest may take. */
import type { Case } from "./Suite.ts"
import * as Interleave from "./interleave.ts"

export const make = (
  plan: ReadonlyArray<{
    readonly suite: { readonly name: string }
    readonly cases: ReadonlyArray<Case>
    readonly rounds: number
  }>,
  say: (line: string) => void
) => {
  const rounds = plan.flatMap(({ cases, rounds, suite }) =>
    cases.flatMap((one) => Array<string>(Interleave.contenders(one).length * rounds).fill(suite.name))
  )
  const began = performance.now()
  let done = 0
  return {
    /** Another round begins. */
    next: (what: string): void => {
      const left = ((performance.now() - began) / Math.max(1, done)) * (rounds.length - done)
      const estimate = done < 3 ? "" : `, about ${Math.ceil(left / 60_000)} min left`
      say(`[${done + 1}/${rounds.length}${estimate}] ${rounds[done] ?? ""}: ${what}`)
      done++
    }
  }
}
