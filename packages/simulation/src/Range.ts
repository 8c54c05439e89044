/** Ranges: the seeds and the kinds of brokers that a caller requests. */
import { OptionKind, OptionNames } from "@requeue/core/port"
import { type Kind, kinds } from "./Scenario.ts"

/** The seeds and the kinds. */
export interface Range {
  readonly from: number
  readonly seeds: number
  readonly kinds: ReadonlyArray<Kind>
}

/** Returns the error of a range that has no end, no seed, or no kind; `undefined` if it is valid. */
export const refusal = (call: string, { from, kinds: named, seeds }: Range): RangeError | undefined => {
  const one = OptionKind.oneOf(kinds)
  const wrong = [
    OptionNames.argument(call, "from", from, OptionKind.whole(0)),
    OptionNames.argument(call, "seeds", seeds, OptionKind.whole(1)),
    OptionNames.argument(call, "kinds", named, OptionKind.list),
    ...(Array.isArray(named)
      ? named.map((kind, index) => OptionNames.argument(call, `kinds[${index}]`, kind, one))
      : [])
  ].find((each) => each !== undefined)
  if (wrong !== undefined) return wrong
  if (named.length === 0) return OptionNames.error(call, undefined, "kinds must name at least one kind, got none")
  if (new Set(named).size < named.length)
    return OptionNames.error(call, undefined, `kinds must name each kind once, got ${named.join(", ")}`)
  if (!Number.isSafeInteger(from + seeds))
    return OptionNames.error(call, undefined, `from + seeds must be a safe integer, got ${from} + ${seeds}`)
  return undefined
}
