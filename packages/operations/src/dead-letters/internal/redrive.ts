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

/** Options of calls that move letters. */
interface Moving {
  /** The most dead letters to redrive. Default: all that are ready when it begins. */
  readonly limit?: number | undefined
  /** Selects the dead letters to redrive: those for which it returns `true`. It gets a copy of each. Default: all. */
  readonly filter?: ((letter: DeadLetter) => boolean) | undefined
  /**
   * Only letters that consumers of this queue dead-lettered. If `deadLettersOf` found a queue that has letters of another queue
   * as well, or if only the letters name it as their origin, this or `force` is required. Default: letters of all
   * queues.
   */
  readonly origin?: string | undefined
  /** Whether to count only, and move nothing. It browses 100,000 letters at most. Default: false. */
  readonly dryRun?: boolean | undefined
  /** The most dead letters that are published in a second, at least 0.001. Default: no limit. */
  readonly rate?: number | undefined
  /**
   * Ends the redrive at once; publishes in progress have 5 seconds to end. Dead letters that were redriven stay
   * redriven, and another call goes on with the others. Default: it is never stopped.
   */
  readonly signal?: AbortSignal | undefined
  /** Called with dead letters before they are published, up to 100 at a time. Default: nothing is called. */
  readonly audit?: Audit | undefined
  /** Called with the report so far when dead letters are published, and when they are removed. Default: nothing is called. */
  readonly onProgress?: ((report: Report) => void) | undefined
  /**
   * Whether to create the queue that letters go to if it is missing, as sends do; else they are refused with `QueueMissing`.
   * Default: false; for `park` to its default queue, true.
   */
  readonly create?: boolean | undefined
  /**
   * The name of this queue, as confirmation. It is required if no policy, no naming convention and no dead letter
   * in it shows that it is a dead-letter queue, and if `deadLettersOf` found it and it has letters of another queue as well. Default:
   * such a queue is refused.
   */
  readonly force?: string | undefined
}

/** Options of `redrive`. */
export interface Options extends Moving {
  /**
   * The queue to redrive to. Default: the queue that each dead letter names as its origin, if other evidence confirms it: `origin`,
   * or the policy of that queue, which names this dead-letter queue; if none is known here, the default policy.
   */
  readonly to?: string | undefined
  /** Passes over dead letters that were redriven this often, because they would only come back. Default: 3. */
  readonly maxRedrives?: number | undefined
  /**
   * The sizes of the first stages, in dead letters. After each, the redrive waits until the outcome of its letters is known,
   * see `wait`; the last stage takes the rest. Default: `[1, 10, 100]` if `stopAt` or `wait` is given, else all
   * are redriven at once, without watching what comes back.
   */
  readonly stages?: ReadonlyArray<number> | undefined
  /**
   * The share of a stage, from 0 to 1, that may come back to the dead letters: the redrive stops if more has. Default: 0.1
   * if `stages` or `wait` is given.
   */
  readonly stopAt?: number | undefined
  /**
   * The longest wait after each stage, 1 ms to 24 hours, until its letters have come back or are no longer counted in their
   * queue. Then the next stage begins with what is known; the redrive stops if the letters wait, and no message has left
   * their queue meanwhile. Set it longer than the retries of the queue take, and than 15 seconds on brokers whose counts
   * are not exact. Default: 1 minute if `stages` or `stopAt`
   * is given.
   */
  readonly wait?: Delay.DurationInput | undefined
  /**
   * Further dead-letter queues to which letters may come back, which must exist; or a function that returns those of a target
   * queue, which may be missing. Default: those of the default policy for each target queue.
   */
  readonly watch?: Destination.Watched | undefined
  /**
   * The id of the redrive: 1 to 32 letters, digits, ".", "_" or "-". With the one of an earlier report, letters that have come
   * back from that redrive are passed over. Default: a new one.
   */
  readonly operation?: string | undefined
}

/** Whether the redrive watches the outcome of the letters. */
const isWatched = ({ dryRun, stages, stopAt, wait }: Options): boolean =>
  dryRun !== true && [stages, stopAt, wait].some((given) => given !== undefined)

/** Options of `park`. */
export interface ParkOptions extends Moving {
  /** The queue to move letters to. Default: the dead-letter queue's name with `.parked`. */
  readonly to?: string | undefined
}

/** The queue where letters of a dead-letter queue are parked. */
export const parkingQueue = (queue: string): string => `${queue}.parked`

/** Moves letters unchanged. The options have been checked. */
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
