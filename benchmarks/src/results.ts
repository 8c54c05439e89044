/** What a run has found out, as it is printed, kept as JSON and drawn. */
import type { Measured } from "./interleave.ts"
import type { Case, Suite } from "./Suite.ts"
import { isDisturbed, ratio, spread, type Spread } from "./statistics.ts"

/** One contender's figures over all rounds; a ratio compares with the baseline of the same run. */
export interface Line {
  readonly name: string
  readonly rounds: number
  /** Client's CPU per message. */
  readonly cpuMicroseconds: Spread
  readonly cpuRatio: Spread
  readonly messagesPerSecond: Spread
  readonly speedRatio: Spread
  readonly heapPeakMegabytes: number
  /** Medians of what the workload has found out besides. */
  readonly figures: Readonly<Record<string, number>>
}

export interface CaseResult {
  readonly suite: string
  readonly case: string
  readonly messages: number
  readonly lines: ReadonlyArray<Line>
  /** The baseline measured against itself, in CPU. */
  readonly control: Spread
  /** True when the control is off: what is measured is not the contenders. */
  readonly isDisturbed: boolean
  /** Contenders that could not do it, and why. */
  readonly failed: ReadonlyArray<{ readonly name: string; readonly error: string }>
  /** Contenders with a limit whose ratio of CPU has reached it, or that could not do it. */
  readonly beyond: ReadonlyArray<string>
}

export interface Result {
  readonly command: string
  readonly at: string
  readonly environment: Readonly<Record<string, string>>
  readonly cases: ReadonlyArray<CaseResult>
}

const cpu = ({ readings }: Measured) => readings.map((r) => (r.cpuMilliseconds * 1000) / r.messages)
const speed = ({ readings }: Measured) => readings.map((r) => r.messages / (r.milliseconds / 1000))

const lineOf = (measured: Measured, baseline: Measured): Line => ({
  name: measured.entry.name,
  rounds: measured.readings.length,
  cpuMicroseconds: spread(cpu(measured)),
  cpuRatio: ratio(cpu(measured), cpu(baseline)),
  messagesPerSecond: spread(speed(measured)),
  speedRatio: ratio(speed(measured), speed(baseline)),
  heapPeakMegabytes: spread(measured.readings.map((r) => r.heapPeakMegabytes)).median,
  figures: Object.fromEntries(
    Object.keys(measured.readings[0]!.figures).map((name) => [
      name,
      spread(measured.readings.flatMap((r) => r.figures[name] ?? [])).median
    ])
  )
})

/** @throws Error when the baseline, or its control, could not do it */
export const of = (suite: Suite, one: Case, measured: ReadonlyArray<Measured>): CaseResult => {
  const baseline = measured[0]!
  const broken = measured.filter(({ error }) => error !== undefined)
  const control = measured.find(({ isControl }) => isControl) ?? baseline
  for (const { error } of [baseline, control]) if (error !== undefined) throw new Error(error)
  const lines = measured.filter(({ error }) => error === undefined).map((each) => lineOf(each, baseline))
  const against = ratio(cpu(control), cpu(baseline))
  return {
    suite: suite.name,
    case: one.name,
    messages: one.messages,
    lines,
    control: against,
    isDisturbed: isDisturbed(against),
    failed: broken.map(({ entry, error }) => ({ name: entry.name, error: error! })),
    beyond: Object.entries(suite.limits ?? {}).flatMap(([name, limit]) => {
      const line = lines.find((each) => each.name === name)
      return line !== undefined && line.cpuRatio.median < limit ? [] : [name]
    })
  }
}
