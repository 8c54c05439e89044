/** Sends dead letters back to work: each is published, confirmed, and then removed. The others stay. */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Service } from "../../port/Broker.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type { Delivery } from "../../message/Delivery.ts"
import * as Outgoing from "../../message/Outgoing.ts"
import * as Telemetry from "../../observe/Telemetry.ts"
import * as Sweep from "./sweep.ts"
import type { Summary } from "./books.ts"

/** Options of `redrive`. */
export interface Options {
  /** The queue to redrive to. Default: the queue that each dead letter came from. */
  readonly to?: string | undefined
  /** The most dead letters to redrive. Default: all that wait when it begins. */
  readonly limit?: number | undefined
  /** Selects the dead letters to redrive: those for which it returns `true`. Default: all. */
  readonly filter?: ((letter: Delivery) => boolean) | undefined
  /** Whether to count only, and move nothing. It counts 10,000 letters at most. Default: false. */
  readonly dryRun?: boolean | undefined
  /** The most dead letters that are published in a second, at least 0.001. Default: no limit. */
  readonly rate?: number | undefined
  /** Dead letters that were redriven so often already are passed over, since they would only come back. Default: 3. */
  readonly maxRedrives?: number | undefined
  /**
   * Ends the redrive at once; publishes that are under way have 5 seconds to end. Dead letters that were redriven stay
   * redriven, and another call goes on with the others. Default: it is never stopped.
   */
  readonly signal?: AbortSignal | undefined
  /** Called after each dead letter with the report so far. Default: nothing is called. */
  readonly onProgress?: ((report: Report) => void) | undefined
}

/** The dead letters of a queue, counted by their fate. */
export interface Report extends Pick<
  Summary,
  "unremoved" | "refused" | "unconfirmed" | "failures" | "queued" | "held"
> {
  /** Published, confirmed by the broker, and removed from here. In a dry run: those that would be. */
  readonly redriven: number
  /** Published and confirmed, and not removed: the broker did not take that, so that these are in both queues. */
  readonly unremoved: number
  /** Still here, because the broker refuses the copy, for example since the queue that they came from is missing. */
  readonly refused: number
  /** Those of all above for which a publish got no answer, so that one copy more may exist. */
  readonly unconfirmed: number
  /** Passed over because the filter rejected them. */
  readonly filtered: number
  /** Passed over because they have been redriven too often. */
  readonly guarded: number
  /** Passed over because the queue that they came from is unknown. */
  readonly homeless: number
  /** The letters that were refused or not removed, of each the first 100. */
  readonly failures: Summary["failures"]
  /**
   * Of the letters that waited here when it began, those that are here still, for whatever reason; `undefined` where the
   * broker cannot count.
   */
  readonly queued: number | undefined
  /**
   * Letters that another reader had when it began, such as a look, a consumer or another redrive: they are none of those
   * above. Redrive again when it has ended. `undefined` where somebody may have some, and the broker does not tell.
   */
  readonly held: number | undefined
}

/**
 * The error of a redrive or purge that had begun and could not go on: the connection was lost for a minute, or the broker
 * delivers or takes nothing. What it did stays done; another call goes on with the others.
 */
export class DeadLettersStopped extends Data.TaggedError("DeadLettersStopped")<{
  readonly queue: string
  readonly operation: "redrive" | "purge"
  /** The number of dead letters that were removed from the queue. */
  readonly removed: number
  /** The report of a redrive; `undefined` for a purge. */
  readonly report: Report | undefined
  readonly cause: BrokerError
}> {
  override get message() {
    const { cause, operation, queue, removed, report } = this
    const queued = report?.queued === undefined ? "" : `, ${report.queued} are still there`
    const again = cause.isRetryable ? ". Call it again to go on" : ""
    return `${operation} of ${queue} stopped: ${removed} letters removed${queued}. ${cause.message}${again}`
  }
}

type PassedOver = "filtered" | "guarded" | "homeless"

/** Why the dead letter is passed over; `undefined`: it is not. */
const obstacle = (letter: Delivery, options: Options): PassedOver | undefined => {
  if (!Sweep.matches(letter, options.filter)) return "filtered"
  if (letter.metadata.redrives >= (options.maxRedrives ?? 3)) return "guarded"
  return target(letter, options) === undefined ? "homeless" : undefined
}

const target = (letter: Delivery, { to }: Options): string | undefined => to ?? letter.metadata.deadLetter?.queue

/** Redrives the dead letters in a queue. The options have been checked. */
export const redrive = (
  broker: Service,
  queue: string,
  options: Options = {}
): Effect.Effect<Report, BrokerError | DeadLettersStopped> =>
  Effect.gen(function* () {
    const publish = Telemetry.publisher(yield* Telemetry.Telemetry, broker.capabilities.broker, broker.publish)
    const passed = { filtered: 0, guarded: 0, homeless: 0 }
    const reportOf = ({ removed, selected, ...rest }: Summary): Report => ({
      redriven: options.dryRun === true ? selected : removed,
      ...passed,
      ...rest
    })
    const { error, summary } = yield* Sweep.run(broker, queue, options, {
      select: (letter) => {
        const why = obstacle(letter, options)
        if (why !== undefined) passed[why]++
        return why === undefined
      },
      copy:
        options.dryRun === true ? "look" : (letter) => publish([Outgoing.redrive(letter, target(letter, options)!)]),
      onStep: (current) => options.onProgress?.(reportOf(current()))
    })
    const report = reportOf(summary)
    if (error === undefined) return report
    return yield* new DeadLettersStopped({
      queue,
      operation: "redrive",
      removed: summary.removed,
      report,
      cause: error
    })
  })
