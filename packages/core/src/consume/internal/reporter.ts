/** Tells the audit hook and the log what happens to deliveries. Without a hook, only what needs an operator is told. */
import type { Call } from "../../policy/Acknowledgement.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import * as Delay from "../../message/Delay.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Event, Hook, Subject } from "../../observe/Event.ts"
import type { Failure } from "../../policy/Failure.ts"
import type { ErrorSummary } from "../../message/Metadata.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { Item } from "./item.ts"

/** Writes a structured warning. */
export type Warn = (message: string, annotations: Readonly<Record<string, unknown>>) => void

/** Names of errors whose first failure is logged. */
const loggedNames = 100

export interface Reporter {
  readonly received: (delivery: Delivery) => void
  readonly failed: (delivery: Delivery, failure: Failure, willRerun: boolean) => void
  readonly settled: (delivery: Delivery, settlement: Settlement) => void
  readonly settleFailed: (delivery: Delivery, settlement: Settlement, error: BrokerError) => void
  readonly leaseLost: (delivery: Delivery, error: BrokerError) => void
  readonly ignored: (item: Item | undefined, call: Call) => void
  readonly backoff: (because: "handler" | "broker", before: ConsumerBackoff.State, after: ConsumerBackoff.State) => void
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

export const make = (
  queue: string,
  hook: Hook | undefined,
  warn: Warn,
  redact: (error: ErrorSummary) => ErrorSummary,
  /** Milliseconds since the epoch. */
  wallClock: () => number
): Reporter => {
  let warnedOfIgnored = false
  const failures = new Set<string>()

  /** A handler that fails from the start must not look like one that is not called. */
  const warnOfFailure = (delivery: Delivery, { summary }: Failure): void => {
    if (failures.has(summary.name) || failures.size >= loggedNames) return
    failures.add(summary.name)
    const { message, name } = redact(summary)
    warn("a handler failed; further errors of this name are not logged", {
      ...subject(delivery),
      error: `${name}: ${message}`
    })
  }

  const emit = (event: Event): void => {
    const onError = (error: unknown) => warn("the audit hook threw", { queue, event: event._tag, error: String(error) })
    try {
      // An async function is a hook as well, and its rejection would end the process.
      const result: unknown = hook?.(event)
      if (result instanceof Promise) result.catch(onError)
    } catch (error) {
      onError(error)
    }
  }
  const subject = ({ attempts, metadata }: Delivery): Subject => ({ queue, id: metadata.id, attempts })

  return {
    received: (delivery) => {
      if (hook !== undefined) emit({ _tag: "Received", ...subject(delivery) })
    },
    failed: (delivery, failure, willRerun) => {
      warnOfFailure(delivery, failure)
      if (hook !== undefined) emit({ _tag: "AttemptFailed", ...subject(delivery), error: failure.summary, willRerun })
    },
    settled: (delivery, settlement) => {
      if (settlement._tag === "DeadLetter" || settlement._tag === "Drop") {
        const target = settlement._tag === "DeadLetter" ? { target: settlement.queue } : {}
        const { error, reason } = settlement
        warn("gave up a message", {
          ...subject(delivery),
          reason,
          ...target,
          error: `${error.name}: ${error.message}`,
          age: Delay.format(Math.max(0, wallClock() - delivery.metadata.firstPublished))
        })
      }
      if (hook !== undefined) emit(settledEvent(subject(delivery), settlement))
    },
    settleFailed: (delivery, { _tag: settlement }, error) => {
      warn("the broker did not take a settlement", { ...subject(delivery), settlement, error: error.message })
      emit({ _tag: "SettleFailed", ...subject(delivery), settlement, error })
    },
    leaseLost: (delivery, error) => {
      warn("a lease could not be extended", { ...subject(delivery), error: error.message })
      emit({ _tag: "LeaseLost", ...subject(delivery), error })
    },
    ignored: (item, call) => {
      if (!warnedOfIgnored) {
        warnedOfIgnored = true
        warn("ignored a call that came too late: the first one decides; further ones are not logged", {
          queue,
          call: call._tag,
          id: item?.delivery.metadata.id
        })
      }
      if (hook === undefined) return
      const of = item === undefined ? { queue, id: "", attempts: 0 } : subject(item.delivery)
      emit({ _tag: "CallIgnored", ...of, call: call._tag })
    },
    backoff: (because, before, after) => {
      if (after.mode._tag === "Paused") {
        warn(`consumer backoff: pausing for ${Delay.format(after.window)}`, { queue, because, level: after.level })
        emit({ _tag: "BackoffEntered", queue, because, level: after.level, wait: after.window })
      } else if (after.mode._tag === "Running" && before.mode._tag !== "Running") {
        emit({ _tag: "BackoffLeft", queue, because })
      }
    }
  }
}
