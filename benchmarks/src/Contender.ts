/**
 * One way of doing a workload, in a process of its own.
 *
 * A file in `contenders/` is a library; its exports are the workloads that it can do. The runner imports the file in a
 * fresh process for every round, so that nobody pays for what another has left behind.
 */
import type { Meter } from "./Meter.ts"

/** What a workload is told; it crosses a process boundary as JSON. */
export type Job = Readonly<Record<string, string | number | boolean>>

/** Connects, works until `meter.done`, and leaves nothing open. */
export type Workload<J extends object = Job> = (job: J, meter: Meter) => Promise<void>

/** A contender in a table. */
export interface Entry {
  /** As the table names it; unique in its case. */
  readonly name: string
  /** The file in `contenders/`, without its ending. */
  readonly contender: string
  /** The export of that file. */
  readonly workload: string
  /** What this entry is told besides what all of the case are told. */
  readonly job?: Job | undefined
}

/** A table's contenders, the baseline first. */
export type Entries = readonly [Entry, ...Array<Entry>]

/** Entries from the files of one folder. The name is the library's unless it says more. */
export const entries =
  (folder: string) =>
  (workload: string, library: string, name = library, job: Job = {}): Entry => ({
    name,
    contender: `${folder}/${library}`,
    workload,
    job
  })
