/** Shapes of scenarios that several twists share. */
import type { Behaviour, Process, Rates, Scenario, Sending, Version } from "../Scenario.ts"

/** No faults. */
export const calm: Rates = { cut: 0, lostAnswer: 0, lostRequest: 0, late: 0, twice: 0, busy: 0, echo: 0 }

/** Messages that one producer sends at one moment. */
export const burst = (count: number, at: number, run: Partial<Behaviour>, runs = 1): ReadonlyArray<Sending> =>
  Array.from({ length: count }, (_, index) => ({
    key: index + 1,
    at,
    by: "ours",
    id: `m${index + 1}`,
    delay: 0,
    body: "good",
    runs: Array.from({ length: runs }, () => ({ takes: 0, ...run }))
  }))

/** Only the first process, which lives on. */
export const alone = ({ processes }: Scenario, lives: Process["lives"] = []): ReadonlyArray<Process> =>
  processes.slice(0, 1).map((process) => ({ ...process, startsAt: 0, lives, freezes: [] }))

/** All versions with the same changes. */
export const each = ({ versions }: Scenario, changes: Partial<Version>): ReadonlyArray<Version> =>
  versions.map((version) => ({ ...version, ...changes }))
