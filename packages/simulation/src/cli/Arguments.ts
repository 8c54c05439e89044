/** The arguments of `npm run simulate`, and their errors. */
import { parseArgs } from "node:util"
import { type Kind, kinds } from "../Scenario.ts"

/** An error that the caller can fix: it is printed in one line. */
export class Misuse extends Error {}

/** The requested action. `whole`: nothing is shrunk. */
export type Arguments =
  | { readonly _tag: "Help" }
  | { readonly _tag: "Seed"; readonly seed: number; readonly kinds: ReadonlyArray<Kind>; readonly whole: boolean }
  | { readonly _tag: "Scenario"; readonly file: string; readonly whole: boolean }
  | {
      readonly _tag: "Campaign"
      readonly from: number
      readonly seeds: number
      readonly kinds: ReadonlyArray<Kind>
      readonly workers: number | undefined
      readonly results: string | undefined
      readonly report: string | undefined
    }

const options = {
  seeds: { type: "string" },
  from: { type: "string" },
  kind: { type: "string", multiple: true },
  workers: { type: "string" },
  results: { type: "string" },
  report: { type: "string" },
  seed: { type: "string" },
  scenario: { type: "string" },
  whole: { type: "boolean" },
  help: { type: "boolean", short: "h" }
} as const

const parse = (args: Array<string>) => {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    throw new Misuse(error instanceof Error ? error.message : String(error))
  }
}

type Values = ReturnType<typeof parse>

const whole = (name: string, text: string, least: number): number => {
  const value = /^\d[\d,_]*$/.test(text) ? Number(text.replaceAll(/[,_]/g, "")) : Number.NaN
  if (Number.isSafeInteger(value) && value >= least) return value
  throw new Misuse(`--${name} must be a whole number >= ${least}, got ${JSON.stringify(text)}`)
}

const kindsOf = ({ kind: named }: Values): ReadonlyArray<Kind> => {
  if (named === undefined) return kinds
  const found = named.map((name) => {
    const kind = kinds.find((each) => each === name)
    if (kind === undefined) throw new Misuse(`--kind must be one of ${kinds.join(", ")}, got ${JSON.stringify(name)}`)
    return kind
  })
  if (new Set(found).size < found.length) throw new Misuse(`--kind must name each kind once, got ${found.join(", ")}`)
  return found
}

/** A campaign never shrinks, so `whole` is allowed and changes nothing. */
const alone: Partial<Record<keyof Values, ReadonlyArray<keyof Values>>> = {
  seed: ["kind", "whole"],
  scenario: ["whole"]
}

const exclude = (values: Values): void => {
  const given = Object.keys(values) as Array<keyof Values> // parseArgs leaves out missing arguments
  for (const one of given) {
    const other = alone[one] && given.find((name) => name !== one && !alone[one]!.includes(name))
    if (other !== undefined) throw new Misuse(`--${one} and --${other} exclude each other`)
  }
}

/** Reads the arguments. */
export const read = (args: Array<string>): Arguments => {
  const values = parse(args)
  if (values.help === true) return { _tag: "Help" }
  exclude(values)
  const isWhole = values.whole === true
  if (values.scenario !== undefined) return { _tag: "Scenario", file: values.scenario, whole: isWhole }
  const named = kindsOf(values)
  if (values.seed !== undefined)
    return { _tag: "Seed", seed: whole("seed", values.seed, 0), kinds: named, whole: isWhole }
  const { from = "1", report, results, seeds = "20000", workers } = values
  const range = { from: whole("from", from, 0), seeds: whole("seeds", seeds, 1) }
  if (!Number.isSafeInteger(range.from + range.seeds))
    throw new Misuse(`--from and --seeds must end at a safe integer, got ${from} and ${seeds}`)
  if (report !== undefined && report === results) throw new Misuse(`--report and --results must be two files`)
  return {
    _tag: "Campaign",
    ...range,
    kinds: named,
    workers: workers === undefined ? undefined : whole("workers", workers, 1),
    results,
    report
  }
}
