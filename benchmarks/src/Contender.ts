/**
 * One way of doing a workload, in a separate process.
 *
 * A file in `contenders/` is a library; its exports are the workloads that it can do. The runner imports the file in a fresh
 * process for every round: no contender pays for what another has left behind.
 */
import type { Meter } from "./Meter.ts"

/** The input of a workload; it crosses a process boundary as JSON. */
export type Job = Readonly<Record<string, string | number | boolean>>

/** Connects, works until `meter.done`, and leaves nothing open. */
export type Workload<J extends object = Job> = (job: J, meter: Meter) => Promise<void>

/** A contender in a table. */
export interface Entry {
  /** Its name in the table; unique in its case. */
  readonly name: string
  /** The file in `contenders/`, without its ending. */
  readonly contender: string
  /** The export of that file. */
  readonly workload: string
  /** The input of this entry, in addition to that of the case. */
  readonly job?: Job | undefined
}

/** A table's contenders, the baseline first. */
export type Entries = readonly [Entry, ...Array<Entry>]

/** Entries from the files of one folder. The default name is the library's. */
export const entries =
  (folder: string) =>
  (workload: string, library: string, name = library, job: Job = {}): Entry => ({
    name,
    contender: `${folder}/${library}`,
    workload,
    job
  })
