/** Log lines for operators. Those about mistakes of handlers are written once for each kind of mistake. */
import type { Call } from "../../policy/Acknowledgement.ts"
import type { BrokerError } from "../../port/BrokerError.ts"
import type * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import * as Delay from "../../message/Delay.ts"
import type { Delivery } from "../../message/Delivery.ts"
import type { Event } from "../../observe/Event.ts"
import { type Failure, summarize } from "../../policy/Failure.ts"
import { truncateError, type ErrorSummary } from "../../message/Metadata.ts"
import type { Settlement } from "../../message/Settlement.ts"
import type { Item } from "./item.ts"
import type { Runtime } from "./runtime.ts"

export interface Options extends Pick<Runtime, "wallClock"> {
  readonly queue: string
  /** Writes a structured warning. */
  readonly warn: (message: string, annotations: Readonly<Record<string, unknown>>) => void
  /** The error of a failure without what the log must not show. */
  readonly redact: (failure: Failure) => ErrorSummary
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
  readonly paused: (because: "handler" | "broker", state: ConsumerBackoff.State) => void
  readonly heldBack: (delivery: Delivery) => void
  readonly hookThrew: (event: Event, error: unknown) => void
  /** Code that must not throw, of telemetry or of an adapter, has thrown. */
  readonly threw: (what: string, error: unknown) => void
}

/** Number of names of errors whose first failure is logged. */
const loggedNames = 100

export const make = ({ queue, redact, wallClock, warn }: Options): Warnings => {
  const names = new Set<string>()
  const defects = new Set<string>()
  let warnedOfIgnored = false
  let warnedOfHeldBack = false
  let warnedOfProblem = false
  const subject = ({ attempts, metadata }: Told) => ({ queue, id: metadata.id, attempts })

  return {
    // A handler that fails from the start must not look like one that is not called.
    failed: (delivery, failure) => {
      const { problem, summary } = failure
      if (problem !== undefined && !warnedOfProblem) {
        warnedOfProblem = true
        warn(`${problem}; further ones are not logged`, subject(delivery))
      }
      const known = truncateError({ name: summary.name, message: "" }).name
      if (names.has(known) || names.size >= loggedNames) return
      names.add(known)
      const { message, name, stack } = truncateError(redact(failure))
      warn("a handler failed; further errors of this name are not logged", {
        ...subject(delivery),
        error: `${name}: ${message}`,
        ...(stack === undefined ? {} : { stack })
      })
    },
    gaveUp: (delivery, settlement) => {
      const target = settlement._tag === "DeadLetter" ? { target: settlement.queue } : {}
      const { reason } = settlement
      const error = truncateError(settlement.error)
      warn("gave up a message", {
        ...subject(delivery),
        reason,
        ...target,
        error: `${error.name}: ${error.message}`,
        ...(error.stack === undefined ? {} : { stack: error.stack }),
        age: Delay.format(Math.max(0, wallClock() - delivery.metadata.firstPublished))
      })
    },
    settleFailed: (delivery, settlement, error) =>
      warn("the broker did not take a settlement", { ...subject(delivery), settlement, error: error.message }),
    leaseLost: (delivery, error) =>
      warn("a lease could not be extended", { ...subject(delivery), error: error.message }),
    quarantined: (delivery, settlement, error) =>
      warn("in quarantine: the broker refuses every way to settle this message; it is tried again now and then", {
        ...subject(delivery),
        settlement,
        error: error.message
      }),
    ignored: (item, call) => {
      if (warnedOfIgnored) return
      warnedOfIgnored = true
      warn("ignored a call that came too late: the first one decides; further ones are not logged", {
        queue,
        call: call._tag,
        id: item?.delivery.metadata.id
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
    paused: (because, { level, window }) =>
      warn(`consumer backoff: pausing for ${Delay.format(window)}`, { queue, because, level }),
    hookThrew: ({ _tag: event }, error) => warn("onEvent threw", { queue, event, error: shown(error) }),
    threw: (what, error) => {
      if (defects.has(what)) return
      defects.add(what)
      warn(`${what} threw; further errors of it are not logged`, { queue, error: shown(error) })
    }
  }
}

const shown = (error: unknown): string => {
  const { message, name } = summarize(error)
  return `${name}: ${message}`
}
