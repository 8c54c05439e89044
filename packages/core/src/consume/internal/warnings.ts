/** Log lines for operators. Those about mistakes in the program are written once for each kind of mistake. */
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
  readonly redact: (failure: Pick<Failure, "summary" | "chain" | "trace">) => ErrorSummary
}

/** The part of a delivery that is told. */
type Told = Pick<Delivery, "attempts" | "metadata">

export interface Warnings {
  readonly failed: (delivery: Delivery, failure: Failure) => void
  readonly gaveUp: (delivery: Delivery, settlement: Extract<Settlement, { _tag: "DeadLetter" | "Drop" }>) => void
  readonly settleFailed: (delivery: Told, settlement: Settlement["_tag"], error: BrokerError) => void
  readonly leaseLost: (delivery: Delivery, error: BrokerError) => void
  readonly quarantined: (delivery: Delivery, settlement: Settlement["_tag"], error: BrokerError) => void
  readonly ignored: (item: Item | undefined, call: Call) => void
  readonly paused: (because: "handler" | "broker", state: BackoffState.State) => void
  readonly heldBack: (delivery: Delivery) => void
  readonly hookThrew: (event: Event, error: unknown) => void
  /** Code that must not throw, of telemetry or of an adapter, has thrown. */
  readonly threw: (what: string, error: unknown) => void
  /** Logs the failures that no line has counted. */
  readonly close: () => void
}

export const make = ({ queue, redact, timers, wallClock, warn }: Options): Warnings => {
  const failures = FailureLog.make({ timers, warn })
  const defects = new Set<string>()
  let warnedOfIgnored = false
  let warnedOfHeldBack = false
  let warnedOfProblem = false
  const thrown = (error: unknown) => Log.errorFields(truncateError(redact({ summary: summarize(error) })))
  const subject = ({ attempts, metadata }: Told) => ({ queue, messageId: metadata.id, attempts })

  return {
    // A handler that fails from the start must not look like one that is not called.
    failed: (delivery, failure) => {
      const { problem, summary } = failure
      if (problem !== undefined && !warnedOfProblem) {
        warnedOfProblem = true
        const { message } = redact({ summary: { name: summary.name, message: problem } })
        warn(`${message}; further ones are not logged`, subject(delivery))
      }
      failures.add(subject(delivery), redact(failure))
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
      warn("the broker did not take a settlement", { ...subject(delivery), settlement, errorMessage: error.message }),
    leaseLost: (delivery, error) =>
      warn("a lease could not be extended", { ...subject(delivery), errorMessage: error.message }),
    quarantined: (delivery, settlement, error) =>
      warn("in quarantine: the broker refuses every way to settle this message; it is tried again now and then", {
        ...subject(delivery),
        settlement,
        errorMessage: error.message
      }),
    ignored: (item, call) => {
      if (warnedOfIgnored) return
      warnedOfIgnored = true
      warn("ignored a call that came too late: the first one decides; further ones are not logged", {
        queue,
        call: call._tag,
        messageId: item?.delivery.metadata.id
      })
    },
    heldBack: (delivery) => {
      if (warnedOfHeldBack) return
      warnedOfHeldBack = true
      warn(
        "did not ack a message: one before it in its group comes again, and it comes again behind that; further ones are not logged",
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
      if (defects.has(what)) return
      defects.add(what)
      warn(`${what} threw; further errors of it are not logged`, { queue, ...thrown(error) })
    },
    close: failures.close
  }
}
