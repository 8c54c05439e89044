/** A running consumer backoff: the pure machine, its timer, and the credit that it allows at the moment. */
import * as ConsumerBackoff from "../../policy/ConsumerBackoff.ts"
import type { Backoff } from "../../observe/Health.ts"
import type { Timers } from "../../adapter-kit/Timers.ts"

export interface Gate {
  /** Messages that may be in progress: 0, 1, or as many as the consumer likes. */
  readonly allowance: () => number
  /** True while a probe may start, or when the gate is wide open. */
  readonly mayStart: () => boolean
  /** `undefined` while it is wide open and at level 0. */
  readonly backoff: () => Backoff | undefined
  readonly signal: (event: ConsumerBackoff.Event) => void
  readonly close: () => void
}

const states = { Running: "running", Paused: "paused", Probing: "probing" } as const

export const make = (
  policy: ConsumerBackoff.ConsumerBackoff,
  env: {
    readonly because: Backoff["because"]
    readonly timers: Timers
    readonly random: () => number
    /** Milliseconds since the epoch. */
    readonly wallClock: () => number
    readonly onChange: () => void
    readonly onTransition: (before: ConsumerBackoff.State, after: ConsumerBackoff.State) => void
  }
): Gate => {
  let state = ConsumerBackoff.initial
  let allowance = Number.POSITIVE_INFINITY
  let timer: ReturnType<Timers["after"]> | undefined
  let until: number | undefined

  const pause = (millis: number): void => {
    until = env.wallClock() + millis
    timer = env.timers.after(millis, () => signal({ _tag: "Elapsed" }))
  }

  const signal = (event: ConsumerBackoff.Event): void => {
    // With every message, and nearly always nothing to do.
    if (ConsumerBackoff.ignores(policy, state, event)) return
    const before = state
    const [after, commands] = ConsumerBackoff.step(policy, before, event, env.random())
    state = after
    for (const command of commands) {
      if (command._tag === "Wait") pause(command.millis)
      else allowance = { none: 0, one: 1, full: Number.POSITIVE_INFINITY }[command.amount]
    }
    if (before.mode._tag !== after.mode._tag) env.onTransition(before, after)
    if (commands.length > 0) env.onChange()
  }

  return {
    allowance: () => allowance,
    mayStart: () => state.mode._tag === "Running" || (state.mode._tag === "Probing" && state.mode.probe === undefined),
    backoff: () => {
      const { level, mode } = state
      if (mode._tag === "Running" && level === 0) return undefined
      const isPaused = mode._tag === "Paused"
      return { because: env.because, state: states[mode._tag], level, until: isPaused ? until : undefined }
    },
    signal,
    close: () => env.timers.cancel(timer)
  }
}
