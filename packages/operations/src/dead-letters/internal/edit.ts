/** Publishes an edited copy of one dead letter, and removes the original only when the copy has succeeded. */
import { type Broker, type BrokerError, type Delay, type Delivery, type Message } from "@requeue/core"
import { Metadata, Outgoing, Telemetry } from "@requeue/core/port"
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
  /** The bytes of the copy. Default: those of the letter. */
  readonly body?: Uint8Array | undefined
  /** The headers of the copy, all of them. Default: those of the letter. */
  readonly headers?: Message.Headers | undefined
  /** The queue to publish to. Default: the queue that the letter came from. */
  readonly to?: string | undefined
  /** The longest wait for the outcome of the copy, 1 ms to 24 hours; see `redrive`. Default: 1 minute. */
  readonly wait?: Delay.DurationInput | undefined
  /** Whether a missing queue is created; else the edit fails. See `redrive`. */
  readonly create?: boolean | undefined
  /** Further dead-letter queues to which the copy may come back; see `redrive`. */
  readonly watch?: Destination.Watched | undefined
  /** The id of the operation: 1 to 32 letters, digits, ".", "_" or "-". Default: a new one. */
  readonly operation?: string | undefined
  /**
   * The name of this queue, as confirmation. It is required if no policy, no naming convention and no dead letter
   * in it shows that it is a dead-letter queue, and if `deadLettersOf` found it and it has letters of another queue as well. Default:
   * such a queue is refused.
   */
  readonly force?: string | undefined
  /** Called with the letter before its copy is published. Default: nothing is called. */
  readonly audit?: Audit.Audit | undefined
  /** Ends the wait; the original then stays. Default: it is never ended. */
  readonly signal?: AbortSignal | undefined
}

/**
 * The fate of an edited copy:
 *
 * - `succeeded`: it has not come back, and the broker no longer counts it in its queue.
 * - `came-back`: it is a dead letter itself.
 * - `waiting`: it may still be ready, in flight or delayed.
 * - `unknown`: the broker does not report it.
 * - `missing`: nothing was published, because the letter no longer exists, or browsing did not reach it.
 */
export type EditOutcome = "succeeded" | "came-back" | "waiting" | "unknown" | "missing"

/** The end of an edit. */
export interface EditReport {
  /** The id of the operation, which the metadata of the copy has. */
  readonly operation: string
  readonly outcome: EditOutcome
  /** Whether the original has been removed, which requires that the copy has succeeded. */
  readonly isRemoved: boolean
}

/** Edits a letter from `list`. The options have been checked. */
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
    const copy = Destination.bound(redriven, options)

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
            Effect.sync(() => ledger.step(books))
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

/** Whether both have the same content; brokers keep headers in any order. */
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

/** Returns whether the letter is gone. */
const remove = (
  broker: Broker.Service,
  queue: string,
  select: (letter: Delivery.Delivery) => boolean
): Effect.Effect<boolean, Failed> =>
  Effect.gen(function* () {
    const { error, summary } = yield* Sweep.run(broker, queue, { limit: 1 }, { select, copy: "none", onStep: () => {} })
    return error === undefined ? summary.removed === 1 : yield* error
  })
