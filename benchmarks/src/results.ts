/** The findings of a run, as they are printed, kept as JSON and drawn. */
import type { Measured } from "./interleave.ts"
import type { Reading } from "./Meter.ts"
import type { Case, Suite } from "./Suite.ts"
import { isDisturbed, ratio, spread, type Spread } from "./statistics.ts"

/** A quantity to compare: one of these, or a finding of the workload, by its name. */
export type Quantity = keyof typeof quantities | { readonly figure: string }

const quantities = {
  /** Client's CPU per message, in microseconds. */
  cpu: ({ cpuMilliseconds, messages }: Reading) => (cpuMilliseconds * 1000) / messages,
  /** Messages per second. */
  rate: ({ messages, milliseconds }: Reading) => messages / (milliseconds / 1000),
  /** Servers' CPU per message, in microseconds. */
  brokerCpu: ({ brokerCpuMilliseconds, messages }: Reading) =>
    brokerCpuMilliseconds === undefined ? undefined : (brokerCpuMilliseconds * 1000) / messages,
  /** Peak of the resident memory, in megabytes. */
  resident: ({ residentPeakMegabytes }: Reading) => residentPeakMegabytes,
  heap: ({ heapPeakMegabytes }: Reading) => heapPeakMegabytes
}

/** One contender's figures over all rounds; a ratio compares with the baseline of the same run. */
export interface Line {
  readonly name: string
  /** Client's CPU per message. */
  readonly cpuMicroseconds: Spread
  readonly cpuRatio: Spread
  readonly messagesPerSecond: Spread
  readonly speedRatio: Spread
  /** `undefined` without servers on this machine. */
  readonly brokerCpuRatio: Spread | undefined
  readonly heapPeakMegabytes: number
  readonly residentPeakMegabytes: number
  /** Medians of the workload's other findings. */
  readonly figures: Readonly<Record<string, number>>
  /** One per round. */
  readonly readings: ReadonlyArray<Reading>
}

export interface CaseResult {
  readonly suite: string
  readonly case: string
  readonly messages: number
  readonly lines: ReadonlyArray<Line>
  /** The name of the line that repeats the baseline; `undefined` for a case of one contender. */
  readonly again: string | undefined
  /** The baseline measured against itself, in CPU. */
  readonly control: Spread
  /** Whether the control is off: then the figures are not those of the contenders. */
  readonly isDisturbed: boolean
  /** Contenders that failed, and why, in a line: the others have stacks with paths of the machine. */
  readonly failed: ReadonlyArray<{ readonly name: string; readonly error: string }>
  /** Contenders with a limit whose ratio of CPU has reached it, or that failed. */
  readonly beyond: ReadonlyArray<string>
}

export interface Result {
  readonly command: string
  readonly at: string
  readonly environment: Readonly<Record<string, string>>
  readonly cases: ReadonlyArray<CaseResult>
}

/** One value per round; none if the rounds have not measured it. */
export const valuesOf = (readings: ReadonlyArray<Reading>, quantity: Quantity): ReadonlyArray<number> =>
  readings.flatMap(
    (reading) => (typeof quantity === "string" ? quantities[quantity](reading) : reading.figures[quantity.figure]) ?? []
  )

const lineOf = ({ entry, readings }: Measured, baseline: Measured): Line => {
  const values = (quantity: Quantity) => spread(valuesOf(readings, quantity))
  const against = (quantity: Quantity) => ratio(valuesOf(readings, quantity), valuesOf(baseline.readings, quantity))
  const hasBroker = valuesOf(readings, "brokerCpu").length > 0
  return {
    name: entry.name,
    cpuMicroseconds: values("cpu"),
    cpuRatio: against("cpu"),
    messagesPerSecond: values("rate"),
    speedRatio: against("rate"),
    brokerCpuRatio: hasBroker ? against("brokerCpu") : undefined,
    heapPeakMegabytes: values("heap").median,
    residentPeakMegabytes: values("resident").median,
    figures: Object.fromEntries(Object.keys(readings[0]!.figures).map((figure) => [figure, values({ figure }).median])),
    readings
  }
}

/** @throws Error when the baseline, or its control, failed */
export const of = (suite: Suite, one: Case, measured: ReadonlyArray<Measured>): CaseResult => {
  const baseline = measured[0]!
  const broken = measured.filter(({ error }) => error !== undefined)
  const again = measured.find(({ isControl }) => isControl)
  for (const each of [baseline, again]) if (each?.error !== undefined) throw new Error(each.error)
  const lines = measured.filter(({ error }) => error === undefined).map((each) => lineOf(each, baseline))
  const control = lineOf(again ?? baseline, baseline).cpuRatio
  return {
    suite: suite.name,
    case: one.name,
    messages: one.messages,
    lines,
    again: again?.entry.name,
    control,
    isDisturbed: isDisturbed(control),
    failed: broken.map(({ entry, error }) => ({ name: entry.name, error: error!.split("\n")[0]! })),
    beyond: Object.entries(suite.limits ?? {}).flatMap(([name, limit]) => {
      const line = lines.find((each) => each.name === name)
      return line !== undefined && line.cpuRatio.median < limit ? [] : [name]
    })
  }
}
