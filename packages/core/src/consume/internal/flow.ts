/**
 * Decides how many messages may arrive (the credit) and which batches may begin. Four things hold messages back: the gate
 * for failing handlers, the gate for failing settlements, messages that must run alone, and an operator's pause.
 */
import * as BackoffState from "../../policy/BackoffState.ts"
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import type { Timer } from "../../runtime/Timers.ts"
import type { Backoff } from "../../observe/Health.ts"
import type { Capabilities } from "../../port/Capabilities.ts"
import type { Batcher } from "./batcher.ts"
import type { SubscriptionRef } from "./item.ts"
import type { Groups } from "./groups.ts"
import type { HandlerRuntime } from "../../runtime/HandlerRuntime.ts"

export interface Flow {
  /** Closes when handlers fail, by the user's policy. A starting batch is its probe. */
  readonly handler: Gate
  /** Closes when settlements fail. It cannot be disabled. A settlement is its probe. */
  readonly broker: Gate
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
  /** Must be called once, before the first message. */
  readonly connect: (parts: Parts) => void
  /** Whether the consumer is shutting down. */
  readonly isStopping: () => boolean
  /** Stops a consumer for good: sets its credit to 0, and ends all pauses. */
  readonly close: () => void
  /**
   * Whether a delivery may go to a handler. Deliveries can still arrive after the credit was lowered. While a message must
   * run alone, they are returned if that costs no attempt.
   */
  readonly wants: () => boolean
  /** Returns everything that holds messages back, and the gates with a level above 0. */
  readonly backoff: () => ReadonlyArray<Backoff>
}

/** The parts of a consumer that count its messages. Each figure has one owner. */
export interface Parts {
  readonly deliveries: { readonly counts: { readonly [Count in "inFlight" | "lost" | "kept" | "held"]: number } }
  readonly batcher: Pick<Batcher, "size" | "suspects">
  readonly groups: Pick<Groups, "behind">
  readonly arrival: { readonly decoding: () => number }
  readonly suspects: { readonly isAlone: boolean; readonly isThrottled: boolean }
}

/** Returns the messages that no handler has begun: waiting for their batch or their group, or being decoded. */
export const unbegun = ({ arrival, batcher, groups }: Parts): number =>
  batcher.size() + groups.behind() + arrival.decoding()

/**
 * How many messages may be in flight, of which `begun` have left the batcher; 0 stops consuming. With `widest`, the number
 * changes with time, and deliveries that exceed it are kept.
 */
export type Window = number | (((begun: number) => number) & { readonly widest?: number })

export interface Dependencies extends GateDependencies {
  readonly policy: ConsumerBackoff.ConsumerBackoff
  readonly capabilities: Pick<Capabilities, "uncountedRelease">
  readonly outlet: SubscriptionRef
  readonly window: Window
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
  const { capabilities, onDefect, outlet, policy, timers, window } = dependencies
  let parts: Parts | undefined
  let sentCredit = 0
  let isRenewing = false
  let isPaused = false
  let isStopping = false

  const handler = new Gate(policy, "handler", dependencies)
  const broker = new Gate(ConsumerBackoff.nsq(), "broker", dependencies)

  const update = (): void => {
    const { subscription } = outlet
    if (parts === undefined || subscription === undefined) return
    const credit = isPaused || isStopping ? 0 : creditOf(parts, window, handler, broker)
    if (credit === sentCredit || isRenewing) return
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
    if (isPaused === held || isStopping) return
    isPaused = held
    dependencies.onChange()
  }

  return {
    handler,
    broker,
    mayStart: () =>
      !isPaused &&
      (handler.allowance === "full" || handler.mayStart()) &&
      (broker.allowance === "full" || mayProbe(broker, parts)),
    onStart: (key) => {
      if (!handler.atRest) handler.signal({ _tag: "Started", id: key })
      // While the broker is probed, the credit allows one message more than have begun.
      if (broker.allowance === "one") update()
    },
    batchLimit: () => (handler.allowance === "full" && broker.allowance === "full" ? Number.POSITIVE_INFINITY : 1),
    update,
    wants: () =>
      !isStopping && !(parts?.suspects.isAlone === true && capabilities.uncountedRelease) && widest(window) > 0,
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
    connect: (all) => void (parts = all),
    isStopping: () => isStopping,
    close: () => {
      isStopping = true
      update()
      handler.close()
      broker.close()
    },
    backoff: () => {
      const byHand = isPaused ? [heldBack("operator")] : []
      // Kept messages use up the whole credit.
      const room = widest(window)
      const byKept = room > 0 && (parts?.deliveries.counts.kept ?? 0) >= room + spare ? [heldBack("broker")] : []
      return [...byHand, ...byKept, ...[handler, broker].flatMap((gate) => gate.backoff() ?? [])]
    }
  }
}

const widest = (window: Window): number => (typeof window === "number" ? window : (window.widest ?? window(0)))

const maxInFlight = (window: Window, begun: number): number => (typeof window === "number" ? window : window(begun))

/** Whether messages may begin to provide the broker's probe: not if a failed settlement waits, because that is the probe. */
const mayProbe = (broker: Gate, parts: Parts | undefined): boolean =>
  broker.allowance === "one" && parts?.deliveries.counts.held === 0 && broker.mayStart()

/** Returns the credit that the consumer can use. */
const creditOf = (parts: Parts, window: Window, handler: Gate, broker: Gate): number => {
  const { batcher, deliveries, suspects } = parts
  const { inFlight, kept, lost } = deliveries.counts
  // No other message may arrive while a handler runs the probe.
  if (!handler.mayStart() || (broker.allowance !== "full" && !mayProbe(broker, parts))) return 0
  // A crash costs every message in flight an attempt.
  if (batcher.suspects() > 0 || suspects.isAlone) return 0
  const begun = inFlight - unbegun(parts)
  // Handlers may still hold lost deliveries. These use room, although the broker does not count them.
  const room = Math.max(0, maxInFlight(window, begun - kept) + Math.min(kept, spare) - lost)
  // A probe does not wait for running handlers.
  if (handler.allowance === "one" || broker.allowance === "one") return Math.min(room, begun - lost + 1)
  return suspects.isThrottled ? Math.min(room, inFlight - lost + 1) : room
}

export interface GateDependencies extends Pick<HandlerRuntime, "random" | "timers" | "wallClock"> {
  /** Called when a gate or the operator has changed what may begin. */
  readonly onChange: () => void
  /** Called when the mode of a gate has changed, before `onChange`. */
  readonly onTransition: (because: "handler" | "broker", before: BackoffState.State, after: BackoffState.State) => void
}

/** If a success changes nothing, only a failure or a new connection does. */
const success: BackoffState.Event = { _tag: "Succeeded", id: 0 }

const states = { Running: "running", Paused: "paused", Probing: "probing" } as const

/** A running consumer backoff: its state, its timer, and how many messages it lets begin. */
export class Gate {
  /** How many messages may begin: none in a pause, one while probing, otherwise all. Read for every message. */
  allowance: "none" | "one" | "full" = "full"
  /** Whether only a failure or a new connection can change the state. Callers then skip all other signals. */
  atRest: boolean
  readonly #policy: ConsumerBackoff.ConsumerBackoff
  readonly #because: "handler" | "broker"
  readonly #dependencies: GateDependencies
  #state = BackoffState.initial
  #timer: Timer | undefined = undefined
  #until: number | undefined = undefined
  #error: string | undefined = undefined

  constructor(policy: ConsumerBackoff.ConsumerBackoff, because: "handler" | "broker", dependencies: GateDependencies) {
    this.#policy = policy
    this.#because = because
    this.#dependencies = dependencies
    this.atRest = BackoffState.ignores(policy, this.#state, success)
  }

  /** Whether a batch may start: while running, and while probing until the probe has started. */
  mayStart(): boolean {
    const { mode } = this.#state
    return mode._tag === "Running" || (mode._tag === "Probing" && mode.probe === undefined)
  }

  /** Returns the state for health reports; `undefined` while running at level 0. */
  backoff(): Backoff | undefined {
    const { level, mode } = this.#state
    if (mode._tag === "Running" && level === 0) return undefined
    const until = mode._tag === "Paused" ? this.#until : undefined
    const error = this.#error
    return { because: this.#because, state: states[mode._tag], level, until, ...(error !== undefined && { error }) }
  }

  /** Signals that a settlement has failed. */
  fail(event: BackoffState.Event, { message }: Error): void {
    this.#error = message
    this.signal(event)
  }

  signal(event: BackoffState.Event): void {
    const before = this.#state
    if (BackoffState.ignores(this.#policy, before, event)) return
    const { onChange, onTransition, random, timers } = this.#dependencies
    const [after, commands] = BackoffState.step(this.#policy, before, event, timers.now(), random())
    this.#state = after
    this.atRest = BackoffState.ignores(this.#policy, after, success)
    for (const command of commands) {
      if (command._tag === "Wait") this.#pause(command.millis)
      else this.allowance = command.amount
    }
    if (before.mode._tag !== after.mode._tag) onTransition(this.#because, before, after)
    if (commands.length > 0) onChange()
  }

  /** Cancels the timer, so a pause no longer ends. */
  close(): void {
    this.#dependencies.timers.cancel(this.#timer)
  }

  #pause(millis: number): void {
    const { timers, wallClock } = this.#dependencies
    this.#until = wallClock() + millis
    this.#timer = timers.after(millis, () => this.signal({ _tag: "Elapsed" }))
  }
}

/** Returns the strictest state of several backoffs, which is that of their consumer. */
export const strictest = (backoff: ReadonlyArray<Backoff>): Backoff["state"] =>
  (["paused", "probing"] as const).find((state) => backoff.some((each) => each.state === state)) ?? "running"
