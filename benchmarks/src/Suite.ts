/** What is compared: cases of the same work, done by several contenders. */
import type { Entries, Entry, Job } from "./Contender.ts"

/** The same work for all of its entries. */
export interface Case {
  readonly name: string
  /** Counted messages of a round, or operations. */
  readonly messages: number
  /** Messages of the warm-up. */
  readonly warmUp: number
  readonly job: Job
  /** The others are compared with the first; if there are others, it is measured twice, as the control. */
  readonly entries: Entries
  /** Milliseconds that a round may take. Default 120,000. */
  readonly deadline?: number
}

/** Where the rounds of a suite happen, for example a running broker. */
export interface Venue {
  /** Facts about it for the result, such as the broker's version. */
  readonly facts: Readonly<Record<string, string>>
  /** The processes of its servers. */
  readonly servers: ReadonlyArray<number>
  /** Prepares one round; its result is added to the job. */
  readonly prepare: (one: Case, entry: Entry) => Promise<Place>
  readonly close: () => Promise<void>
}

export type VenueName = "rabbitmq" | "nsq" | "sqs" | "redis" | "postgres"

export interface Place {
  readonly job: Job
  readonly clear: () => Promise<void>
}

export interface Suite {
  readonly name: string
  /** One line for `--help`. */
  readonly summary: string
  /** Without a name on the command line, only these run. */
  readonly byDefault: boolean
  /** `undefined` if it needs none. */
  readonly venue: VenueName | undefined
  /** The default number of rounds. */
  readonly rounds: number
  /** `size(n)` is `n`, or less in a quick run. */
  readonly cases: (size: (messages: number) => number) => ReadonlyArray<Case>
  /** Whether the pages have one short table of all cases, without pictures. Default: one for each case. */
  readonly inOneTable?: boolean
  /** Limits for the ratio of CPU to the baseline, by entry: at the limit, the run fails. */
  readonly limits?: Readonly<Record<string, number>>
}
