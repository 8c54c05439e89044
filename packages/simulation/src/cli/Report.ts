/** Reports of campaigns: everything needed to trust one, and to run a failure again. */
import type * as Campaign from "../Campaign.ts"
import type * as Chunk from "../Chunk.ts"
import * as Coverage from "../Coverage.ts"
import type * as Range from "../Range.ts"
import * as Scenario from "../Scenario.ts"

/** A campaign's report as written to a file. */
export interface Report {
  /** The command that ran it. */
  readonly command: string
  /** The version of Node. */
  readonly node: string
  /** The fingerprint of the code. */
  readonly code: string
  readonly from: number
  readonly seeds: number
  readonly kinds: ReadonlyArray<Scenario.Kind>
  readonly perKind: Readonly<Record<string, number>>
  readonly facts: number
  readonly cpuSeconds: number
  readonly seedsPerCpuSecond: number
  /** Of this run, which may have continued an earlier one. */
  readonly wallSeconds: number
  readonly failures: ReadonlyArray<Chunk.Failure & { readonly replay: string }>
  /** The part of the seeds in which each situation was seen. */
  readonly seen: Readonly<Record<string, string>>
  /** The situations that were seen too rarely; a sentence if that is unknown. */
  readonly missing: ReadonlyArray<string> | string
}

/** The command that runs a seed of these kinds again. */
export const replayOf = (seed: number, kinds: ReadonlyArray<Scenario.Kind>): string => {
  const isAll = kinds.join(" ") === Scenario.kinds.join(" ")
  return `npm run simulate -- --seed ${seed}${isAll ? "" : kinds.map((kind) => ` --kind ${kind}`).join("")}`
}

/** The minimum part of all seeds in which every situation must be seen, and the minimum number of seeds that proves anything. */
const leastSeen = 0.0025
const seedsForCoverage = 10_000

const percent = (part: number): string => `${(part * 100).toFixed(2)} %`

const missingOf = (sum: Campaign.Sum, kinds: ReadonlyArray<Scenario.Kind>): Report["missing"] => {
  if (Scenario.kinds.some((kind) => !kinds.includes(kind)))
    return "not checked: only seeds of all kinds meet every situation"
  if (sum.seeds < seedsForCoverage) return `not checked: it needs ${seedsForCoverage} seeds, there are ${sum.seeds}`
  return Coverage.missing(sum.seen, sum.seeds, leastSeen).map(([name]) => name)
}

/** The report of a campaign. */
export const make = (
  sum: Campaign.Sum,
  {
    args,
    from,
    kinds,
    wall
  }: Omit<Range.Range, "seeds"> & { readonly args: ReadonlyArray<string>; readonly wall: number }
): Report => ({
  command: [
    "npm run simulate --",
    ...args.map((each) => (/^[\w./,=-]+$/.test(each) ? each : JSON.stringify(each)))
  ].join(" "),
  node: process.version,
  code: sum.code,
  from,
  seeds: sum.seeds,
  kinds,
  perKind: sum.perKind,
  facts: sum.facts,
  cpuSeconds: Math.round(sum.cpu / 1000),
  seedsPerCpuSecond: Math.round(sum.seeds / (sum.cpu / 1000)),
  wallSeconds: Math.round(wall / 1000),
  failures: sum.failures.map((failure) => ({ ...failure, replay: replayOf(failure.seed, kinds) })),
  seen: Object.fromEntries(Object.entries(sum.seen).map(([name, count]) => [name, percent(count / sum.seeds)])),
  missing: missingOf(sum, kinds)
})

/** Whether a report proves less than it should. */
export const isBad = ({ failures, missing }: Report): boolean =>
  failures.length > 0 || (typeof missing !== "string" && missing.length > 0)

/** A report in a few lines, with its first failures. */
export const print = ({ failures, missing, seeds, seedsPerCpuSecond, seen, wallSeconds }: Report): string =>
  [
    ...failures
      .slice(0, 20)
      .map(({ kind, law, replay, seed, what }) => `seed ${seed} (${kind}): ${law}: ${what} Replay: ${replay}`),
    ...(typeof missing === "string"
      ? [`coverage: ${missing}`]
      : missing.map((name) => `seen too rarely, in ${seen[name]} of the seeds: ${name}`)),
    `${seeds} seeds, ${wallSeconds} s, ${seedsPerCpuSecond} in a CPU second: ${failures.length} broke a law`
  ].join("\n")
