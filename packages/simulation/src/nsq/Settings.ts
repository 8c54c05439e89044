/** The settings of a world's nsqd, and of the adapter's options. The laws use them too. */
import type { Scenario } from "../Scenario.ts"
import * as Draw from "../world/Draw.ts"

/** The settings of a world. */
export interface Settings {
  readonly hasTwoNsqd: boolean
  /** Whether the options name the one nsqd twice, by two of its addresses. */
  readonly hasAlias: boolean
  /** Whether processes find nsqd by nsqlookupd instead of their options. */
  readonly usesLookupd: boolean
  /** Whether retries are copies. */
  readonly isExact: boolean
  /** Whether each process publishes to all nsqd in turn. */
  readonly publishesOverAll: boolean
}

/** Draws the settings of a world. */
export const of = ({ seed }: Pick<Scenario, "seed">): Settings => {
  const { chance } = Draw.make(seed)
  const [hasTwoNsqd, usesLookupd] = [chance("daemons", 0.5), chance("nsqlookupd", 0.5)]
  return {
    hasTwoNsqd,
    hasAlias: !hasTwoNsqd && !usesLookupd && chance("alias", 0.3),
    usesLookupd,
    isExact: chance("exact", 0.3),
    publishesOverAll: chance("publish over", 0.3)
  }
}
