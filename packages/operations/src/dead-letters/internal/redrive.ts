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

/** The options of calls that move letters. */
interface Moving {
  /** The largest number of dead letters to move. Default: all that are ready when the call begins. */
  readonly limit?: number | undefined
  /** Selects a dead letter if it returns `true`. It gets a copy of each letter. Default: all letters. */
  readonly filter?: ((letter: DeadLetter) => boolean) | undefined
  /**
   * Moves only letters that consumers of this queue dead-lettered. If `deadLettersOf` found a queue that has letters of
   * another queue as well, the call requires `origin` or `force`. If only the letters name their queue of origin, a redrive
   * requires `origin` or `to`. Default: letters of all queues.
   */
  readonly origin?: string | undefined
  /**
   * Whether to count the selected letters, and move none. A dry run browses 100,000 letters at most. Default: false.
   */
  readonly dryRun?: boolean | undefined
  /** The largest number of dead letters that are published in a second, at least 0.001. Default: no limit. */
  readonly rate?: number | undefined
  /**
   * A signal that ends the call at once; publishes in progress have 5 seconds to end. Moved letters stay moved, and another
   * call goes on with the others. Default: no signal.
   */
  readonly signal?: AbortSignal | undefined
  /**
   * A function that gets dead letters before they are published, up to 100 at a time. Default: no function is called.
   */
  readonly audit?: Audit | undefined
  /**
   * A function that gets the report so far after dead letters were published, and after they were removed. Default: no
   * function is called.
   */
  readonly onProgress?: ((report: Report) => void) | undefined
  /**
   * Whether to create the target queue if it is missing. Otherwise letters for a missing queue are refused with
   * `QueueMissing`. Default: false; true for `park` without `to`.
   */
  readonly create?: boolean | undefined
  /**
   * The name of this queue, as confirmation. It is required if nothing shows that this is a dead-letter queue: no policy,
   * no naming convention, no dead letter in it. It is also required if `deadLettersOf` found the queue, and the queue has
   * letters of another queue as well. Default: the call refuses such a queue.
   */
  readonly force?: string | undefined
}

/** Options of `redrive`. */
export interface Options extends Moving {
  /**
   * The queue to redrive to. Default: the queue of origin that each dead letter names, if it is confirmed. The option
   * `origin` confirms it, or the queue's retry policy, if that names this dead-letter queue. A queue whose policy is not
   * known here has the default policy.
   */
  readonly to?: string | undefined
  /**
   * Leaves dead letters in this queue that were already redriven this many times, because they would only come back.
   * Default: 3.
   */
  readonly maxRedrives?: number | undefined
  /**
   * The sizes of the first stages, in dead letters. After each stage, the redrive waits until the outcome of its letters is
   * known (see `wait`). A last stage redrives all other letters. Default: `[1, 10, 100]` if `stopAt` or `wait` is given.
   * Otherwise all letters are redriven at once, and the redrive does not watch what comes back.
   */
  readonly stages?: ReadonlyArray<number> | undefined
  /**
   * The share of a stage's letters, from 0 to 1, that may become dead letters again. If more do, the redrive stops.
   * Default: 0.1 if `stages` or `wait` is given.
   */
  readonly stopAt?: number | undefined
  /**
   * The longest wait after each stage, 1 ms to 24 hours, for the outcome of its letters. An outcome is known if the letter
   * has become a dead letter again, or if the broker no longer counts it in its queue. When the wait is over, the next
   * stage begins with what is known. But the redrive stops if letters of the stage wait, and no message has left their
   * queue meanwhile. Set it longer than the retries of the queue take. On brokers whose counts are not exact, set it longer
   * than 15 seconds. Default: 1 minute if `stages` or `stopAt` is given.
   */
  readonly wait?: Delay.DurationInput | undefined
  /**
   * Further dead-letter queues to which redriven letters may come back. An array names queues that exist. A function gets a
   * target queue, and returns its dead-letter queues, which may be missing. Default: the dead-letter queues of each target
   * queue by the default policy.
   */
  readonly watch?: Destination.Watched | undefined
  /**
   * The id of the redrive: 1 to 32 letters, digits, ".", "_" or "-". With the id of an earlier redrive, letters that have
   * come back from it stay in this queue. Default: a new id.
   */
  readonly operation?: string | undefined
}

/** Whether the redrive watches the outcome of the letters. */
const isWatched = ({ dryRun, stages, stopAt, wait }: Options): boolean =>
  dryRun !== true && [stages, stopAt, wait].some((given) => given !== undefined)

/** Options of `park`. */
export interface ParkOptions extends Moving {
  /** The queue to move letters to. Default: the name of the dead-letter queue with `.parked` at its end. */
  readonly to?: string | undefined
}

/** Returns the queue where the letters of a dead-letter queue are parked by default. */
export const parkingQueue = (queue: string): string => `${queue}.parked`

/** Moves letters unchanged. The caller has checked the options. */
export const park = (broker: Broker.Service, queue: string, options: ParkOptions = {}) => {
  const { to = parkingQueue(queue), create = to === parkingQueue(queue) } = options
  return run(broker, queue, { ...options, to, create, isOrigin: () => Effect.succeed(true) }, true)
}

/** Redrives the dead letters in a queue. The caller has checked the options. */
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
