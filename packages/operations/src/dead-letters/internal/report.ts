/** The report of a redrive, and the error that it ends with. */
import type { BrokerError } from "@requeue/core"
import * as Data from "effect/Data"
import type { AuditFailed } from "./audit.ts"
import type { Summary } from "./sweepStats.ts"
import type { CallbackFailed } from "./callback.ts"

/** The published letters of a stage, or of all stages, by their outcome. */
export interface Outcome {
  /** Published and confirmed by the broker: `redriven` and `unremoved` together. */
  readonly published: number
  /**
   * Those that have not come back, and that the broker no longer counts in their queue: a lower bound of those that were
   * acked, because other messages may hide some. `undefined` if the redrive does not watch, if the
   * broker does not report all counts (`capabilities.countsRemedy` names the option that it needs), and if counts that are not
   * exact were 0 for less than 10 seconds when `wait` was over.
   */
  readonly succeeded: number | undefined
  /** Those that are dead letters again, by their metadata. `undefined` if the redrive does not watch. */
  readonly cameBack: number | undefined
  /** An upper bound of those that are still ready, in flight or delayed. `undefined` in the same cases as `succeeded`. */
  readonly waiting: number | undefined
  /**
   * Letters that arrived in the dead-letter queues meanwhile, and that were not browsed: each may have come back. They
   * count towards `stopAt`, and not as succeeded.
   */
  readonly unseen: number
}

/** A stage of a redrive. */
export interface Stage extends Outcome {
  /** Its size in letters; `undefined` for the last one, which takes the rest. */
  readonly size: number | undefined
}

/**
 * Why a redrive stopped:
 *
 * - `stop-at`: more than the share `stopAt` of a stage has come back.
 * - `wait`: `wait` was over, letters of the stage wait, and no message has left their queue: it seems to have no consumer.
 * - `held`: `wait` was over, and another reader holds letters that were here when it began.
 * - `abort`: its signal was aborted.
 */
export type StoppedBy = "stop-at" | "wait" | "held" | "abort"

/** The dead letters of a queue, counted by their fate. */
export interface Report
  extends Outcome, Pick<Summary, "unremoved" | "refused" | "unconfirmed" | "failures" | "queued" | "held"> {
  /** The id of the redrive. The metadata of the copies and their events have it. */
  readonly operation: string
  /** Published, confirmed by the broker, and removed from here. In a dry run: those that would be. */
  readonly redriven: number
  /** Published and confirmed, but not removed, because the broker refused that: these are in both queues. */
  readonly unremoved: number
  /** Still here, because the broker refuses the copy, for example if the queue that they came from is missing. */
  readonly refused: number
  /**
   * Letters of the above for which a publish got no answer. For each such publish, one more copy may exist.
   * It is a lower bound: a driver that repeats a publish, such as that of SQS, reports only its last answer.
   */
  readonly unconfirmed: number
  /** Passed over because the filter rejected them. */
  readonly filtered: number
  /** Passed over because they have been redriven too often. */
  readonly overRedriveLimit: number
  /** Passed over because the queue that they came from is unknown. */
  readonly unknownOrigin: number
  /** Passed over because they have come back from this operation. */
  readonly repeated: number
  /** The letters that were refused or not removed, of each the first 100. */
  readonly failures: Summary["failures"]
  /**
   * The letters from the beginning that are still here, for whatever reason; `undefined` if the
   * broker cannot count.
   */
  readonly queued: number | undefined
  /**
   * Letters that another reader held at the beginning, or took meanwhile and held at the end, such as a browser, a consumer or
   * another redrive. They are in no other figure. Redrive again when that reader has ended. Letters that it took meanwhile and
   * removed are in no figure. `undefined` if a reader may hold some, and the broker does not count them.
   */
  readonly held: number | undefined
  /** Why it stopped; `undefined` if it reached its end. */
  readonly stoppedBy: StoppedBy | undefined
  /** The stages that have published something; none if the redrive does not watch. */
  readonly stages: ReadonlyArray<Stage>
}

/** Why a redrive, park or purge that has begun ends with an error. */
export type Failed = BrokerError.BrokerError | AuditFailed | CallbackFailed

/**
 * The error of a redrive, park or purge that began and could not go on: the connection was lost for a minute, the broker
 * delivers or accepts nothing, its audit failed, or its filter or another function threw. Its work stays done; another call
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
