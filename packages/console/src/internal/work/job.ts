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
  /** The letters that it has removed. */
  readonly removed: number
  /** The letters in the queue when it ends; `undefined` where the broker cannot count. */
  readonly left: number | undefined
  /** The letters that another reader holds then; `undefined` where a reader may hold some, and the broker does not count them. */
  readonly held: number | undefined
  /** Why it stopped early; `undefined` when it has finished. */
  readonly stoppedBy: DeadLetters.StoppedBy | undefined
}

/** The numbers of an export so far. */
export interface Exported {
  /** The letters that were written. */
  readonly written: number
  /** The written letters of which something was hidden. */
  readonly redacted: number
  /** The letters that were read. */
  readonly browsed: number
  /** The letters in the queue; `undefined` where the broker cannot count. */
  readonly total: number | undefined
  /** Why it stopped early: an operator stopped it, or the browser stopped reading. `undefined` when it has finished. */
  readonly stoppedBy: "abort" | "reader" | undefined
}

/** How a job waits for the outcome of letters. */
export interface Pace {
  /** The longest wait after each stage, in milliseconds. */
  readonly wait: number
  /** Why the broker does not report the outcome, and what to do; `undefined` where it does. */
  readonly untold: string | undefined
}

/** A redrive that may take several jobs: each passes over the letters that came back from an earlier one. */
export interface Operation {
  readonly id: string
  /** When its first job began, in milliseconds since the epoch. */
  readonly begun: number
}

/** The sizes of the first stages, and the part of a stage that may come back, from 0 to 1. */
export type Staged = Pick<DeadLetters.StandardStages, "stages" | "stopAt">

/** A letter that the broker refused, or published and did not remove. */
export interface Failed {
  readonly id: string
  readonly isPublished: boolean
  /** The broker's error without secrets; `undefined` where the broker gave no answer. */
  readonly why: string | undefined
}

/** A job. Times are in milliseconds since the epoch. */
export interface Job {
  readonly id: string
  readonly kind: "plan" | "redrive" | "purge" | "edit" | "park" | "purge-delayed" | "export"
  readonly place: Place
  readonly selection: Selection
  /** The queue that letters go to; `undefined` where they go back to their own queues, or to none. */
  readonly to: string | undefined
  /** The queues that an operator can choose for `to`. */
  readonly targets: ReadonlyArray<string>
  readonly operator: string
  /** The operation of a redrive, and that of a dry run which continues one; else `undefined`. */
  readonly operation: Operation | undefined
  readonly begun: number
  /** `undefined` while it runs. */
  readonly ended: number | undefined
  /** The report so far; `undefined` for a purge, and before the first report. */
  readonly report: DeadLetters.RedriveReport | undefined
  /** The stages of a redrive; `undefined` for other kinds, and for a redrive at once. */
  readonly staged: Staged | undefined
  /** The failures of the report. */
  readonly failed: ReadonlyArray<Failed>
  /** Letters in the queue when it ended; `undefined` before, where it moves no letters, and where the broker cannot count. */
  readonly left: number | undefined
  /** `undefined` where it does not wait for outcomes, and before it is connected. */
  readonly pace: Pace | undefined
  /** `undefined` for other kinds, and before a purge has ended. */
  readonly purged: Purged | undefined
  /** The outcome of an edited copy; `undefined` for other kinds, and before it is known. */
  readonly edited: DeadLetters.EditReport | undefined
  /** `undefined` for other kinds. */
  readonly exported: Exported | undefined
  /** Why it failed. */
  readonly trouble: string | undefined
  /** Whether an operator has asked it to stop. */
  readonly isStopping: boolean
  /** The id of the redrive that followed a dry run. A dry run has one at most. */
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

/** The work of a job: it reports its progress, and ends soon after the signal. */
export interface Work {
  readonly kind: Job["kind"]
  readonly connection: Connection
  readonly queue: string
  readonly selection: Selection
  /** The queue that letters go to. Default: their own queues, or none. */
  readonly to?: string | undefined
  /** The id of the dry run that it follows. */
  readonly plan?: string | undefined
  /** The operation that it continues. Default: none, and a redrive begins one. */
  readonly operation?: Operation | undefined
  /** The stages of a redrive. Default: none. */
  readonly staged?: Staged | undefined
  /** Whether it waits for outcomes, and browses may run meanwhile. Default: no. */
  readonly isLong?: boolean | undefined
  /** For the audit. */
  readonly options: Readonly<Record<string, unknown>>
  readonly run: (job: Running) => ReturnType<Connection["use"]>
  /** Called after the last audit line, also where the audit has failed. */
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
