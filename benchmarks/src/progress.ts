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
  const cases = plan.flatMap(({ cases, rounds, suite }) =>
    cases.map((one) => ({ suite: suite.name, count: Interleave.contenders(one).length * rounds }))
  )
  const began = performance.now()
  /** Runs that have begun, in all and of the present case, and the number of the present case. */
  let begun = 0
  let ofCase = 0
  let place = 0
  /** The remaining runs, if every control is good. */
  const toCome = (): number =>
    cases.slice(place).reduce((sum, { count }) => sum + count, 0) - Math.min(ofCase, cases[place]?.count ?? 0)
  return {
    /** Another run begins. */
    next: (what: string): void => {
      const left = ((performance.now() - began) / Math.max(1, begun)) * toCome()
      const estimate = begun < 3 ? "" : `, about ${Math.ceil(left / 60_000)} min left`
      begun++
      ofCase++
      say(`[${begun}/${begun + toCome()}${estimate}] ${cases[place]!.suite}: ${what}`)
    },
    /** A case is done, perhaps after more rounds than its suite's default. */
    settled: (): void => {
      place++
      ofCase = 0
    }
  }
}
