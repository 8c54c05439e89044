/** A job: its letters, its numbers, and the role that may begin it. */
import type { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type * as Audit from "../../Audit.ts"
import type { Action } from "../../Authorization.ts"
import type { Place } from "../paths.ts"
import type { Connection } from "./connections.ts"
import type { Selection } from "./selection.ts"

/** The numbers of a purge that has ended. */
export interface Purged {
  /** The number of letters that the purge has removed. */
  readonly removed: number
  /** The number of letters in the queue when the purge ended; `undefined` if the broker cannot count. */
  readonly left: number | undefined
  /**
   * The number of letters that another reader held at the end; `undefined` if a reader may hold some, and the broker does
   * not count them.
   */
  readonly held: number | undefined
  /** Why the purge stopped early; `undefined` if it has finished. */
  readonly stoppedBy: DeadLetters.StoppedBy | undefined
}

/** The numbers of an export so far. */
export interface Exported {
  /** The number of written letters. */
  readonly written: number
  /** The number of written letters of which a part was hidden. */
  readonly redacted: number
  /** The number of letters that were read. */
  readonly browsed: number
  /** The number of letters in the queue; `undefined` if the broker cannot count. */
  readonly total: number | undefined
  /**
   * Why the export stopped early: an operator stopped it, or the browser stopped reading. `undefined` if it has finished.
   */
  readonly stoppedBy: "abort" | "reader" | undefined
}

/** How a job waits for the outcome of letters. */
export interface Pace {
  /** The longest wait after each stage, in milliseconds. */
  readonly wait: number
  /** Why the broker does not report the outcome, and what to do; `undefined` if it reports the outcome. */
  readonly untold: string | undefined
}

/** A redrive that may take several jobs. Each job leaves letters that came back from an earlier one. */
export interface Operation {
  readonly id: string
  /** When the first job of the operation began, in milliseconds since the epoch. */
  readonly begun: number
}

/** The sizes of the first stages, and the part of a stage that may come back, from 0 to 1. */
export type Staged = Pick<DeadLetters.StandardStages, "stages" | "stopAt">

/** A letter that the broker refused, or published and did not remove. */
export interface Failed {
  readonly id: string
  readonly isPublished: boolean
  /** The broker's error without secrets; `undefined` if the broker gave no answer. */
  readonly why: string | undefined
}

/** A job. Times are in milliseconds since the epoch. */
export interface Job {
  readonly id: string
  readonly kind: "plan" | "redrive" | "purge" | "edit" | "park" | "purge-delayed" | "export"
  readonly place: Place
  readonly selection: Selection
  /** The queue that letters go to; `undefined` if they go back to their own queues, or to none. */
  readonly to: string | undefined
  /** The queues that an operator can choose for `to`. */
  readonly targets: ReadonlyArray<string>
  readonly operator: string
  /** The operation of a redrive, or of a dry run that continues a redrive; `undefined` for other jobs. */
  readonly operation: Operation | undefined
  readonly begun: number
  /** When the job ended; `undefined` while it runs. */
  readonly ended: number | undefined
  /** The report so far; `undefined` for a purge, and before the first report. */
  readonly report: DeadLetters.RedriveReport | undefined
  /** The stages of a redrive; `undefined` for other kinds, and for a redrive of all letters at once. */
  readonly staged: Staged | undefined
  /** The failures of the report. */
  readonly failed: ReadonlyArray<Failed>
  /**
   * The number of letters in the queue when the job ended. It is `undefined` while the job runs, if the job moves no
   * letters, and if the broker cannot count.
   */
  readonly left: number | undefined
  /** How the job waits for outcomes; `undefined` if it does not wait, and before it is connected. */
  readonly pace: Pace | undefined
  /** The numbers of a purge; `undefined` for other kinds, and before a purge has ended. */
  readonly purged: Purged | undefined
  /** The outcome of an edited copy; `undefined` for other kinds, and before the outcome is known. */
  readonly edited: DeadLetters.EditReport | undefined
  /** The numbers of an export; `undefined` for other kinds. */
  readonly exported: Exported | undefined
  /** Why the job failed; `undefined` if it has not failed. */
  readonly trouble: string | undefined
  /** Whether an operator has asked the job to stop. */
  readonly isStopping: boolean
  /** The id of the redrive that followed this dry run. At most one redrive follows a dry run. */
  readonly usedBy: string | undefined
}

/** The arguments of the work of a job. */
interface Running {
  readonly id: string
  readonly signal: AbortSignal
  readonly tell: (
    progress:
      | Pick<Job, "pace">
      | Pick<Job, "report">
      | Pick<Job, "left">
      | Pick<Job, "purged">
      | Pick<Job, "edited">
      | Pick<Job, "exported">
  ) => void
  /** Writes an audit line for each letter before it leaves. */
  readonly audit: (goal: Audit.Goal) => DeadLetters.Audit
}

/** The work of a job. It reports its progress, and ends soon after its signal is aborted. */
export interface Work {
  readonly kind: Job["kind"]
  readonly connection: Connection
  readonly queue: string
  readonly selection: Selection
  /** The queue that letters go to. Default: their own queues, or none. */
  readonly to?: string | undefined
  /** The id of the dry run that the job follows. */
  readonly plan?: string | undefined
  /** The operation that the job continues. Default: none, and a redrive begins a new operation. */
  readonly operation?: Operation | undefined
  /** The stages of a redrive. Default: none. */
  readonly staged?: Staged | undefined
  /** Whether the job waits for outcomes, so browses may run meanwhile. Default: no. */
  readonly isLong?: boolean | undefined
  /** The options of the job, for the audit. */
  readonly options: Readonly<Record<string, unknown>>
  readonly run: (job: Running) => ReturnType<Connection["use"]>
  /** Is called after the last audit line, even if the audit has failed. */
  readonly onEnd?: ((job: Job) => void) | undefined
}

/** Reports how many letters are left in the queue. */
export const told = <E>(count: Effect.Effect<number | undefined, E>, tell: Running["tell"]): Effect.Effect<void> =>
  Effect.map(
    Effect.orElseSucceed(count, () => undefined),
    (left) => tell({ left })
  )

/** The role that may begin and stop a job of each kind. */
export const roleOf: { readonly [K in Job["kind"]]: Action } = {
  plan: "redrive",
  redrive: "redrive",
  edit: "redrive",
  park: "redrive",
  purge: "purge",
  "purge-delayed": "purge",
  export: "bodies"
}
