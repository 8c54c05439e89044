/**
 * Consumer backoff: slowing a whole consumer down because something that all its messages need is not there. A different
 * thing from the backoff of one message.
 *
 * A pure machine: {@link step} takes a state and an event and answers the next state and what to do. A consumer offers
 * only a credit and a timer. The shape is that of NSQ's client protocol (`RDY 0`, wait, `RDY 1`, full `RDY`), see
 * https://nsq.io/clients/building_client_libraries.html#backoff.
 *
 * | state | event | next |
 * | --- | --- | --- |
 * | running | failure | level up, paused for `wait(level)`, credit 0 |
 * | running | success, level > 0 | level down |
 * | paused | outcomes of deliveries in flight | ignored |
 * | paused | time is over | probing, credit 1 |
 * | probing | success of the probe | level down; running at full credit, or (`stepwise`, level > 0) paused again |
 * | probing | failure of the probe | as in running |
 * | probing | the probe opts out | paused for the same window again |
 * | any | reconnected | level 0: full credit; paused: still paused; else probing, credit 1 |
 */
import * as Delay from "../message/Delay.ts"
import * as OptionNames from "../options/OptionNames.ts"

export interface ConsumerBackoff {
  /** `multiplier x 2^level`, in milliseconds. */
  readonly multiplier: number
  /** No pause is longer, in milliseconds; 0 turns consumer backoff off. */
  readonly maxBackoffDuration: number
  readonly strategy: "exponential" | "full-jitter"
  readonly recovery: "resume" | "stepwise"
}

export interface Options {
  /** Default 1 second: pauses of 2, 4, 8, … seconds. 1 ms to 24 hours. */
  readonly multiplier?: Delay.Input | undefined
  /** Default 2 minutes. 0 to 24 hours. */
  readonly maxBackoffDuration?: Delay.Input | undefined
  /** `full-jitter` draws each pause from 0 to the exponential one. Default `exponential`. */
  readonly strategy?: "exponential" | "full-jitter" | undefined
  /** After a successful probe: full credit at once, or one level at a time. Default `resume`. */
  readonly recovery?: "resume" | "stepwise" | undefined
}

const names: OptionNames.Of<Options> = { multiplier: true, maxBackoffDuration: true, strategy: true, recovery: true }

/**
 * Builds the policy.
 *
 * @throws RangeError when an option is unknown or a duration is out of its range
 */
export const make = (options: Options = {}): ConsumerBackoff => {
  OptionNames.check("ConsumerBackoff.make", options, names)
  return {
    multiplier: Delay.constrain("ConsumerBackoff.make: multiplier", options.multiplier ?? 1000, 1, Delay.max),
    maxBackoffDuration: Delay.constrain(
      "ConsumerBackoff.make: maxBackoffDuration",
      options.maxBackoffDuration ?? 120_000,
      0,
      Delay.max
    ),
    strategy: options.strategy ?? "exponential",
    recovery: options.recovery ?? "resume"
  }
}

/** No consumer backoff: what a plain consumer does. */
export const off: ConsumerBackoff = make({ maxBackoffDuration: 0 })

export type Mode =
  | { readonly _tag: "Running" }
  | { readonly _tag: "Paused" }
  /** `probe` is the delivery whose outcome decides; `undefined` until one has started. */
  | { readonly _tag: "Probing"; readonly probe: DeliveryId | undefined }

export interface State {
  readonly mode: Mode
  readonly level: number
  /** Length of the last pause, in milliseconds. */
  readonly window: number
}

/** Names a delivery, not a message: a redelivery has another one. */
export type DeliveryId = string | number

export type Event =
  | { readonly _tag: "Started"; readonly id: DeliveryId }
  | { readonly _tag: "Succeeded"; readonly id: DeliveryId }
  | { readonly _tag: "Failed"; readonly id: DeliveryId }
  | { readonly _tag: "Uncounted"; readonly id: DeliveryId }
  | { readonly _tag: "Elapsed" }
  | { readonly _tag: "Reconnected" }

/** What the consumer has to do, in this order. */
export type Command =
  | { readonly _tag: "Credit"; readonly amount: "none" | "one" | "full" }
  | { readonly _tag: "Wait"; readonly millis: number }

export type Step = readonly [State, ReadonlyArray<Command>]

export const initial: State = { mode: { _tag: "Running" }, level: 0, window: 0 }

const none: ReadonlyArray<Command> = []
const credit = (amount: "none" | "one" | "full"): Command => ({ _tag: "Credit", amount })

const exponential = (policy: ConsumerBackoff, level: number): number => policy.multiplier * 2 ** level

/** The pause at a level, in milliseconds; `random` is from 0 (inclusive) to 1 (exclusive). */
export const wait = (policy: ConsumerBackoff, level: number, random: number): number => {
  const full = exponential(policy, level)
  return Math.min(Math.ceil(policy.strategy === "full-jitter" ? random * full : full), policy.maxBackoffDuration)
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

/** Whether {@link step} would change nothing and ask for nothing, whatever the random number. */
export const ignores = (policy: ConsumerBackoff, { level, mode }: State, { _tag }: Event): boolean =>
  policy.maxBackoffDuration === 0
    ? _tag !== "Reconnected"
    : mode._tag === "Running" && level === 0 && _tag !== "Failed" && _tag !== "Reconnected"

/** The machine. `random` is from 0 (inclusive) to 1 (exclusive). */
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
  tagged: DeliveryId | undefined,
  event: Event,
  random: number
): Step => {
  // The connection that delivered the probe is gone: its outcome says nothing any more.
  if (event._tag === "Reconnected") return probe(state)
  if (event._tag === "Elapsed") return [state, none]
  if (event._tag === "Started") {
    return tagged === undefined ? [{ ...state, mode: { _tag: "Probing", probe: event.id } }, none] : [state, none]
  }
  if (event.id !== tagged) return [state, none]
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
