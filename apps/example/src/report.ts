/** What a run came to, as data: `--json` prints it, the summary shows it. */
import type { Books } from "./books.ts"
import type { BrokerName } from "./brokers.ts"
import type { Causes } from "./causes.ts"
import type { Ended } from "./ledger.ts"
import type { Place } from "./place.ts"
import type { Punctuality } from "./punctuality.ts"
import type { Signal } from "./signals.ts"

/** How a run was stopped that did not come to its end. */
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
  readonly seed: number
  /** The whole run in milliseconds. */
  readonly elapsedMs: number
  readonly retried: number
  readonly timedOut: number
  /** How messages ended, by their number of attempts. */
  readonly attempts: Readonly<Record<string, Ended>>
  /** Requests that the receiver turned away, for a wrong signature for example. */
  readonly rejected: number
  readonly stopped: Stop | null
  /** The books after the dead letters were sent again to a receiver that is well. */
  readonly redrive: (Books & { readonly redriven: number }) | null
}

/** Whether all is as it should be: what the exit code says. */
export const isSound = ({ balanced, early, redrive, rejected, stopped }: Report): boolean =>
  balanced && early === 0 && rejected === 0 && stopped?.by !== "stall" && (redrive === null || redrive.balanced)
