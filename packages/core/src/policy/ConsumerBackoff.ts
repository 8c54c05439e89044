/**
 * Consumer backoff pauses a whole consumer while a service that all its messages need is down. For the backoff of one
 * message, see `Backoff`. Three forms differ in the failures that begin a pause:
 *
 * | form | a pause begins with |
 * | --- | --- |
 * | `nsq` | every failed attempt |
 * | `consecutive` | a number of failed attempts in a row; a success in between starts the count again |
 * | `ratio` | a share of failed attempts in a window of time or of attempts, once it has enough of them |
 *
 * After a pause, the consumer handles one message as a probe, whose outcome decides whether it pauses again; see
 * `BackoffState`.
 */
import * as Delay from "../message/Delay.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** How long pauses are, and how the consumer recovers: the same in every form. */
interface Pauses {
  /** The unit of pauses, in milliseconds: at level n, a pause is `multiplier x 2^n`. */
  readonly multiplier: number
  /** The longest pause, in milliseconds; 0 turns consumer backoff off. */
  readonly maxBackoffDuration: number
  /** How the length of a pause is chosen. */
  readonly strategy: "exponential" | "full-jitter"
  /** How the consumer continues after a successful probe. */
  readonly recovery: "resume" | "stepwise"
}

/** The form of consumer backoff in which every failed attempt begins a pause. */
export interface Nsq extends Pauses {
  readonly form: "nsq"
}

/** The form of consumer backoff in which a number of failed attempts in a row begins a pause. */
export interface Consecutive extends Pauses {
  readonly form: "consecutive"
  /** The number of failed attempts in a row that begins a pause. */
  readonly failures: number
}

/** The form of consumer backoff in which a share of failed attempts begins a pause. */
export interface Ratio extends Pauses {
  readonly form: "ratio"
  /** The share of failed attempts that begins a pause, above 0 and up to 1. */
  readonly failureRatio: number
  /** The number of attempts in the window below which no pause begins. */
  readonly minAttempts: number
  /** The attempts that count: those in the last `window` milliseconds, or the last `window.attempts` attempts. */
  readonly window: number | { readonly attempts: number }
}

/** When a consumer pauses, for how long, and how it recovers. */
export type ConsumerBackoff = Nsq | Consecutive | Ratio

/** The names of all forms. */
export const forms: ReadonlyArray<ConsumerBackoff["form"]> = ["nsq", "consecutive", "ratio"]

/** The options of every form. */
export interface PauseOptions {
  /**
   * Unit of the pauses, which last 2, 4, 8, … units. Range: 1 ms to 24 hours; a number means milliseconds. Default: 1
   * second.
   */
  readonly multiplier?: Delay.DurationInput | undefined
  /**
   * Longest pause; 0 disables consumer backoff. Range: 0 to 24 hours; a number means milliseconds. Default: 2 minutes.
   */
  readonly maxBackoffDuration?: Delay.DurationInput | undefined
  /** Length of pauses: growing (`exponential`), or random up to that length (`full-jitter`). Default: `exponential`. */
  readonly strategy?: "exponential" | "full-jitter" | undefined
  /** After a successful probe: full speed at once (`resume`), or shorter pauses first (`stepwise`). Default: `resume`. */
  readonly recovery?: "resume" | "stepwise" | undefined
}

/** Options of {@link consecutive}. */
export interface ConsecutiveOptions extends PauseOptions {
  /** Of `consecutive`: how many failed attempts in a row begin a pause. Range: 1 to 1,000. Default: 10. */
  readonly failures?: number | undefined
}

/** Options of {@link ratio}. */
export interface RatioOptions extends PauseOptions {
  /** Of `ratio`: share of failed attempts in the window that begins a pause. Range: above 0, up to 1. Default: 0.5. */
  readonly failureRatio?: number | undefined
  /** Of `ratio`: minimum number of attempts in the window before a pause can begin. Range: 1 to 100,000. Default: 20. */
  readonly minAttempts?: number | undefined
  /**
   * Of `ratio`: which last attempts count, as a duration, or as a number such as `{ attempts: 100 }`. Range: 1 second to 24 hours, or
   * 1 to 100,000 attempts; a number means milliseconds. Default: 30 seconds.
   */
  readonly window?: Delay.DurationInput | { readonly attempts: number } | undefined
}

/** Options of {@link make}: those of one form. */
export type Options =
  | (PauseOptions & {
      /** Which failures begin a pause: each one (`nsq`), several in a row (`consecutive`), or a share (`ratio`). Default: `consecutive`. */
      readonly form: "nsq"
    })
  | (ConsecutiveOptions & {
      /** Which failures begin a pause: each one (`nsq`), several in a row (`consecutive`), or a share (`ratio`). Default: `consecutive`. */
      readonly form?: "consecutive" | undefined
    })
  | (RatioOptions & {
      /** Which failures begin a pause: each one (`nsq`), several in a row (`consecutive`), or a share (`ratio`). Default: `consecutive`. */
      readonly form: "ratio"
    })

const pauseKinds: OptionNames.Of<PauseOptions> = {
  multiplier: Delay.kind(1, Delay.max),
  maxBackoffDuration: Delay.kind(0, Delay.max),
  strategy: OptionKind.oneOf(["exponential", "full-jitter"]),
  recovery: OptionKind.oneOf(["resume", "stepwise"])
}

const consecutiveKinds: OptionNames.Of<ConsecutiveOptions> = { failures: OptionKind.whole(1, 1000), ...pauseKinds }

const attempts = OptionKind.whole(1, 100_000)

const span = Delay.kind(1000, Delay.max)

const isCount = (value: unknown): value is { readonly attempts: number } =>
  OptionKind.isObject(value) &&
  Object.keys(value).join() === "attempts" &&
  attempts.holds(Reflect.get(value, "attempts"))

const ratioKinds: OptionNames.Of<RatioOptions> = {
  failureRatio: {
    expected: "a number above 0 and up to 1",
    holds: (value) => typeof value === "number" && value > 0 && value <= 1,
    remedy: (value) =>
      typeof value === "number" && value > 1 && value <= 100
        ? `Write ${Number((value / 100).toPrecision(12))} for ${value} %`
        : undefined
  },
  minAttempts: attempts,
  window: {
    expected: `${span.expected}, or { attempts: 1 to 100000 }`,
    holds: (value) => isCount(value) || span.holds(value),
    remedy: (value) => (OptionKind.isObject(value) ? undefined : span.remedy?.(value))
  },
  ...pauseKinds
}

const kindsOf: Readonly<Record<ConsumerBackoff["form"], Readonly<Record<string, true | OptionKind.OptionKind>>>> = {
  nsq: pauseKinds,
  consecutive: consecutiveKinds,
  ratio: ratioKinds
}

/** The options of all forms. */
const kinds = { form: OptionKind.oneOf(forms), ...consecutiveKinds, ...ratioKinds }

const pausesOf = ({
  maxBackoffDuration = 120_000,
  multiplier = 1000,
  recovery = "resume",
  strategy = "exponential"
}: PauseOptions): Pauses => ({
  multiplier: Delay.parse("multiplier", multiplier),
  maxBackoffDuration: Delay.parse("maxBackoffDuration", maxBackoffDuration),
  strategy,
  recovery
})

const windowOf = (call: string, minAttempts: number, window: NonNullable<RatioOptions["window"]>): Ratio["window"] => {
  if (!isCount(window)) return Delay.parse("window", window)
  if (window.attempts >= minAttempts) return { attempts: window.attempts }
  throw new RangeError(
    `${call}: minAttempts must be at most the ${window.attempts} attempts of the window, got ${minAttempts}`
  )
}

const build = {
  nsq: (_: string, options: PauseOptions): Nsq => ({ form: "nsq", ...pausesOf(options) }),
  consecutive: (_: string, { failures = 10, ...options }: ConsecutiveOptions): Consecutive => ({
    form: "consecutive",
    failures,
    ...pausesOf(options)
  }),
  ratio: (
    call: string,
    { failureRatio = 0.5, minAttempts = 20, window = 30_000, ...options }: RatioOptions
  ): Ratio => ({
    form: "ratio",
    failureRatio,
    minAttempts,
    window: windowOf(call, minAttempts, window),
    ...pausesOf(options)
  })
}

/** Returns the error of an option that only another form has. */
const stray = (form: ConsumerBackoff["form"], options: object): RangeError | undefined => {
  const name = Object.keys(options).find((each) => each in kinds && each !== "form" && !(each in kindsOf[form]))
  if (name === undefined) return undefined
  const owner = name in consecutiveKinds ? "consecutive" : "ratio"
  return OptionNames.error(
    "ConsumerBackoff.make",
    undefined,
    `${name} is not an option of the form "${form}"`,
    `Write form: "${owner}" with ${name}`
  )
}

/**
 * Builds a consumer backoff that pauses after every failed attempt, as NSQ's clients do.
 *
 * When to use: if attempts fail only when a dependency of all messages is down.
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range
 */
export const nsq = (options: PauseOptions = {}): Nsq => {
  OptionNames.check("ConsumerBackoff.nsq", options, pauseKinds)
  return build.nsq("ConsumerBackoff.nsq", options)
}

/**
 * Builds a consumer backoff that pauses after a number of failed attempts in a row. A batch that fails as a whole is
 * one attempt.
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range
 */
export const consecutive = (options: ConsecutiveOptions = {}): Consecutive => {
  OptionNames.check("ConsumerBackoff.consecutive", options, consecutiveKinds)
  return build.consecutive("ConsumerBackoff.consecutive", options)
}

/**
 * Builds a consumer backoff that pauses when a share of the recent attempts has failed. Each message of a batch is an
 * attempt.
 *
 * When to use: if a dependency may be partly down, or only some messages need it: then failures are rarely in a row.
 *
 * @throws RangeError when an option is unknown, of the wrong kind or out of range, or the window has fewer attempts
 * than `minAttempts`
 */
export const ratio = (options: RatioOptions = {}): Ratio => {
  OptionNames.check("ConsumerBackoff.ratio", options, ratioKinds)
  return build.ratio("ConsumerBackoff.ratio", options)
}

/**
 * Builds a consumer backoff of the form that the options name. The options may also be a consumer backoff that is
 * already built.
 *
 * @throws RangeError when an option is unknown, of another form, of the wrong kind or out of range
 *
 * @example
 * ```ts
 * import { ConsumerBackoff } from "@requeue/core"
 *
 * // After five failures in a row it pauses for 10, 20, 40, … seconds, and for 2 minutes at most.
 * const policy = ConsumerBackoff.make({ failures: 5, multiplier: "5 seconds" })
 * policy.multiplier // => 5000
 * ```
 */
export const make = (options: Options = {}): ConsumerBackoff => {
  const call = "ConsumerBackoff.make"
  const { form = "consecutive" } = Object(options) as Options // JavaScript may pass anything; other values are refused below.
  OptionNames.orThrow(OptionNames.argument(call, "form", form, kinds.form))
  if (OptionKind.isObject(options)) OptionNames.orThrow(stray(form, options))
  OptionNames.check<object>(call, options, { form: kinds.form, ...kindsOf[form] })
  const { form: _, ...rest } = options
  return build[form](call, rest)
}

/** The consumer backoff that never pauses: the default. */
export const off: ConsumerBackoff = nsq({ maxBackoffDuration: 0 })
