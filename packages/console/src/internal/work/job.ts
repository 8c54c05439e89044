/** A job: what it works on, its numbers, and who may begin it. */
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
  /** Those that are in the queue when it ends; `undefined` where the broker cannot count. */
  readonly left: number | undefined
  /** Those that another reader has then; `undefined` where somebody may have some, and the broker does not tell. */
  readonly held: number | undefined
  /** Why it went no further; `undefined` when it came to its end. */
  readonly stoppedBy: DeadLetters.StoppedBy | undefined
}

/** The numbers of an export, as far as it is. */
export interface Exported {
  /** The letters that were written. */
  readonly written: number
  /** Those of them of which something was hidden. */
  readonly redacted: number
  /** Letters that were looked at. */
  readonly browsed: number
  /** Letters that waited; `undefined` where the broker cannot count. */
  readonly total: number | undefined
  /** Why it went no further: it was stopped, or nobody read it. `undefined` when it came to its end. */
  readonly stoppedBy: "abort" | "reader" | undefined
}

/** How somebody waits for what becomes of letters. */
export interface Pace {
  /** The longest wait, behind each stage, in milliseconds. */
  readonly wait: number
  /** Why the broker does not tell, and what would let it; `undefined` where it tells. */
  readonly untold: string | undefined
}

/** A job. Times are in milliseconds since the epoch. */
export interface Job {
  readonly id: string
  readonly kind: "plan" | "redrive" | "purge" | "edit" | "park" | "purge-delayed" | "export"
  readonly place: Place
  readonly selection: Selection
  /** The queue that letters go to; `undefined` for those that they came from, and where they go nowhere. */
  readonly to: string | undefined
  /** The queues that they could go to. */
  readonly targets: ReadonlyArray<string>
  readonly operator: string
  readonly begun: number
  /** `undefined` while it runs. */
  readonly ended: number | undefined
  /** The report so far; `undefined` for a purge, and before there is any. */
  readonly report: DeadLetters.RedriveReport | undefined
  /** Letters in the queue when it ended; `undefined` before, where it moves none, and where the broker cannot count. */
  readonly left: number | undefined
  /** `undefined` where it does not wait for what becomes of letters, and before there is a connection. */
  readonly pace: Pace | undefined
  /** `undefined` for a redrive, and before a purge has ended. */
  readonly purged: Purged | undefined
  /** The fate of an edited copy; `undefined` before it is known, and for all others. */
  readonly edited: DeadLetters.EditReport | undefined
  /** `undefined` where it is no export. */
  readonly exported: Exported | undefined
  /** Why it failed. */
  readonly trouble: string | undefined
  /** Whether somebody has asked it to stop. */
  readonly isStopping: boolean
  /** The redrive that has followed a dry run: there is one at most. */
  readonly usedBy: string | undefined
}

/** A job, as its work sees it. */
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
  /** Keeps a line for each letter before it leaves. */
  readonly audit: (goal: Audit.Goal) => DeadLetters.Audit
}

/** The work of a job: it tells of its progress, and ends soon after the signal. */
export interface Work {
  readonly kind: Job["kind"]
  readonly connection: Connection
  readonly queue: string
  readonly selection: Selection
  /** The queue that letters go to. Default: those that they came from, or none. */
  readonly to?: string | undefined
  /** The id of the dry run that it follows. */
  readonly plan?: string | undefined
  /** Whether it waits for what becomes of letters, so that others may look meanwhile. Default: no. */
  readonly isLong?: boolean | undefined
  /** For the audit. */
  readonly options: Readonly<Record<string, unknown>>
  readonly run: (job: Running) => ReturnType<Connection["use"]>
  /** Called when the last line of the audit is written, or could not be. */
  readonly onEnd?: ((job: Job) => void) | undefined
}

/** Tells how many letters are left, of whoever's work. */
export const told = <E>(count: Effect.Effect<number | undefined, E>, tell: Running["tell"]): Effect.Effect<void> =>
  Effect.map(
    Effect.orElseSucceed(count, () => undefined),
    (left) => tell({ left })
  )

/** The role that may begin a job of each kind, and stop it. */
export const roleOf: { readonly [K in Job["kind"]]: Action } = {
  plan: "redrive",
  redrive: "redrive",
  edit: "redrive",
  park: "redrive",
  purge: "purge",
  "purge-delayed": "purge",
  export: "bodies"
}
