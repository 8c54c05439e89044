/**
 * The state of a consumer's backoff, as a pure machine: {@link step} takes a state and an event, and returns the next
 * state and commands. The consumer needs only a timer, and a credit: how many messages it accepts. The states are those
 * of NSQ's client protocol (`RDY 0`, wait, `RDY 1`, full `RDY`), see
 * https://nsq.io/clients/building_client_libraries.html#backoff. Nothing is counted outside of `running`, and counts
 * start at 0 after each pause.
 *
 * | state | event | next |
 * | --- | --- | --- |
 * | running | failure that begins a pause | level up, paused for `wait(level)`, credit 0 |
 * | running | another failure | counted |
 * | running | success | counted; with level > 0: level down |
 * | paused | outcome of a delivery in flight | ignored |
 * | paused | the pause has elapsed | probing, credit 1 |
 * | probing | success of the probe | level down; running at full credit, or (`stepwise`, level > 0) paused again |
 * | probing | failure of the probe | level up, paused, whatever the form |
 * | probing | the probe is uncounted | paused again for as long |
 * | running | reconnected | level 0: full credit; level > 0: probing, credit 1 |
 * | paused | reconnected | still paused, credit 0 |
 * | probing | reconnected | probing with another probe, credit 1 |
 */
import * as AttemptWindow from "./internal/attemptWindow.ts"
import type { ConsumerBackoff } from "./ConsumerBackoff.ts"

/** Whether the consumer takes all messages, none, or one as a probe: a test whether handlers succeed again. */
export type Mode =
  | { readonly _tag: "Running" }
  | { readonly _tag: "Paused" }
  /** The delivery whose outcome ends the probing; `undefined` until its handler run has started. */
  | { readonly _tag: "Probing"; readonly probe: DeliveryId | undefined }

/** The state of the machine. */
export interface State {
  readonly mode: Mode
  /** The level: each level doubles the pause; 0 at rest. */
  readonly level: number
  /** Length of the last pause, in milliseconds. */
  readonly pause: number
  /** For the form `consecutive`: the number of failed attempts since the last success or pause. */
  readonly failures: number
  /** For the form `ratio`: the attempts that count. */
  readonly window: AttemptWindow.AttemptWindow
}

/** Identifies a delivery, not a message: each redelivery has a new id. */
export type DeliveryId = string | number

/** A handler run started or ended (`Uncounted`: without counting), a pause elapsed, or the broker reconnected. */
export type Event =
  | { readonly _tag: "Started"; readonly id: DeliveryId }
  | { readonly _tag: "Succeeded"; readonly id: DeliveryId }
  | {
      readonly _tag: "Failed"
      readonly id: DeliveryId
      /** Whether its whole batch failed, and another message of that batch was reported before. */
      readonly isRepeated?: boolean
    }
  | { readonly _tag: "Uncounted"; readonly id: DeliveryId }
  | { readonly _tag: "Elapsed" }
  | { readonly _tag: "Reconnected" }

/** A command to the consumer: change the credit, or send `Elapsed` after `millis` milliseconds. */
export type Command =
  | { readonly _tag: "Credit"; readonly amount: "none" | "one" | "full" }
  | { readonly _tag: "Wait"; readonly millis: number }

/** The next state, and the commands to run in this order. */
export type Step = readonly [State, ReadonlyArray<Command>]

const nothingCounted = { failures: 0, window: AttemptWindow.empty }

/** The state of a consumer that starts. */
export const initial: State = { mode: { _tag: "Running" }, level: 0, pause: 0, ...nothingCounted }

const none: ReadonlyArray<Command> = []
const credit = (amount: "none" | "one" | "full"): Command => ({ _tag: "Credit", amount })

/** Returns the length of a pause at this level, in milliseconds; `random` is from 0 (inclusive) to 1 (exclusive). */
export const wait = (policy: ConsumerBackoff, level: number, random: number): number => {
  const longest = Math.min(policy.multiplier * 2 ** level, policy.maxBackoffDuration)
  return Math.ceil(policy.strategy === "full-jitter" ? random * longest : longest)
}

const paused = (state: State, level: number, pause: number): Step => [
  { ...state, mode: { _tag: "Paused" }, level, pause, ...nothingCounted },
  [credit("none"), { _tag: "Wait", millis: pause }]
]

const failed = (policy: ConsumerBackoff, state: State, random: number): Step => {
  const level = wait(policy, state.level, 1) >= policy.maxBackoffDuration ? state.level : state.level + 1
  return paused(state, level, wait(policy, level, random))
}

const probe = (state: State): Step => [{ ...state, mode: { _tag: "Probing", probe: undefined } }, [credit("one")]]

const resume = (state: State, level: number): Step => [
  { ...state, mode: { _tag: "Running" }, level, ...nothingCounted },
  [credit("full")]
]

/** Whether only a failure or a new connection changes the state or returns a command. */
const isAtRest = (policy: ConsumerBackoff, { failures, level, mode }: State): boolean =>
  policy.maxBackoffDuration === 0 ||
  (policy.form !== "ratio" && mode._tag === "Running" && level === 0 && failures === 0)

/** Whether {@link step} would neither change the state nor return a command, whatever the time and the random number. */
export const ignores = (policy: ConsumerBackoff, state: State, { _tag }: Event): boolean => {
  if (_tag === "Reconnected") return false
  if (policy.maxBackoffDuration === 0) return true
  if (_tag === "Failed" || state.mode._tag !== "Running") return false
  return _tag !== "Succeeded" || isAtRest(policy, state)
}

/**
 * Returns the state after an event, and the commands. `now` is monotonic, in milliseconds; `random` is from 0
 * (inclusive) to 1 (exclusive).
 */
export const step = (policy: ConsumerBackoff, state: State, event: Event, now: number, random: number): Step => {
  if (policy.maxBackoffDuration === 0) return event._tag === "Reconnected" ? [state, [credit("full")]] : [state, none]
  switch (state.mode._tag) {
    case "Running":
      return running(policy, state, event, now, random)
    case "Paused":
      if (event._tag === "Elapsed") return probe(state)
      return event._tag === "Reconnected" ? [state, [credit("none")]] : [state, none]
    case "Probing":
      return probing(policy, state, state.mode.probe, event, random)
  }
}

type Outcome = Extract<Event, { _tag: "Succeeded" | "Failed" }>

/** The state in which an attempt is counted. */
const counted = (policy: ConsumerBackoff, state: State, outcome: Outcome, now: number): State => {
  const hasFailed = outcome._tag === "Failed"
  switch (policy.form) {
    case "nsq":
      return state
    case "consecutive":
      if (!hasFailed) return state.failures === 0 ? state : { ...state, failures: 0 }
      return outcome.isRepeated === true ? state : { ...state, failures: state.failures + 1 }
    case "ratio": {
      const [position, span] =
        typeof policy.window === "number"
          ? [Math.floor(now), policy.window]
          : [AttemptWindow.next(state.window), policy.window.attempts]
      return { ...state, window: AttemptWindow.add(state.window, position, span, hasFailed) }
    }
  }
}

/** Whether the attempts that were counted, of which the last one failed, begin a pause. */
const beginsPause = (policy: ConsumerBackoff, state: State): boolean => {
  switch (policy.form) {
    case "nsq":
      return true
    case "consecutive":
      return state.failures >= policy.failures
    case "ratio": {
      const { attempts, failures } = AttemptWindow.total(state.window)
      return attempts >= policy.minAttempts && failures / attempts >= policy.failureRatio
    }
  }
}

const running = (policy: ConsumerBackoff, state: State, event: Event, now: number, random: number): Step => {
  switch (event._tag) {
    case "Failed": {
      const after = counted(policy, state, event, now)
      return beginsPause(policy, after) ? failed(policy, after, random) : [after, none]
    }
    case "Succeeded": {
      const after = counted(policy, state, event, now)
      return [after.level === 0 ? after : { ...after, level: after.level - 1 }, none]
    }
    case "Reconnected":
      return state.level === 0 ? [state, [credit("full")]] : probe(state)
    default:
      return [state, none]
  }
}

const probing = (
  policy: ConsumerBackoff,
  state: State,
  probed: DeliveryId | undefined,
  event: Event,
  random: number
): Step => {
  // The probe is lost with its connection.
  if (event._tag === "Reconnected") return probe(state)
  if (event._tag === "Elapsed") return [state, none]
  if (event._tag === "Started") {
    return probed === undefined ? [{ ...state, mode: { _tag: "Probing", probe: event.id } }, none] : [state, none]
  }
  if (event.id !== probed) return [state, none]
  switch (event._tag) {
    case "Succeeded": {
      const level = Math.max(0, state.level - 1)
      return policy.recovery === "stepwise" && level > 0
        ? paused(state, level, wait(policy, level, random))
        : resume(state, level)
    }
    case "Failed":
      return failed(policy, state, random)
    case "Uncounted":
      return paused(state, state.level, state.pause)
  }
}
