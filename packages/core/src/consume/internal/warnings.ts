/** Log lines for operators. Each kind of mistake of the program is logged once. */
import type { Call } from "../../policy/Acknowledgement.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type * as BackoffState from "../../policy/BackoffState.ts"
import * as Delay from "../../message/Delay.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Event } from "../../observe/Event.ts"
import { type Failure, summarize } from "../../policy/Failure.ts"
import { truncateError, type ErrorSummary } from "../../message/Metadata.ts"
import * as Log from "../../port/Log.ts"
import type { Settlement } from "../../message/Settlement.ts"
import * as FailureLog from "./failureLog.ts"
import type { Item } from "./item.ts"
import type { Runtime } from "./runtime.ts"

export interface Options extends FailureLog.Options, Pick<Runtime, "wallClock"> {
  readonly queue: string
  /** Returns the error of a failure without what the log must not show. */
  readonly redact: (failure: Pick<Failure, "summary" | "trace">) => ErrorSummary
}

/** The part of a delivery that is logged. */
type Logged = Pick<Delivery, "attempts" | "metadata">

export interface Warnings {
  readonly failed: (delivery: Delivery, failure: Failure) => void
  /** `call` settled the message before the handler failed. */
  readonly failedLate: (delivery: Delivery, failure: Failure, call: "Ack" | "Retry") => void
  readonly gaveUp: (delivery: Delivery, settlement: Extract<Settlement, { _tag: "DeadLetter" | "Drop" }>) => void
  readonly settleFailed: (delivery: Logged, settlement: Settlement["_tag"], error: BrokerError) => void
  readonly leaseLost: (delivery: Delivery, error: BrokerError) => void
  readonly quarantined: (delivery: Delivery, settlement: Settlement["_tag"], error: BrokerError) => void
  readonly ignored: (item: Item | undefined, call: Call) => void
  readonly paused: (because: "handler" | "broker", state: BackoffState.State) => void
  readonly heldBack: (delivery: Delivery) => void
  readonly hookThrew: (event: Event, error: unknown) => void
  /** Telemetry or an adapter threw, which it must not. */
  readonly threw: (what: string, error: unknown) => void
  /** Logs the failures that no line has counted. */
  readonly close: () => void
}

const lateLines = {
  Ack: "a handler failed after ack: the message stays acked and is not retried. Call ack last, or not at all: success acks",
  Retry: "a handler failed after retry: the retry stands"
} as const

export const make = ({ queue, redact, timers, wallClock, warn }: Options): Warnings => {
  const failures = FailureLog.make({ timers, warn })
  const logged = new Set<string>()
  const isFirst = (mistake: string): boolean => logged.size < logged.add(mistake).size
  const thrown = (error: unknown) => Log.errorFields(truncateError(redact({ summary: summarize(error) })))
  const subject = ({ attempts, metadata }: Logged) => ({ queue, messageId: metadata.id, attempts })

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
    failedLate: (delivery, failure, call) => {
      if (!isFirst("late")) return
      warn(`${lateLines[call]}; further ones are not logged`, {
        ...subject(delivery),
        ...Log.errorFields(truncateError(redact(failure)))
      })
    },
    gaveUp: (delivery, settlement) => {
      const target = settlement._tag === "DeadLetter" ? { target: settlement.queue } : {}
      const { reason } = settlement
      warn("gave up a message", {
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
        "in quarantine: the broker refuses every way to settle this message; the consumer tries again after 1s, later every minute",
        {
          ...subject(delivery),
          settlement,
          errorMessage: error.message
        }
      ),
    ignored: (item, call) => {
      if (!isFirst("ignored")) return
      warn("ignored a call on a settled message: the first call decides; further ones are not logged", {
        queue,
        call: call._tag,
        messageId: item?.delivery.metadata.id
      })
    },
    heldBack: (delivery) => {
      if (!isFirst("heldBack")) return
      warn(
        "did not ack a message: a message before it in its group is redelivered, and this one after it; further ones are not logged",
        {
          ...subject(delivery),
          group: delivery.group
        }
      )
    },
    paused: (because, { level, pause }) =>
      warn(`consumer backoff: pausing for ${Delay.format(pause)}`, { queue, because, backoffLevel: level }),
    hookThrew: ({ _tag: event }, error) => warn("onEvent threw", { queue, event, ...thrown(error) }),
    threw: (what, error) => {
      if (!isFirst(what)) return
      warn(`${what} threw; further errors of it are not logged`, { queue, ...thrown(error) })
    },
    close: failures.close
  }
}
