/** The report of a run, as data. `--json` prints it, and the summary formats it. */
import type { Books } from "./books.ts"
import type { BrokerName } from "./brokers.ts"
import type { Causes } from "./causes.ts"
import type { Ended } from "./ledger.ts"
import type { Place } from "./place.ts"
import type { Punctuality } from "./punctuality.ts"
import type { Signal } from "./signals.ts"

/** The end of a run that was stopped. */
export interface Stop {
  /** `stall`: nothing moved any more. */
  readonly by: Signal | "stall"
  /** Whether every handler ended in time. */
  readonly complete: boolean
  readonly interrupted: number
  readonly drainMs: number
}

export interface Report extends Books, Punctuality, Causes {
  readonly broker: BrokerName
  readonly keeps: Place["keeps"]
  /** Whether the messages were sent in transactions of a database. */
  readonly outbox: boolean
  readonly seed: number
  /** The books of the killed runs that this one continues; `null` if there was none. */
  readonly continues: { readonly published: number; readonly delivered: number } | null
  /** Milliseconds of the whole run. */
  readonly elapsedMs: number
  readonly retried: number
  readonly timedOut: number
  /** The numbers of messages that ended, by their number of attempts. */
  readonly attempts: Readonly<Record<string, Ended>>
  /** The number of requests that the receiver rejected, for example for a wrong signature. */
  readonly rejected: number
  readonly stopped: Stop | null
  /** The books after the dead letters were redriven to a healed receiver; `null` without a redrive. */
  readonly redrive: (Books & { readonly redriven: number }) | null
}

/** Whether the run found no fault; it decides the exit code. */
export const isSound = ({ balanced, early, redrive, rejected, stopped }: Report): boolean =>
  balanced && early === 0 && rejected === 0 && stopped?.by !== "stall" && (redrive === null || redrive.balanced)
