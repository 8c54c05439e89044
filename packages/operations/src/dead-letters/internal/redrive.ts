/** Sends dead letters back to work: each is published, confirmed, and then removed. The others stay. */
import { type Broker, BrokerError, type Delay, type Delivery } from "@requeue/core"
import { Telemetry } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Closing from "../../internal/Closing.ts"
import type { Audit } from "./audit.ts"
import * as Callback from "./callback.ts"
import * as ComeBacks from "./returned.ts"
import type { DeadLetter } from "./deadLetter.ts"
import * as Destination from "./destination.ts"
import * as Ledger from "./ledger.ts"
import * as Operation from "./operation.ts"
import * as Passes from "./passes.ts"
import { DeadLettersStopped, type Failed, type Report } from "./report.ts"
import * as Stages from "./stages.ts"
import * as Sweep from "./sweep.ts"
import * as Watch from "./watch.ts"

/** Options of what moves letters. */
interface Moving {
  /** The most dead letters to redrive. Default: all that wait when it begins. */
  readonly limit?: number | undefined
  /** Selects the dead letters to redrive: those for which it returns `true`. It gets a copy of each. Default: all. */
  readonly filter?: ((letter: DeadLetter) => boolean) | undefined
  /**
   * Only letters that consumers of this queue gave up. Where `deadLettersOf` found a queue that takes letters of another queue
   * too, and where nothing but the letters says that they came from it, this or `force` is needed. Default: letters of all
   * queues.
   */
  readonly origin?: string | undefined
  /** Whether to count only, and move nothing. It looks at 100,000 letters at most. Default: false. */
  readonly dryRun?: boolean | undefined
  /** The most dead letters that are published in a second, at least 0.001. Default: no limit. */
  readonly rate?: number | undefined
  /**
   * Ends the redrive at once; publishes that are under way have 5 seconds to end. Dead letters that were redriven stay
   * redriven, and another call goes on with the others. Default: it is never stopped.
   */
  readonly signal?: AbortSignal | undefined
  /** Told of dead letters before they are published, up to 100 at a time. Default: nobody is told. */
  readonly audit?: Audit | undefined
  /** Called with the report so far when dead letters are published, and when they are removed. Default: nothing is called. */
  readonly onProgress?: ((report: Report) => void) | undefined
  /**
   * Whether to create the queue that letters go to if it is missing, as sends do; else they are refused with `QueueMissing`.
   * Default: false; for `park` to its default queue, true.
   */
  readonly create?: boolean | undefined
  /**
   * Confirms that this queue is meant, and all of it: its own name. It is needed where no policy, no convention and no dead letter
   * in it makes it a dead-letter queue, and where `deadLettersOf` found it and it takes letters of another queue too. Default:
   * such a queue is refused.
   */
  readonly force?: string | undefined
}

/** Options of `redrive`. */
export interface Options extends Moving {
  /**
   * The queue to redrive to. Default: the queue that each dead letter came from, where more than the letter says so: `origin`,
   * or the policy of that queue, which names this dead-letter queue; that of the default policy where none is known here.
   */
  readonly to?: string | undefined
  /** Dead letters that were redriven so often already are passed over, since they would only come back. Default: 3. */
  readonly maxRedrives?: number | undefined
  /**
   * The sizes of the first stages, in dead letters. Behind each, the redrive waits until it is known what became of the
   * letters, see `wait`; the last stage takes the rest. Default: `[1, 10, 100]` where `stopAt` or `wait` is given, else all
   * are redriven at once, and nobody watches what comes back.
   */
  readonly stages?: ReadonlyArray<number> | undefined
  /**
   * The part of a stage, from 0 to 1, that may come back to the dead letters: the redrive stops when more has. Default: 0.1
   * where `stages` or `wait` is given.
   */
  readonly stopAt?: number | undefined
  /**
   * The longest wait behind each stage, 1 ms to 24 hours, until its letters have come back or are not counted in their queue
   * any more. Then the next stage begins with what is known; the redrive stops if the letters wait, and nothing has left
   * their queue meanwhile. Give it longer than the retries of the queue take, and than 15 seconds on brokers whose counts
   * are not exact. Default: 1 minute where `stages` or `stopAt`
   * is given.
   */
  readonly wait?: Delay.DurationInput | undefined
  /**
   * Further dead-letter queues to which letters may come back, which must exist; or a function that answers those of a queue
   * that is redriven to, which may be missing. Default: those that the default policy gives each queue that is redriven to.
   */
  readonly watch?: Destination.Watched | undefined
  /**
   * The id of the redrive: 1 to 32 letters, digits, ".", "_" or "-". With the one of an earlier report, letters that have come
   * back from that redrive are passed over. Default: a new one.
   */
  readonly operation?: string | undefined
}

/** Whether somebody watches what becomes of the letters. */
const isWatched = ({ dryRun, stages, stopAt, wait }: Options): boolean =>
  dryRun !== true && [stages, stopAt, wait].some((given) => given !== undefined)

/** Options of `park`. */
export interface ParkOptions extends Moving {
  /** The queue to move letters to. Default: the dead-letter queue's name with `.parked`. */
  readonly to?: string | undefined
}

/** The queue where letters of a dead-letter queue are parked. */
export const parkingQueue = (queue: string): string => `${queue}.parked`

/** Moves letters as they are. The options have been checked. */
export const park = (broker: Broker.Service, queue: string, options: ParkOptions = {}) => {
  const { to = parkingQueue(queue), create = to === parkingQueue(queue) } = options
  return run(broker, queue, { ...options, to, create, isOrigin: () => Effect.succeed(true) }, true)
}

/** Redrives the dead letters in a queue. The options have been checked. */
export const redrive = (
  broker: Broker.Service,
  queue: string,
  options: Options = {},
  isOrigin: Destination.Options["isOrigin"]
) => run(broker, queue, { ...options, isOrigin }, false)

const run = (
  broker: Broker.Service,
  queue: string,
  given: Options & Pick<Destination.Options, "isOrigin">,
  isParking: boolean
): Effect.Effect<Report, BrokerError.BrokerError | DeadLettersStopped> =>
  Effect.gen(function* () {
    const guard = Callback.guard(queue)
    const { filter, watch: watched } = given
    const options = { ...given, watch: typeof watched === "function" ? guard("watch", watched) : watched }
    const operation = Operation.make(options.operation)
    const comeBacks = isWatched(options) ? ComeBacks.make(operation) : undefined
    const ledger = Ledger.make({ operation: operation.id, isDryRun: options.dryRun === true, comeBacks })
    const onProgress = guard("onProgress", () => options.onProgress?.(ledger.report()))
    const publish = Telemetry.publisher(yield* Telemetry.Telemetry, broker.capabilities.broker, broker.publish)
    const begun = yield* Clock.currentTimeMillis
    const watch =
      comeBacks === undefined
        ? undefined
        : yield* Watch.make(broker, [queue, ...(yield* Destination.named(broker, options.watch))], comeBacks)
    const passes = Passes.make({
      begun,
      broker,
      queue,
      options,
      operation,
      comeBacks,
      watch,
      ledger,
      isParking,
      isMeant: guard("filter", (letter: Delivery.Delivery) => Sweep.matches(letter, filter)),
      publish,
      onProgress
    })

    const all = Effect.gen(function* () {
      if (watch === undefined) {
        ledger.begin(undefined)
        yield* passes.pass(options.limit)
        return options.signal?.aborted === true ? ("abort" as const) : undefined
      }
      return yield* Stages.run({
        ...passes,
        options,
        ledger,
        watch,
        isExact: broker.capabilities.exactCounts,
        onSeen: onProgress
      })
    })
    // A promise of the last call may have been rejected.
    const checked = Effect.tap(all, () =>
      Effect.andThen(
        Effect.promise(() => Promise.resolve()),
        Effect.sync(guard("onProgress", () => {}))
      )
    )
    const stopped = (cause: Failed): DeadLettersStopped => {
      const report = ledger.report()
      const removed = options.dryRun === true ? 0 : report.redriven
      return new DeadLettersStopped({ queue, operation: isParking ? "park" : "redrive", removed, report, cause })
    }
    const ended = Effect.matchEffect(Callback.caught(checked), {
      onSuccess: (stoppedBy) => Effect.succeed(ledger.report(stoppedBy)),
      onFailure: (cause): Effect.Effect<never, BrokerError.BrokerError | DeadLettersStopped> => {
        if (!passes.hasBegun() && cause instanceof BrokerError.BrokerError) return Effect.fail(cause)
        return Effect.fail(stopped(cause))
      }
    })
    return yield* Closing.told(ended, broker, queue, stopped)
  })
