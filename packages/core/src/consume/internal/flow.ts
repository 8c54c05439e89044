/**
 * How much may come in, and what may begin: the credit of the subscription, held back by two gates, one for handlers that
 * fail and one for a broker that takes no settlements, by messages that must run alone, and by an operator.
 */
import type * as BackoffState from "../../policy/BackoffState.ts"
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import type { Timers } from "../../runtime/Timers.ts"
import type { Backoff } from "../../observe/Health.ts"
import type { Capabilities } from "../../port/Capabilities.ts"
import * as Gate from "./gate.ts"
import type { InFlightCounters, SubscriptionRef } from "./item.ts"

export interface Flow {
  /** Closes when handlers fail, under the policy of the user. A batch that starts is its probe. */
  readonly handler: Gate.Gate
  /** Closes when the broker takes no settlements. It cannot be turned off. A settlement that is sent is its probe. */
  readonly broker: Gate.Gate
  /** True when a batch may start, as far as the flow decides it. */
  readonly mayStart: () => boolean
  /** Must be called when a batch starts. `key` is its first message's. */
  readonly onStart: (key: BackoffState.DeliveryId) => void
  /** Most messages of a batch that starts now. */
  readonly batchLimit: () => number
  /** Gives the broker the credit that is wanted now, unless it has that credit already. */
  readonly update: () => void
  /**
   * Gives a new connection its credit, whatever the lost one had. While `recover` runs, no credit is given: before all
   * that it changes is changed, the credit could be too much.
   */
  readonly renew: (recover: () => void) => void
  /** Takes no messages and starts no batches until {@link resume}. */
  readonly pause: () => void
  readonly resume: () => void
  /** Takes the credit away from a consumer that shuts down, and ends all pauses. */
  readonly close: () => void
  /**
   * Whether handlers take messages. A delivery may have been on its way when the credit was taken away; beside a message
   * that must be alone, it goes back where that costs no attempt.
   */
  readonly wants: () => boolean
  /** All that holds messages back, and the gates whose level is above 0. */
  readonly backoff: () => ReadonlyArray<Backoff>
}

/**
 * Number of messages that may be in flight, of which `begun` have left their batcher; 0 when none is wanted. With `widest`,
 * that may change at any time: what was on its way is kept.
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

/** Kept messages for which the broker gives further ones; more of them take the room of others. */
const spare = 100

/** Milliseconds until an adapter that threw is given its credit again. */
const againAfter = 1000

/** A pause that ends with its cause, and not at a time. */
const heldBack = (because: Backoff["because"]): Backoff => ({ because, state: "paused", level: 0, until: undefined })

/** The subscription starts with a credit of 0. */
export const make = (dependencies: Dependencies): Flow => {
  const { capabilities, load, onDefect, outlet, policy, timers, window } = dependencies
  let given = 0
  let isRenewing = false
  let isPaused = false

  const handler = Gate.make(policy, { ...dependencies, because: "handler" })
  const broker = Gate.make(ConsumerBackoff.nsq(), { ...dependencies, because: "broker" })

  const wanted = (): number => (isPaused ? 0 : creditOf(load, window, handler, broker))

  const update = (): void => {
    const credit = wanted()
    const { subscription } = outlet
    if (credit === given || isRenewing || subscription === undefined) return
    given = credit
    try {
      subscription.credit(credit)
    } catch (error) {
      given = -1
      timers.after(againAfter, update)
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
      // While the broker is probed, the credit is for one message beside those that have begun.
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
      given = -1
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
      // Kept messages have taken the room of all others.
      const room = widest(window)
      const byKept = room > 0 && load.kept >= room + spare ? [heldBack("broker")] : []
      return [...byHand, ...byKept, ...[handler, broker].flatMap((gate) => gate.backoff() ?? [])]
    }
  }
}

const widest = (window: Window): number => (typeof window === "number" ? window : (window.widest ?? window(0)))

const most = (window: Window, begun: number): number => (typeof window === "number" ? window : window(begun))

/**
 * Whether messages may begin so that one of their settlements becomes the broker's probe: not where one waits that it did
 * not take before, which is the probe, and not while a probe is under way. A slow handler among them holds up nobody.
 */
const mayProbe = (broker: Gate.Gate, { held }: InFlightCounters): boolean =>
  broker.allowance === "one" && held === 0 && broker.mayStart()

/** The credit that the consumer can use. */
const creditOf = (load: InFlightCounters, window: Window, handler: Gate.Gate, broker: Gate.Gate): number => {
  const { behind, buffered, decoding, inFlight, isAlone, isStopping, isThrottledForSuspect, kept, lost, suspects } =
    load
  // While a handler has the probe, nothing comes beside it.
  if (isStopping || !handler.mayStart()) return 0
  if (broker.allowance !== "full" && !mayProbe(broker, load)) return 0
  // A crash is charged to all that is in flight.
  if (suspects > 0 || isAlone) return 0
  const begun = inFlight - buffered - behind - decoding
  // Handlers may still have deliveries of a lost connection. They take room, though the broker does not count them.
  const room = Math.max(0, most(window, begun - kept) + Math.min(kept, spare) - lost)
  // A probe does not wait for handlers that are at work already.
  if (handler.allowance === "one" || broker.allowance === "one") return Math.min(room, begun - lost + 1)
  return isThrottledForSuspect ? Math.min(room, inFlight - lost + 1) : room
}
