/** Runs a case: all contenders in rotation, round after round, to spread disturbances of the machine evenly. */
import type { Task } from "./child.ts"
import type { Entry } from "./Contender.ts"
import type { Reading } from "./Meter.ts"
import type { Pinning } from "./pinning.ts"
import * as Round from "./Round.ts"
import type { Case, Venue } from "./Suite.ts"

export interface Measured {
  readonly entry: Entry
  /** Whether it repeats the baseline. */
  readonly isControl: boolean
  /** One per round; empty if it failed. */
  readonly readings: ReadonlyArray<Reading>
  readonly error: string | undefined
}

/** The same entry under another name. */
const controlOf = (entry: Entry): Entry => ({ ...entry, name: `${entry.name}, again` })

/** All entries of a case, the control last. A single one is compared with nothing. */
export const contenders = ({ entries }: Case): ReadonlyArray<Entry> =>
  entries.length === 1 ? entries : [...entries, controlOf(entries[0])]

export interface Settings {
  readonly venue: Venue | undefined
  readonly pinning: Pinning | undefined
  readonly rounds: number
  /** Rounds of a case whose control stays off: the medians of more rounds are closer to those of a quiet machine. */
  readonly most: number
  /** Whether the control is good enough, checked after `rounds` rounds and after each further one. */
  readonly isSettled: (measured: ReadonlyArray<Measured>) => boolean
  readonly say: (line: string) => void
  /** Called when a round begins, with its description. */
  readonly onRound: (what: string) => void
}

export const run = async (
  one: Case,
  { isSettled, most, onRound, pinning, rounds, say, venue }: Settings
): Promise<ReadonlyArray<Measured>> => {
  const measured = contenders(one).map((entry, index) => ({
    entry,
    isControl: index > 0 && index === one.entries.length,
    readings: [] as Array<Reading>,
    error: undefined as string | undefined
  }))
  for (let round = 1; round <= rounds || (round <= most && !isSettled(measured)); round++) {
    for (const each of measured.filter(({ error }) => error === undefined)) {
      const { entry } = each
      onRound(`${one.name}, round ${round}/${Math.max(round, rounds)}: ${entry.name}`)
      const place = await venue?.prepare(one, entry)
      const task: Task = {
        contender: entry.contender,
        workload: entry.workload,
        warmUp: one.warmUp,
        messages: one.messages,
        servers: venue?.servers ?? [],
        job: { ...one.job, messages: one.messages, warmUp: one.warmUp, ...entry.job, ...place?.job }
      }
      try {
        each.readings.push(await Round.run(task, pinning, one.deadline ?? 120_000))
      } catch (error) {
        // The others continue without it, and the result says why.
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
