/**
 * Consumer backoff: pauses of a whole consumer while something that all its messages need is down. For the backoff of one
 * message, see `Backoff`.
 *
 * It is a pure state machine: {@link step} takes a state and an event, and returns the next state and commands. The
 * consumer needs only a credit and a timer. The states are those of NSQ's client protocol (`RDY 0`, wait, `RDY 1`, full
 * `RDY`), see https://nsq.io/clients/building_client_libraries.html#backoff.
 *
 * | state | event | next |
 * | --- | --- | --- |
 * | running | failure | level up, paused for `wait(level)`, credit 0 |
 * | running | success, level > 0 | level down |
 * | paused | outcome of a delivery in flight | ignored |
 * | paused | the pause has elapsed | probing, credit 1 |
 * | probing | success of the probe | level down; running at full credit, or (`stepwise`, level > 0) paused again |
 * | probing | failure of the probe | level up, paused, as in running |
 * | probing | the probe is uncounted | paused again for as long |
 * | running | reconnected | level 0: full credit; level > 0: probing, credit 1 |
 * | paused | reconnected | still paused, credit 0 |
 * | probing | reconnected | probing with another probe, credit 1 |
 */
import * as Delay from "../message/Delay.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** How a consumer slows down and recovers. See {@link Options}. */
export interface ConsumerBackoff {
  /** In milliseconds: at level n, a pause is `multiplier x 2^n`. */
  readonly multiplier: number
  /** The longest pause, in milliseconds; 0 turns consumer backoff off. */
  readonly maxBackoffDuration: number
  readonly strategy: "exponential" | "full-jitter"
  readonly recovery: "resume" | "stepwise"
}

/** Options of {@link make}. */
export interface Options {
  /** The unit of pauses, 1 ms to 24 hours. Default: 1 second, for pauses of 2, 4, 8, … seconds. */
  readonly multiplier?: Delay.DurationInput | undefined
  /** The longest pause, 0 to 24 hours; 0 turns consumer backoff off. Default: 2 minutes. */
  readonly maxBackoffDuration?: Delay.DurationInput | undefined
  /** `full-jitter`: each pause is random, from 0 to the exponential one or the longest. Default: `exponential`. */
  readonly strategy?: "exponential" | "full-jitter" | undefined
  /** After a successful probe: full credit at once, or one level at a time. Default: `resume`. */
  readonly recovery?: "resume" | "stepwise" | undefined
}

const kinds: OptionNames.Of<Options> = {
  multiplier: Delay.kind(1, Delay.max),
  maxBackoffDuration: Delay.kind(0, Delay.max),
  strategy: OptionKind.oneOf(["exponential", "full-jitter"]),
  recovery: OptionKind.oneOf(["resume", "stepwise"])
}

/**
 * Builds a consumer backoff.
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range
 *
 * @example
 * ```ts
 * import { ConsumerBackoff } from "@requeue/core"
 *
 * const policy = ConsumerBackoff.make({ multiplier: "5 seconds" })
 * ;[1, 2, 3, 4, 5].map((level) => ConsumerBackoff.wait(policy, level, 0)) // => [10000, 20000, 40000, 80000, 120000]
 * ```
 */
export const make = (options: Options = {}): ConsumerBackoff => {
  OptionNames.check("ConsumerBackoff.make", options, kinds)
  const { maxBackoffDuration = 120_000, multiplier = 1000, recovery = "resume", strategy = "exponential" } = options
  return {
    multiplier: Delay.parse("multiplier", multiplier),
    maxBackoffDuration: Delay.parse("maxBackoffDuration", maxBackoffDuration),
    strategy,
    recovery
  }
}

/** No consumer backoff: the default. */
export const off: ConsumerBackoff = make({ maxBackoffDuration: 0 })

/** Whether the consumer takes all messages, none, or one as a probe. */
export type Mode =
  | { readonly _tag: "Running" }
  | { readonly _tag: "Paused" }
  /** The delivery whose outcome decides; `undefined` until one has started. */
  | { readonly _tag: "Probing"; readonly probe: DeliveryId | undefined }

/** The state of the machine. */
export interface State {
  readonly mode: Mode
  /** How far the pauses have grown; 0 at rest. */
  readonly level: number
  /** Length of the last pause, in milliseconds. */
  readonly window: number
}

/** Identifies a delivery, not a message: each redelivery has an id of its own. */
export type DeliveryId = string | number

/** A handler run started or ended (`Uncounted`: without counting), a pause elapsed, or the broker reconnected. */
export type Event =
  | { readonly _tag: "Started"; readonly id: DeliveryId }
  | { readonly _tag: "Succeeded"; readonly id: DeliveryId }
  | { readonly _tag: "Failed"; readonly id: DeliveryId }
  | { readonly _tag: "Uncounted"; readonly id: DeliveryId }
  | { readonly _tag: "Elapsed" }
  | { readonly _tag: "Reconnected" }

/** A command to the consumer: change the credit, or send `Elapsed` after `millis` milliseconds. */
export type Command =
  | { readonly _tag: "Credit"; readonly amount: "none" | "one" | "full" }
  | { readonly _tag: "Wait"; readonly millis: number }

/** The next state, and the commands to run in this order. */
export type Step = readonly [State, ReadonlyArray<Command>]

/** The state of a new consumer. */
export const initial: State = { mode: { _tag: "Running" }, level: 0, window: 0 }

const none: ReadonlyArray<Command> = []
const credit = (amount: "none" | "one" | "full"): Command => ({ _tag: "Credit", amount })

const exponential = (policy: ConsumerBackoff, level: number): number => policy.multiplier * 2 ** level

/** Returns the length of a pause at this level, in milliseconds; `random` is from 0 (inclusive) to 1 (exclusive). */
export const wait = (policy: ConsumerBackoff, level: number, random: number): number => {
  const longest = Math.min(exponential(policy, level), policy.maxBackoffDuration)
  return Math.ceil(policy.strategy === "full-jitter" ? random * longest : longest)
}

const pause = (state: State, level: number, window: number): Step => [
  { ...state, mode: { _tag: "Paused" }, level, window },
  [credit("none"), { _tag: "Wait", millis: window }]
]

const failed = (policy: ConsumerBackoff, state: State, random: number): Step => {
  const level = exponential(policy, state.level) >= policy.maxBackoffDuration ? state.level : state.level + 1
  return pause(state, level, wait(policy, level, random))
}

const probe = (state: State): Step => [{ ...state, mode: { _tag: "Probing", probe: undefined } }, [credit("one")]]

const resume = (state: State, level: number): Step => [{ ...state, mode: { _tag: "Running" }, level }, [credit("full")]]

/** Whether {@link step} would change nothing and return no command, whatever the random number. */
export const ignores = (policy: ConsumerBackoff, { level, mode }: State, { _tag }: Event): boolean =>
  policy.maxBackoffDuration === 0
    ? _tag !== "Reconnected"
    : mode._tag === "Running" && level === 0 && _tag !== "Failed" && _tag !== "Reconnected"

/** Returns the state and the commands after an event. `random` is from 0 (inclusive) to 1 (exclusive). */
export const step = (policy: ConsumerBackoff, state: State, event: Event, random: number): Step => {
  if (policy.maxBackoffDuration === 0) return event._tag === "Reconnected" ? [state, [credit("full")]] : [state, none]
  switch (state.mode._tag) {
    case "Running":
      return running(policy, state, event, random)
    case "Paused":
      if (event._tag === "Elapsed") return probe(state)
      return event._tag === "Reconnected" ? [state, [credit("none")]] : [state, none]
    case "Probing":
      return probing(policy, state, state.mode.probe, event, random)
  }
}

const running = (policy: ConsumerBackoff, state: State, event: Event, random: number): Step => {
  switch (event._tag) {
    case "Failed":
      return failed(policy, state, random)
    case "Succeeded":
      return state.level === 0 ? [state, none] : [{ ...state, level: state.level - 1 }, none]
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
        ? pause(state, level, wait(policy, level, random))
        : resume(state, level)
    }
    case "Failed":
      return failed(policy, state, random)
    case "Uncounted":
      return pause(state, state.level, state.window)
  }
}
