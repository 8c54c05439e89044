/** Reports events of deliveries: all to the audit hook, and those that need an operator to the log. */
import type { Call } from "../policy/Acknowledgement.ts"
import type { Refused } from "../port/Broker.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import type * as BackoffState from "../policy/BackoffState.ts"
import type { Delivery } from "../message/Delivery.ts"
import type { Event, Hook, Subject } from "./Event.ts"
import type { Failure } from "../policy/Failure.ts"
import * as Metadata from "../message/Metadata.ts"
import * as Thenable from "../message/Thenable.ts"
import type { Settlement } from "../message/Settlement.ts"
import * as Warnings from "./Warnings.ts"

/** Reports the events of one consumer. */
export interface Reporter {
  /** Whether the consumer has a hook. Without a hook, callers need not report arrivals and acks. */
  readonly isWatched: boolean
  readonly received: (delivery: Delivery) => void
  /** Reports a failed attempt. `willRerun`: whether the handler runs again at once. */
  readonly failed: (delivery: Delivery, failure: Failure, willRerun: boolean) => void
  /** Reports a handler that failed after its calls had settled all of its messages. */
  readonly failedLate: Warnings.Warnings["failedLate"]
  readonly settled: (delivery: Delivery, settlement: Settlement) => void
  /** The transaction was committed that acks the message. */
  readonly committed: (delivery: Delivery) => void
  readonly settleFailed: (failed: Refused) => void
  readonly leaseLost: (delivery: Delivery, error: BrokerError) => void
  /** Reports that the broker rejects every settlement of a message, so this process keeps the message. */
  readonly quarantined: (delivery: Delivery, settlement: Settlement, error: BrokerError) => void
  /** Reports an ignored call. `delivery` is `undefined` for a call on the whole batch. */
  readonly ignored: (delivery: Delivery | undefined, call: Call) => void
  /** Reports an acked message that returns to its queue, because an earlier message of its group returns to it. */
  readonly heldBack: (delivery: Delivery) => void
  /** Reports an error that telemetry or an adapter has thrown where it must not throw. */
  readonly threw: (what: string, error: unknown) => void
  readonly backoff: (because: "handler" | "broker", before: BackoffState.State, after: BackoffState.State) => void
  /** Logs the failures that were counted but not yet logged. Called when the consumer has stopped. */
  readonly close: () => void
}

/** The hook and the log of a reporter. */
export interface Options extends Warnings.Options {
  /** The audit hook; `undefined`: only the log is written. */
  readonly hook: Hook | undefined
}

/** Makes the reporter of a consumer. */
export const make = (options: Options): Reporter => {
  const { hook, queue } = options
  const warnings = Warnings.make(options)
  const subject = ({ attempts, metadata }: Pick<Delivery, "attempts" | "metadata">): Subject => ({
    queue,
    id: metadata.id,
    attempts,
    ...(metadata.operation === undefined ? undefined : { operation: Metadata.operationId(metadata.operation) })
  })

  const emit = (event: Event): void => {
    const onError = (error: unknown) => warnings.hookThrew(event, error)
    try {
      // A hook may be an async function.
      Thenable.onRejected(hook?.(event), onError)
    } catch (error) {
      onError(error)
    }
  }

  // Without a hook, routine events are not built.
  return {
    isWatched: hook !== undefined,
    received: (delivery) => {
      if (hook !== undefined) emit({ _tag: "Received", ...subject(delivery) })
    },
    failed: (delivery, failure, willRerun) => {
      warnings.failed(delivery, failure)
      if (hook !== undefined) emit({ _tag: "AttemptFailed", ...subject(delivery), error: failure.summary, willRerun })
    },
    failedLate: warnings.failedLate,
    settled: (delivery, settlement) => {
      if (settlement._tag === "DeadLetter" || settlement._tag === "Drop") warnings.gaveUp(delivery, settlement)
      if (hook !== undefined) emit(settledEvent(subject(delivery), settlement))
    },
    committed: (delivery) => {
      if (hook !== undefined) emit({ _tag: "Succeeded", ...subject(delivery), inTransaction: true })
    },
    settleFailed: ({ delivery, error, settlement }) => {
      warnings.settleFailed(delivery, settlement, error)
      emit({ _tag: "SettleFailed", ...subject(delivery), settlement, error })
    },
    leaseLost: (delivery, error) => {
      warnings.leaseLost(delivery, error)
      emit({ _tag: "LeaseLost", ...subject(delivery), error })
    },
    quarantined: (delivery, { _tag: settlement }, error) => {
      warnings.quarantined(delivery, settlement, error)
      emit({ _tag: "Quarantined", ...subject(delivery), settlement, error })
    },
    ignored: (delivery, call) => {
      warnings.ignored(delivery, call)
      if (hook === undefined) return
      const of = delivery === undefined ? { queue, id: "", attempts: 0 } : subject(delivery)
      emit({ _tag: "CallIgnored", ...of, call: call._tag })
    },
    heldBack: warnings.heldBack,
    threw: warnings.threw,
    close: warnings.close,
    backoff: (because, before, after) => {
      if (after.mode._tag === "Paused") {
        warnings.paused(because, after)
        emit({ _tag: "BackoffEntered", queue, because, level: after.level, wait: after.pause })
      } else if (after.mode._tag === "Running" && before.mode._tag !== "Running") {
        warnings.resumed(because)
        emit({ _tag: "BackoffLeft", queue, because })
      }
    }
  }
}

const settledEvent = (subject: Subject, settlement: Settlement): Event => {
  switch (settlement._tag) {
    case "Ack":
      return { _tag: "Succeeded", ...subject }
    case "Retry":
      return { _tag: "RetryScheduled", ...subject, delay: settlement.delay, error: settlement.error }
    case "DeadLetter": {
      const { error, queue: target, reason } = settlement
      return { _tag: "DeadLettered", ...subject, reason, target, error }
    }
    case "Drop":
      return { _tag: "Dropped", ...subject, reason: settlement.reason, error: settlement.error }
    case "Release":
      return { _tag: "Released", ...subject, delay: settlement.delay }
  }
}
