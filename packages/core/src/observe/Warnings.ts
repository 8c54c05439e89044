/** Log lines for operators. A line about a mistake in the program is written once per kind of mistake. */
import type { Call } from "../policy/Acknowledgement.ts"
import type { BrokerError } from "../port/BrokerError.ts"
import type * as BackoffState from "../policy/BackoffState.ts"
import * as Delay from "../message/Delay.ts"
import type { Delivery } from "../message/Delivery.ts"
import type { Event } from "./Event.ts"
import { type Failure, summarize } from "../policy/Failure.ts"
import { truncateError, type ErrorSummary } from "../message/Metadata.ts"
import * as Log from "../port/Log.ts"
import type { Settlement } from "../message/Settlement.ts"
import * as FailureLog from "./FailureLog.ts"
import type { HandlerRuntime } from "../runtime/HandlerRuntime.ts"

/** The queue and the writers of the lines. */
export interface Options extends FailureLog.Options, Pick<HandlerRuntime, "wallClock"> {
  /** The name of the queue. */
  readonly queue: string
  /** Writes a structured line at the level of information. */
  readonly info: FailureLog.Options["warn"]
  /** Returns the redacted error of a failure. */
  readonly redact: (failure: Pick<Failure, "summary" | "chain" | "trace">) => ErrorSummary
}

/** The part of a delivery that is logged. */
type LoggedDelivery = Pick<Delivery, "attempts" | "metadata">

/** The log lines of one consumer. */
export interface Warnings {
  readonly failed: (delivery: Delivery, failure: Failure) => void
  /** Logs a handler that failed after `by` had settled the message. */
  readonly failedLate: (delivery: Delivery, failure: Failure, by: "Ack" | "Retry" | "Transaction") => void
  readonly gaveUp: (delivery: Delivery, settlement: Extract<Settlement, { _tag: "DeadLetter" | "Drop" }>) => void
  readonly settleFailed: (delivery: LoggedDelivery, settlement: Settlement["_tag"], error: BrokerError) => void
  readonly leaseLost: (delivery: Delivery, error: BrokerError) => void
  readonly quarantined: (delivery: Delivery, settlement: Settlement["_tag"], error: BrokerError) => void
  readonly ignored: (delivery: Delivery | undefined, call: Call) => void
  readonly paused: (because: "handler" | "broker", state: BackoffState.State) => void
  readonly resumed: (because: "handler" | "broker") => void
  readonly heldBack: (delivery: Delivery) => void
  readonly hookThrew: (event: Event, error: unknown) => void
  /** Logs an error that telemetry or an adapter has thrown where it must not throw. */
  readonly threw: (what: string, error: unknown) => void
  /** Logs the failures that were counted but not yet logged. */
  readonly close: () => void
}

const lateLines = {
  Ack: "a handler failed after ack: the message stays acked and is not retried. Call ack last, or not at all: success acks",
  Retry: "a handler failed after retry: the retry stands",
  Transaction: "a handler failed, but its transaction was committed: the message is done and is not retried"
} as const

/** Makes the log lines of a consumer. */
export const make = ({ info, queue, redact, timers, wallClock, warn }: Options): Warnings => {
  const failures = FailureLog.make({ timers, warn })
  const logged = new Set<string>()
  const isFirst = (mistake: string): boolean => logged.size < logged.add(mistake).size
  const thrown = (error: unknown) => Log.errorFields(truncateError(redact({ summary: summarize(error) })))
  const subject = ({ attempts, metadata }: LoggedDelivery) => ({ queue, messageId: metadata.id, attempts })

  return {
    // A handler that always fails must not look like one that is never called.
    failed: (delivery, failure) => {
      const { problem, summary } = failure
      if (problem !== undefined && isFirst("problem")) {
        const { message } = redact({ summary: { name: summary.name, message: problem } })
        warn(`${message}; further ones are not logged`, subject(delivery))
      }
      failures.add(subject(delivery), redact(failure))
    },
    failedLate: (delivery, failure, by) => {
      if (!isFirst("late")) return
      warn(`${lateLines[by]}; further ones are not logged`, {
        ...subject(delivery),
        ...Log.errorFields(truncateError(redact(failure)))
      })
    },
    gaveUp: (delivery, settlement) => {
      const target = settlement._tag === "DeadLetter" ? { target: settlement.queue } : {}
      const { reason } = settlement
      warn(settlement._tag === "DeadLetter" ? "dead-lettered a message" : "dropped a message", {
        ...subject(delivery),
        reason,
        ...target,
        ...Log.errorFields(truncateError(settlement.error)),
        age: Delay.format(Math.max(0, wallClock() - delivery.metadata.firstPublished))
      })
    },
    settleFailed: (delivery, settlement, error) =>
      warn("the broker did not accept a settlement", { ...subject(delivery), settlement, errorMessage: error.message }),
    leaseLost: (delivery, error) =>
      warn("a lease could not be extended", { ...subject(delivery), errorMessage: error.message }),
    quarantined: (delivery, settlement, error) =>
      warn(
        "in quarantine: the broker rejects every settlement of this message; the settlement is repeated at least once a minute",
        {
          ...subject(delivery),
          settlement,
          errorMessage: error.message
        }
      ),
    ignored: (delivery, call) => {
      if (!isFirst("ignored")) return
      warn("ignored a call on a settled message: the first call decides; further ones are not logged", {
        queue,
        call: call._tag,
        messageId: delivery?.metadata.id
      })
    },
    heldBack: (delivery) => {
      if (!isFirst("heldBack")) return
      warn("did not ack a message: an earlier message of its group is redelivered first; further ones are not logged", {
        ...subject(delivery),
        group: delivery.group
      })
    },
    paused: (because, { level, pause }) =>
      warn(`consumer backoff: pausing for ${Delay.format(pause)}`, { queue, because, backoffLevel: level }),
    resumed: (because) => info("consumer backoff: over", { queue, because }),
    hookThrew: ({ _tag: event }, error) => warn("onEvent threw", { queue, event, ...thrown(error) }),
    threw: (what, error) => {
      if (!isFirst(what)) return
      warn(`${what} threw; further errors of it are not logged`, { queue, ...thrown(error) })
    },
    close: failures.close
  }
}
