/** The report of a redrive, and the error that it ends with. */
import type { BrokerError } from "@requeue/core"
import * as Data from "effect/Data"
import type { AuditFailed } from "./audit.ts"
import type { Summary } from "./sweepStats.ts"
import type { CallbackFailed } from "./callback.ts"

/** The letters that a stage has published, or all of them, by what became of them. */
export interface Outcome {
  /** Published and confirmed by the broker: `redriven` and `unremoved` together. */
  readonly published: number
  /**
   * Those that have not come back, and that the broker does not count in their queue any more: so they were acked, as far as
   * the broker can tell: at least so many, as other messages may hide some. `undefined` where nobody watches, where the
   * broker does not tell all counts (`capabilities.countsRemedy` says which option it may need), and where counts that are not
   * exact were 0 for less than 10 seconds when `wait` was over.
   */
  readonly succeeded: number | undefined
  /** Those that are dead letters again, by their metadata. `undefined` where nobody watches. */
  readonly cameBack: number | undefined
  /** At most so many still wait in their queue, are in work or wait for a retry. `undefined` as `succeeded` is. */
  readonly waiting: number | undefined
  /**
   * Letters that came into the dead letters meanwhile, and that no look has reached: each of them may have come back. They
   * count towards `stopAt`, and not as succeeded.
   */
  readonly unseen: number
}

/** A stage of a redrive. */
export interface Stage extends Outcome {
  /** The letters that it was to publish; `undefined` for the last one, which takes the rest. */
  readonly size: number | undefined
}

/**
 * Why a redrive went no further:
 *
 * - `stop-at`: more than the part `stopAt` of a stage has come back.
 * - `wait`: `wait` was over, letters of the stage wait, and nothing has left their queue meanwhile: nobody works on it.
 * - `held`: `wait` was over, and another reader has letters that were here when it began.
 * - `abort`: its signal was aborted.
 */
export type StoppedBy = "stop-at" | "wait" | "held" | "abort"

/** The dead letters of a queue, counted by their fate. */
export interface Report
  extends Outcome, Pick<Summary, "unremoved" | "refused" | "unconfirmed" | "failures" | "queued" | "held"> {
  /** The id of the redrive: the copies that it publishes have it in their metadata, and events tell it. */
  readonly operation: string
  /** Published, confirmed by the broker, and removed from here. In a dry run: those that would be. */
  readonly redriven: number
  /** Published and confirmed, and not removed: the broker did not take that, so that these are in both queues. */
  readonly unremoved: number
  /** Still here, because the broker refuses the copy, for example since the queue that they came from is missing. */
  readonly refused: number
  /**
   * Those of all above for which a publish got no answer. It counts letters: for each such publish, one more copy may exist.
   * At least so many: a driver that repeats a publish, as that of SQS does, reports only its last answer.
   */
  readonly unconfirmed: number
  /** Passed over because the filter rejected them. */
  readonly filtered: number
  /** Passed over because they have been redriven too often. */
  readonly overRedriveLimit: number
  /** Passed over because the queue that they came from is unknown. */
  readonly unknownOrigin: number
  /** Passed over because they have come back from this very operation. */
  readonly repeated: number
  /** The letters that were refused or not removed, of each the first 100. */
  readonly failures: Summary["failures"]
  /**
   * Of the letters that waited here when it began, those that are here still, for whatever reason; `undefined` where the
   * broker cannot count.
   */
  readonly queued: number | undefined
  /**
   * Letters that another reader had when it began, or took meanwhile and still had at the end, such as a browse, a consumer or
   * another redrive: they are none of those above. Redrive again when that reader has ended. Letters that it took meanwhile and
   * removed are in no figure. `undefined` where a reader may have some, and the broker does not count them.
   */
  readonly held: number | undefined
  /** Why it went no further; `undefined` when it came to its end. */
  readonly stoppedBy: StoppedBy | undefined
  /** The stages that have published something; none where nobody watches. */
  readonly stages: ReadonlyArray<Stage>
}

/** Why a redrive, park or purge that has begun ends with an error. */
export type Failed = BrokerError.BrokerError | AuditFailed | CallbackFailed

/**
 * The error of a redrive, park or purge that had begun and could not go on: the connection was lost for a minute, the broker
 * delivers or takes nothing, its audit failed, or its filter or another function threw. What it did stays done; another call
 * goes on with the others.
 */
export class DeadLettersStopped extends Data.TaggedError("DeadLettersStopped")<{
  readonly queue: string
  readonly operation: "redrive" | "park" | "purge"
  /** The number of dead letters that were removed from the queue. */
  readonly removed: number
  /** The report of a redrive, or of a park; `undefined` for a purge. */
  readonly report: Report | undefined
  readonly cause: Failed
}> {
  override get message() {
    const { cause, operation, queue, removed, report } = this
    const { held, queued } = report ?? {}
    const still = queued === undefined ? "" : `, ${queued} are still there`
    const others =
      held === undefined ? ", another reader may hold more" : held === 0 ? "" : `, another reader holds ${held}`
    const again = cause.isRetryable ? ". Call it again to go on" : ""
    const left = report === undefined ? "" : `${still}${others}`
    return `${operation} of ${queue} stopped: ${removed} letters removed${left}. ${cause.message}${again}`
  }
}
