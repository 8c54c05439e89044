/** Publishes an edited copy of one dead letter, and removes the original only when the copy has succeeded. */
import { type Broker, type BrokerError, type Delay, type Delivery, type Message } from "@requeue/core"
import { Lane, Metadata, Outgoing, Telemetry } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Audit from "./audit.ts"
import { nothing } from "./sweepStats.ts"
import * as ComeBacks from "./returned.ts"
import type { DeadLetter } from "./deadLetter.ts"
import * as Destination from "./destination.ts"
import * as Ledger from "./ledger.ts"
import * as Operation from "./operation.ts"
import type { Failed } from "./report.ts"
import * as Stages from "./stages.ts"
import * as Sweep from "./sweep.ts"
import * as Watch from "./watch.ts"

/** Options of `edit`. */
export interface EditOptions {
  /** The bytes of the copy. Default: the bytes of the letter. */
  readonly body?: Uint8Array | undefined
  /** All headers of the copy. Default: the headers of the letter. */
  readonly headers?: Message.Headers | undefined
  /** The queue to publish to. Default: the queue that the letter came from. */
  readonly to?: string | undefined
  /** The longest wait for the outcome of the copy, 1 ms to 24 hours; see `redrive`. Default: 1 minute. */
  readonly wait?: Delay.DurationInput | undefined
  /** Whether to create the target queue if it is missing; otherwise the edit fails. Default: false. */
  readonly create?: boolean | undefined
  /** Further dead-letter queues to which the copy may come back; see the option `watch` of `redrive`. */
  readonly watch?: Destination.Watched | undefined
  /** The id of the operation: 1 to 32 letters, digits, ".", "_" or "-". Default: a new one. */
  readonly operation?: string | undefined
  /**
   * The name of this queue, as confirmation. It is required if nothing shows that this is a dead-letter queue: no policy,
   * no naming convention, no dead letter in it. It is also required if `deadLettersOf` found the queue, and the queue has
   * letters of another queue as well. Default: the call refuses such a queue.
   */
  readonly force?: string | undefined
  /** A function that gets the letter before its copy is published. Default: no function is called. */
  readonly audit?: Audit.Audit | undefined
  /** A signal that ends the wait for the outcome; the original then stays. Default: no signal. */
  readonly signal?: AbortSignal | undefined
}

/**
 * The outcome of an edit:
 *
 * - `succeeded`: the copy has not become a dead letter, and the broker no longer counts the copy in its queue.
 * - `came-back`: the copy is a dead letter again.
 * - `waiting`: the copy may still be ready, in flight or delayed.
 * - `unknown`: the broker does not report what became of the copy.
 * - `missing`: nothing was published, because the letter no longer exists, or browsing did not reach it.
 */
export type EditOutcome = "succeeded" | "came-back" | "waiting" | "unknown" | "missing"

/** The report of an edit. */
export interface EditReport {
  /** The id of the operation, which is also in the metadata of the copy. */
  readonly operation: string
  readonly outcome: EditOutcome
  /** Whether the original was removed. It is removed only if the copy has succeeded. */
  readonly isRemoved: boolean
}

/** Edits a letter from `list`. The caller has checked the options. */
export const edit = (
  broker: Broker.Service,
  queue: string,
  letter: DeadLetter,
  options: EditOptions,
  isOrigin: Destination.Options["isOrigin"]
): Effect.Effect<EditReport, BrokerError.BrokerError | Audit.AuditFailed> =>
  Effect.gen(function* () {
    const publish = Telemetry.publisher(yield* Telemetry.Telemetry, broker.capabilities.broker, broker.publish)
    const operation = Operation.make(options.operation, "edit.")
    const report = (outcome: EditOutcome, isRemoved = false): EditReport => ({
      operation: operation.id,
      outcome,
      isRemoved
    })
    const isIt = ({ body, headers, metadata }: Delivery.Delivery): boolean =>
      metadata.id === letter.id &&
      // Each delivery of an undated message has another time.
      Metadata.publishedAt(metadata) === Metadata.publishedAt(letter.metadata) &&
      metadata.redrives === letter.redrives &&
      metadata.deadLetter?.at === letter.origin?.at &&
      // Several letters may have the same id, and be dead-lettered at the same time.
      isAlike({ body, headers }, letter)

    const original = yield* find(broker, queue, isIt)
    if (original === undefined) return report("missing")
    const to = options.to ?? letter.origin!.queue
    const { body = original.body, headers = original.headers } = options
    const redriven = Outgoing.redrive({ ...original, body, headers }, to, Operation.tag(operation, 1))
    // A parked letter stays, and would hold up its own copy.
    const isParked = original.place?.queue !== undefined
    const place = isParked ? Lane.left(original.place) : redriven.place
    const copy = Destination.bound({ ...redriven, place }, options)

    const comeBacks = ComeBacks.make(operation)
    const ledger = Ledger.make({ operation: operation.id, isDryRun: false, comeBacks })
    const admit = Audit.make(queue, options.audit)
    yield* Destination.check(broker, to, { ...options, queue, isOrigin })
    const named = yield* Destination.named(broker, options.watch)
    const others = Destination.deadLetterQueues(to, options.watch)
    const watch = yield* Watch.make(broker, [queue, ...named, ...others], comeBacks)
    const { signal, wait } = options
    yield* Stages.run({
      // It is a redrive of one letter that stays.
      options: { stages: [1], limit: 1, stopAt: 0, wait, signal },
      ledger,
      watch,
      pass: () => {
        const books = { ...nothing, selected: 1, unremoved: 1 }
        return Effect.as(
          Effect.andThen(
            Effect.andThen(admit([original]), publish([copy])),
            Effect.sync(() => {
              watch.published(original, copy)
              ledger.step(books)
            })
          ),
          books
        )
      },
      targets: new Set([to]),
      isExact: broker.capabilities.exactCounts,
      onSeen: () => {}
    })
    const { cameBack, succeeded, waiting } = ledger.report()
    if (cameBack === 1) return report("came-back")
    if (succeeded !== 1) return report(waiting === undefined ? "unknown" : "waiting")
    return report("succeeded", yield* remove(broker, queue, isIt))
  }).pipe(Effect.catchTag("CallbackFailed", Effect.die)) // No function of the options is asked here.

type Content = Pick<DeadLetter, "body" | "headers">

/** Whether two letters have the same content. The order of headers does not matter, because brokers do not keep it. */
export const isAlike = (one: Content, other: Content): boolean =>
  one.body.length === other.body.length &&
  Object.keys(one.headers).length === Object.keys(other.headers).length &&
  Object.entries(one.headers).every(([name, value]) => other.headers[name] === value) &&
  one.body.every((byte, index) => byte === other.body[index])

const find = (
  broker: Broker.Service,
  queue: string,
  isIt: (letter: Delivery.Delivery) => boolean
): Effect.Effect<Delivery.Delivery | undefined, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    let found: Delivery.Delivery | undefined
    const select = (letter: Delivery.Delivery): boolean => {
      if (isIt(letter)) found = letter
      return found === letter
    }
    yield* Sweep.run(broker, queue, { limit: 1 }, { select, copy: "look", onStep: () => {} })
    return found
  })

/** Removes the letter, and returns whether it is gone. */
const remove = (
  broker: Broker.Service,
  queue: string,
  select: (letter: Delivery.Delivery) => boolean
): Effect.Effect<boolean, Failed> =>
  Effect.gen(function* () {
    const { error, summary } = yield* Sweep.run(broker, queue, { limit: 1 }, { select, copy: "none", onStep: () => {} })
    return error === undefined ? summary.removed === 1 : yield* error
  })
