/** The report of a redrive, and the error that it ends with. */
import type { BrokerError } from "@requeue/core"
import * as Data from "effect/Data"
import type { AuditFailed } from "./audit.ts"
import type { Summary } from "./sweepStats.ts"
import type { CallbackFailed } from "./callback.ts"

/** The published letters of one stage, or of all stages, counted by outcome. */
export interface Outcome {
  /** Letters that were published and confirmed by the broker: `redriven` and `unremoved` together. */
  readonly published: number
  /**
   * Letters that have not come back, and that the broker no longer counts in their queue. It is a lower bound of the acked
   * letters, because other messages may hide some. It is `undefined` in three cases. The redrive does not watch the
   * outcome. The broker does not report all counts; `capabilities.countsRemedy` names the option that it needs. Or the
   * counts are not exact, and were 0 for less than 10 seconds when `wait` was over.
   */
  readonly succeeded: number | undefined
  /**
   * Letters that are dead letters again, as their metadata shows. It is `undefined` if the redrive does not watch the
   * outcome.
   */
  readonly cameBack: number | undefined
  /**
   * An upper bound of the published letters that are still ready, in flight or delayed. It is `undefined` in the same cases
   * as `succeeded`.
   */
  readonly waiting: number | undefined
  /**
   * Letters that arrived in the dead-letter queues during the redrive, and that were not browsed. Each of them may be a
   * letter that has come back, so they count towards `stopAt`, and not as succeeded.
   */
  readonly unseen: number
}

/** A stage of a redrive. */
export interface Stage extends Outcome {
  /** The size of the stage in letters; `undefined` for the last stage, which takes all other letters. */
  readonly size: number | undefined
}

/**
 * Why a redrive stopped:
 *
 * - `stop-at`: more letters of a stage have come back than `stopAt` allows.
 * - `wait`: after the time `wait`, letters of the stage still waited, and no message had left their queue. The queue seems
 *   to have no consumer.
 * - `held`: after the time `wait`, another reader still held letters that were here when the redrive began.
 * - `abort`: the option `signal` was aborted.
 */
export type StoppedBy = "stop-at" | "wait" | "held" | "abort"

/** The report of a redrive or park: the letters of a dead-letter queue, counted by outcome. */
export interface Report
  extends Outcome, Pick<Summary, "unremoved" | "refused" | "unconfirmed" | "failures" | "queued" | "held"> {
  /** The id of the redrive. The metadata of the copies and the events about them have this id. */
  readonly operation: string
  /**
   * Letters that were published, confirmed by the broker, and removed from this queue. In a dry run: letters that would be
   * redriven.
   */
  readonly redriven: number
  /**
   * Letters that were published and confirmed, but that the broker refused to remove. These letters are in both queues.
   */
  readonly unremoved: number
  /**
   * Letters that stay, because the broker refused their copies, for example if the queue that they came from is missing.
   */
  readonly refused: number
  /**
   * Letters in `redriven`, `unremoved` and `refused` for which a publish got no answer. For each such publish, one more
   * copy may exist. It is a lower bound: a driver that repeats a publish, such as that of SQS, reports only its last
   * answer.
   */
  readonly unconfirmed: number
  /** Letters that stay, because the filter rejected them. */
  readonly filtered: number
  /** Letters that stay, because they have been redriven too often. */
  readonly overRedriveLimit: number
  /** Letters that stay, because the queue that they came from is unknown. */
  readonly unknownOrigin: number
  /** Letters that stay, because they have come back from this operation. */
  readonly repeated: number
  /** The first 100 letters that were refused, and the first 100 that were not removed. */
  readonly failures: Summary["failures"]
  /**
   * The letters that were here when the redrive began, and are still here for any reason; `undefined` if the broker cannot
   * count.
   */
  readonly queued: number | undefined
  /**
   * Letters that another reader held when the redrive began, or took during the redrive and still held at its end. A reader
   * is a browser, a consumer or another redrive. Redrive again when that reader has ended. These letters are in no other
   * figure, and letters that the reader removed are in no figure at all. It is `undefined` if a reader may hold letters,
   * and the broker does not count them.
   */
  readonly held: number | undefined
  /** Why the redrive stopped early; `undefined` if it reached its end. */
  readonly stoppedBy: StoppedBy | undefined
  /** The stages that have published letters; empty if the redrive does not watch the outcome. */
  readonly stages: ReadonlyArray<Stage>
}

/** The errors with which a redrive, park or purge may end after it has begun. */
export type Failed = BrokerError.BrokerError | AuditFailed | CallbackFailed

/**
 * The error of a redrive, park or purge that began and could not go on. The reason is one of these: the connection was lost
 * for a minute, the broker delivered or accepted nothing, the audit failed, or a function of the program threw. Letters
 * that were moved or removed stay so, and another call goes on with the others.
 */
export class DeadLettersStopped extends Data.TaggedError("DeadLettersStopped")<{
  readonly queue: string
  readonly operation: "redrive" | "park" | "purge"
  /** The number of dead letters that were removed from the queue. */
  readonly removed: number
  /** The report of a redrive or park; `undefined` for a purge. */
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
