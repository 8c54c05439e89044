/** Runs a case: all contenders in turn, round after round, so that what disturbs the machine disturbs them all. */
import type { Task } from "./child.ts"
import type { Entry } from "./Contender.ts"
import type { Reading } from "./Meter.ts"
import type { Pinning } from "./pinning.ts"
import * as Round from "./Round.ts"
import type { Case, Venue } from "./Suite.ts"

export interface Measured {
  readonly entry: Entry
  /** Whether it is the baseline once more. */
  readonly isControl: boolean
  /** One per round; empty when it failed. */
  readonly readings: ReadonlyArray<Reading>
  readonly error: string | undefined
}

/** The same entry under another name. */
const controlOf = (entry: Entry): Entry => ({ ...entry, name: `${entry.name}, again` })

export const run = async (
  one: Case,
  {
    pinning,
    rounds,
    say,
    venue
  }: {
    readonly venue: Venue | undefined
    readonly pinning: Pinning | undefined
    readonly rounds: number
    readonly say: (line: string) => void
  }
): Promise<ReadonlyArray<Measured>> => {
  // A single one is compared with nothing.
  const control = one.entries.length === 1 ? undefined : controlOf(one.entries[0])
  const measured = [...one.entries, ...(control === undefined ? [] : [control])].map((entry) => ({
    entry,
    isControl: entry === control,
    readings: [] as Array<Reading>,
    error: undefined as string | undefined
  }))
  for (let round = 1; round <= rounds; round++) {
    for (const each of measured.filter(({ error }) => error === undefined)) {
      const { entry } = each
      say(`${one.name}, round ${round}/${rounds}: ${entry.name}`)
      const place = await venue?.prepare(one, entry)
      const task: Task = {
        contender: entry.contender,
        workload: entry.workload,
        warmUp: one.warmUp,
        messages: one.messages,
        job: { ...one.job, messages: one.messages, warmUp: one.warmUp, ...entry.job, ...place?.job }
      }
      try {
        each.readings.push(await Round.run(task, pinning, one.deadline ?? 120_000))
      } catch (error) {
        // The others go on without it, and the result says why.
        each.error = (error as Error).message
        each.readings.length = 0
        say(`${entry.name} is out: ${each.error}`)
      } finally {
        await place?.clear()
      }
    }
  }
  return measured
}
