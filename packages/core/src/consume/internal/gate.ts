/** A running consumer backoff: its state, its timer, and how many messages it lets begin. */
import * as BackoffState from "../../policy/BackoffState.ts"
import type * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import type { Backoff } from "../../observe/Health.ts"
import type { Timer } from "../../runtime/Timers.ts"
import type { Runtime } from "./runtime.ts"

export interface Gate {
  /** How many messages may begin: none in a pause, one while probing, otherwise all. Read for every message. */
  allowance: "none" | "one" | "full"
  /** Whether only a failure or a new connection can change the state. Callers then skip all other signals. */
  atRest: boolean
  /** Whether a batch may start: while running, and while probing until the probe has started. */
  readonly mayStart: () => boolean
  /** Returns the state for health reports; `undefined` while running at level 0. */
  readonly backoff: () => Backoff | undefined
  readonly signal: (event: BackoffState.Event) => void
  /** Cancels the timer, so a pause no longer ends. */
  readonly close: () => void
}

export interface Dependencies extends Pick<Runtime, "random" | "timers" | "wallClock"> {
  readonly because: "handler" | "broker"
  /** Called when the allowance may have changed. */
  readonly onChange: () => void
  /** Called when the mode has changed, before `onChange`. */
  readonly onTransition: (because: "handler" | "broker", before: BackoffState.State, after: BackoffState.State) => void
}

/** If a success changes nothing, only a failure or a new connection does. */
const success: BackoffState.Event = { _tag: "Succeeded", id: 0 }

const states = { Running: "running", Paused: "paused", Probing: "probing" } as const

export const make = (policy: ConsumerBackoff.ConsumerBackoff, dependencies: Dependencies): Gate => {
  const { because, random, timers, wallClock } = dependencies
  let state = BackoffState.initial
  let timer: Timer | undefined
  let until: number | undefined

  const pause = (millis: number): void => {
    until = wallClock() + millis
    timer = timers.after(millis, () => signal({ _tag: "Elapsed" }))
  }

  const signal = (event: BackoffState.Event): void => {
    if (BackoffState.ignores(policy, state, event)) return
    const before = state
    const [after, commands] = BackoffState.step(policy, before, event, timers.now(), random())
    state = after
    gate.atRest = BackoffState.ignores(policy, after, success)
    for (const command of commands) {
      if (command._tag === "Wait") pause(command.millis)
      else gate.allowance = command.amount
    }
    if (before.mode._tag !== after.mode._tag) dependencies.onTransition(because, before, after)
    if (commands.length > 0) dependencies.onChange()
  }

  const gate: Gate = {
    allowance: "full",
    atRest: BackoffState.ignores(policy, state, success),
    mayStart: () => state.mode._tag === "Running" || (state.mode._tag === "Probing" && state.mode.probe === undefined),
    backoff: () => {
      const { level, mode } = state
      if (mode._tag === "Running" && level === 0) return undefined
      const isPaused = mode._tag === "Paused"
      return { because, state: states[mode._tag], level, until: isPaused ? until : undefined }
    },
    signal,
    close: () => timers.cancel(timer)
  }
  return gate
}

/** Returns the strictest state of several backoffs, which is that of their consumer. */
export const strictest = (backoff: ReadonlyArray<Backoff>): Backoff["state"] =>
  (["paused", "probing"] as const).find((state) => backoff.some((each) => each.state === state)) ?? "running"
