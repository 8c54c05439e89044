/**
 * Decides how many messages may arrive (the credit) and which batches may begin. Four things hold messages back: the gate
 * for failing handlers, the gate for failing settlements, messages that must run alone, and an operator's pause.
 */
import type * as BackoffState from "../../policy/BackoffState.ts"
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Backoff } from "../../observe/Health.ts"
import type { Capabilities } from "../../port/Capabilities.ts"
import * as Gate from "./gate.ts"
import type { InFlightCounters, SubscriptionRef } from "./item.ts"

export interface Flow {
  /** Closes when handlers fail, by the user's policy. A starting batch is its probe. */
  readonly handler: Gate.Gate
  /** Closes when settlements fail. It cannot be disabled. A settlement is its probe. */
  readonly broker: Gate.Gate
  /** Whether the flow lets a batch start. */
  readonly mayStart: () => boolean
  /** Must be called when a batch starts, with the key of its first message. */
  readonly onStart: (key: BackoffState.DeliveryId) => void
  /** Returns the most messages of a batch that starts now. */
  readonly batchLimit: () => number
  /** Sends the current credit to the broker if it has changed. */
  readonly update: () => void
  /**
   * Sends a new connection its credit. While `recover` runs, no credit is sent: it could be too high until `recover` has
   * updated the counters.
   */
  readonly renew: (recover: () => void) => void
  /** Stops consuming and starting batches until {@link resume}. */
  readonly pause: () => void
  readonly resume: () => void
  /** Sets the credit of a closing consumer to 0, and ends all pauses. */
  readonly close: () => void
  /**
   * Whether a delivery may go to a handler. Deliveries can still arrive after the credit was lowered. While a message must
   * run alone, they are returned if that costs no attempt.
   */
  readonly wants: () => boolean
  /** Returns everything that holds messages back, and the gates with a level above 0. */
  readonly backoff: () => ReadonlyArray<Backoff>
}

/**
 * How many messages may be in flight, of which `begun` have left the batcher; 0 stops consuming. With `widest`, the number
 * changes with time, and deliveries that exceed it are kept.
 */
export type Window = number | (((begun: number) => number) & { readonly widest?: number })

export interface Dependencies extends Omit<Gate.Dependencies, "because" | "onChange"> {
  readonly policy: ConsumerBackoff.ConsumerBackoff
  readonly capabilities: Pick<Capabilities, "uncountedRelease">
  readonly outlet: SubscriptionRef
  readonly load: InFlightCounters
  readonly window: Window
  readonly timers: Timers
  /** Called when a gate or the operator has changed what may begin. */
  readonly onChange: () => void
  readonly onDefect: (error: unknown) => void
}

/** How many kept messages do not reduce the credit. Further ones do. */
const spare = 100

/** Milliseconds until the credit is sent again after the adapter threw. */
const creditRetryDelay = 1000

/** Returns a pause that ends with its cause, not at a fixed time. */
const heldBack = (because: Backoff["because"]): Backoff => ({ because, state: "paused", level: 0, until: undefined })

/** The subscription starts with a credit of 0. */
export const make = (dependencies: Dependencies): Flow => {
  const { capabilities, load, onDefect, outlet, policy, timers, window } = dependencies
  let sentCredit = 0
  let isRenewing = false
  let isPaused = false

  const handler = Gate.make(policy, { ...dependencies, because: "handler" })
  const broker = Gate.make(ConsumerBackoff.nsq(), { ...dependencies, because: "broker" })

  const wanted = (): number => (isPaused ? 0 : creditOf(load, window, handler, broker))

  const update = (): void => {
    const credit = wanted()
    const { subscription } = outlet
    if (credit === sentCredit || isRenewing || subscription === undefined) return
    sentCredit = credit
    try {
      subscription.credit(credit)
    } catch (error) {
      sentCredit = -1
      timers.after(creditRetryDelay, update)
      onDefect(error)
    }
  }

  const hold = (held: boolean): void => {
    if (isPaused === held || load.isStopping) return
    isPaused = held
    dependencies.onChange()
  }

  return {
    handler,
    broker,
    mayStart: () =>
      !isPaused &&
      (handler.allowance === "full" || handler.mayStart()) &&
      (broker.allowance === "full" || mayProbe(broker, load)),
    onStart: (key) => {
      if (!handler.atRest) handler.signal({ _tag: "Started", id: key })
      // While the broker is probed, the credit allows one message more than have begun.
      if (broker.allowance === "one") update()
    },
    batchLimit: () => (handler.allowance === "full" && broker.allowance === "full" ? Number.POSITIVE_INFINITY : 1),
    update,
    wants: () => !load.isStopping && !(load.isAlone && capabilities.uncountedRelease) && widest(window) > 0,
    renew: (recover) => {
      isRenewing = true
      recover()
      handler.signal({ _tag: "Reconnected" })
      broker.signal({ _tag: "Reconnected" })
      isRenewing = false
      sentCredit = -1
      update()
    },
    pause: () => hold(true),
    resume: () => hold(false),
    close: () => {
      update()
      handler.close()
      broker.close()
    },
    backoff: () => {
      const byHand = isPaused ? [heldBack("operator")] : []
      // Kept messages use up the whole credit.
      const room = widest(window)
      const byKept = room > 0 && load.kept >= room + spare ? [heldBack("broker")] : []
      return [...byHand, ...byKept, ...[handler, broker].flatMap((gate) => gate.backoff() ?? [])]
    }
  }
}

const widest = (window: Window): number => (typeof window === "number" ? window : (window.widest ?? window(0)))

const maxInFlight = (window: Window, begun: number): number => (typeof window === "number" ? window : window(begun))

/** Whether messages may begin to provide the broker's probe: not if a failed settlement waits, because that is the probe. */
const mayProbe = (broker: Gate.Gate, { held }: InFlightCounters): boolean =>
  broker.allowance === "one" && held === 0 && broker.mayStart()

/** Returns the credit that the consumer can use. */
const creditOf = (load: InFlightCounters, window: Window, handler: Gate.Gate, broker: Gate.Gate): number => {
  const { behind, buffered, decoding, inFlight, isAlone, isStopping, isThrottledForSuspect, kept, lost, suspects } =
    load
  // No other message may arrive while a handler runs the probe.
  if (isStopping || !handler.mayStart()) return 0
  if (broker.allowance !== "full" && !mayProbe(broker, load)) return 0
  // A crash costs every message in flight an attempt.
  if (suspects > 0 || isAlone) return 0
  const begun = inFlight - buffered - behind - decoding
  // Handlers may still hold lost deliveries. These use room, although the broker does not count them.
  const room = Math.max(0, maxInFlight(window, begun - kept) + Math.min(kept, spare) - lost)
  // A probe does not wait for running handlers.
  if (handler.allowance === "one" || broker.allowance === "one") return Math.min(room, begun - lost + 1)
  return isThrottledForSuspect ? Math.min(room, inFlight - lost + 1) : room
}
