/**
 * The options of the calls on dead letters, and their kinds. A wrong option is refused, because it could move or remove all
 * letters.
 */
import { Delay, QueueDefinition } from "@requeue/core"
import { Metadata, OptionKind, OptionNames } from "@requeue/core/port"
import * as Removal from "../../internal/Removal.ts"
import * as Operation from "./operation.ts"
import type { Audit } from "./audit.ts"
import type { DeadLetter } from "./deadLetter.ts"
import { type EditOptions, isAlike } from "./edit.ts"
import type { Progress } from "./reading.ts"
import { parkingQueue, type Options as RedriveOptions, type ParkOptions } from "./redrive.ts"

/** Options of `read`. */
export interface ReadOptions {
  /**
   * The largest number of dead letters in the result, at least 1. The call browses 100,000 letters at most, including those
   * that the filter rejects. Default: 100,000.
   */
  readonly limit?: number | undefined
  /** Selects a dead letter if it returns `true`. It gets a copy of each letter. Default: all letters. */
  readonly filter?: ((letter: DeadLetter) => boolean) | undefined
}

/** Options of `list` and `group`. */
export interface ListOptions extends ReadOptions {
  /** The largest number of dead letters, as for `read`. Default: 100 for `list`, 1,000 for `group`. */
  readonly limit?: number | undefined
  /** A function that is called after each page of up to a few thousand letters. Default: no function is called. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /**
   * A signal that ends browsing at once; all letters return to the queue. The result has the letters seen so far. Default:
   * no signal.
   */
  readonly signal?: AbortSignal | undefined
}

/** Which dead letters a purge removes. */
export type Selection =
  | {
      /** `true` for all dead letters of the queue. */
      readonly all: true
      readonly filter?: undefined
    }
  | {
      /** Selects a dead letter for removal if it returns `true`. It gets a copy of each letter. */
      readonly filter: (letter: DeadLetter) => boolean
      readonly all?: undefined
    }

/** Options of `purge`. */
export type PurgeOptions = Selection & {
  /**
   * Removes only letters that consumers of this queue dead-lettered. If `deadLettersOf` found a queue that has letters of
   * another queue as well, the call requires `origin` or `force`. Default: letters of all queues.
   */
  readonly origin?: string | undefined
  /**
   * A signal that ends the purge at once; removed letters stay removed. With `all`, the purge is a single call to the
   * broker, and the signal only prevents its beginning. Default: no signal.
   */
  readonly signal?: AbortSignal | undefined
  /**
   * A function that gets dead letters before they are removed, up to 100 at a time. It is not called with `all`, because
   * the broker removes all letters at once. Default: no function is called.
   */
  readonly audit?: Audit | undefined
  /**
   * Whether to count the selected letters, and remove none. A dry run browses 100,000 letters at most. Default: false.
   */
  readonly dryRun?: boolean | undefined
  /**
   * The name of this queue, as confirmation. It is required if nothing shows that this is a dead-letter queue: no policy,
   * no naming convention, no dead letter in it. It is also required if `deadLettersOf` found the queue, and the queue has
   * letters of another queue as well. Default: the call refuses such a queue.
   */
  readonly force?: string | undefined
}

const readKinds: OptionNames.Of<ReadOptions> = { limit: OptionKind.whole(1), filter: OptionKind.callback }

const listKinds: OptionNames.Of<ListOptions> = {
  ...readKinds,
  onProgress: OptionKind.callback,
  signal: OptionKind.signal
}

const stagesKind: OptionKind.OptionKind = {
  expected: "an array of at least one whole number >= 1",
  holds: (value) => Array.isArray(value) && value.length > 0 && Array.from(value).every(OptionKind.whole(1).holds)
}

const watchKind: OptionKind.OptionKind = {
  expected: "an array of queues' names, or a function",
  holds: (value) =>
    typeof value === "function" ||
    (Array.isArray(value) &&
      Array.from(value).every((name) => typeof name === "string" && QueueDefinition.isName(name)))
}

const plainKind = OptionKind.plain("a plain object with text values")
const headersKind: OptionKind.OptionKind = {
  ...plainKind,
  holds: (value) =>
    OptionKind.isPlain(value) &&
    Object.entries(value).every(([name, text]) => name !== Metadata.header && typeof text === "string"),
  remedy: (value) => {
    if (!OptionKind.isPlain(value)) return plainKind.remedy?.(value)
    const entries: ReadonlyArray<readonly [string, unknown]> = Object.entries(value)
    const wrong = entries.find(([, text]) => typeof text !== "string")
    return wrong === undefined
      ? `Its header "${Metadata.header}" is reserved: remove it`
      : `Its header ${JSON.stringify(wrong[0])} must be text, got ${OptionKind.show(wrong[1])}`
  }
}

const redriveKinds: OptionNames.Of<RedriveOptions> = {
  to: OptionKind.text,
  limit: OptionKind.whole(1),
  filter: OptionKind.callback,
  origin: OptionKind.text,
  dryRun: OptionKind.flag,
  rate: OptionKind.number(0.001),
  maxRedrives: OptionKind.whole(0),
  signal: OptionKind.signal,
  audit: OptionKind.callback,
  onProgress: OptionKind.callback,
  stages: stagesKind,
  stopAt: { expected: "a number from 0 to 1", holds: (value) => typeof value === "number" && value >= 0 && value <= 1 },
  wait: Delay.kind(1, Delay.max),
  create: OptionKind.flag,
  force: OptionKind.text,
  watch: watchKind,
  operation: Operation.idKind
}

const parkKinds: OptionNames.Of<ParkOptions> = {
  to: redriveKinds.to,
  limit: redriveKinds.limit,
  filter: redriveKinds.filter,
  origin: redriveKinds.origin,
  dryRun: redriveKinds.dryRun,
  rate: redriveKinds.rate,
  create: redriveKinds.create,
  force: redriveKinds.force,
  signal: redriveKinds.signal,
  audit: redriveKinds.audit,
  onProgress: redriveKinds.onProgress
}

const editKinds: OptionNames.Of<EditOptions> = {
  body: { expected: "a Uint8Array", holds: (value) => value instanceof Uint8Array },
  headers: headersKind,
  to: redriveKinds.to,
  wait: redriveKinds.wait,
  create: redriveKinds.create,
  force: redriveKinds.force,
  watch: redriveKinds.watch,
  operation: redriveKinds.operation,
  audit: OptionKind.callback,
  signal: OptionKind.signal
}

const purgeKinds: OptionNames.Of<PurgeOptions> = {
  ...Removal.kinds,
  origin: OptionKind.text,
  dryRun: OptionKind.flag,
  force: OptionKind.text,
  audit: OptionKind.callback,
  signal: OptionKind.signal
}

/** The options of every call that moves or removes letters. */
export interface Acting {
  readonly all?: true | undefined
  readonly filter?: ((letter: DeadLetter) => boolean) | undefined
  readonly force?: string | undefined
  readonly origin?: string | undefined
}

/** Returns the options with `origin` as a part of the filter. */
export const ofOrigin = <O extends Acting | undefined>(options: O): O => {
  if (options?.origin === undefined) return options
  const { filter, origin } = options
  const isMeant = (letter: DeadLetter) =>
    letter.metadata.deadLetter?.queue === origin && (filter === undefined || filter(letter))
  return { ...options, all: undefined, filter: isMeant }
}

/** Returns the error of a `force` that names another queue. */
const forced = (call: string, queue: string, force: string | undefined): RangeError | undefined =>
  force === undefined || force === queue
    ? undefined
    : OptionNames.error(call, queue, `force must be the name of this queue, got ${JSON.stringify(force)}`)

/** Returns the error of the options of `read`. */
const read = (call: string, queue: string, options: unknown): RangeError | undefined =>
  options === undefined ? undefined : OptionNames.refusal(call, options, readKinds, queue)

/** Returns the error of the options of `list` or `group`. */
const list = (call: string, queue: string, options: unknown): RangeError | undefined =>
  options === undefined ? undefined : OptionNames.refusal(call, options, listKinds, queue)

/** Returns the error of the options of `redrive`. */
const redrive = (call: string, queue: string, options: RedriveOptions | undefined): RangeError | undefined => {
  if (options === undefined) return undefined
  return (
    OptionNames.refusal(call, options, redriveKinds, queue) ??
    forced(call, queue, options.force) ??
    target(call, queue, options.to)
  )
}

/** Returns the error of the options of `park`. */
const park = (call: string, queue: string, options: ParkOptions = {}): RangeError | undefined =>
  OptionNames.refusal(call, options, parkKinds, queue) ??
  forced(call, queue, options.force) ??
  target(call, queue, options.to ?? parkingQueue(queue))

/** Returns the error of the option `to`. */
const target = (call: string, queue: string, to: string | undefined): RangeError | undefined => {
  if (to === undefined) return undefined
  if (to === queue) return OptionNames.error(call, queue, `to must be another queue, got ${JSON.stringify(to)}`)
  if (to === "discard") {
    const remedy = "To remove letters, use purge"
    return OptionNames.error(
      call,
      queue,
      'to must name a queue, got "discard", which in a policy means that no letters are kept',
      remedy
    )
  }
  const problem = QueueDefinition.problemOfName(to)
  return problem === undefined ? undefined : OptionNames.error(call, queue, `to ${problem}`)
}

/** Returns the error of the letter or of the options of `edit`. */
const edit = (call: string, queue: string, letter: unknown, options: EditOptions): RangeError | undefined => {
  // Cast, because its parts are checked.
  const { body, headers, id, origin } = (OptionKind.isObject(letter) ? letter : {}) as Partial<DeadLetter>
  if (typeof id !== "string" || !ArrayBuffer.isView(body) || headers === undefined) {
    return OptionNames.error(call, queue, "the letter must be one that list has returned")
  }
  const refused =
    OptionNames.refusal(call, options, editKinds, queue) ??
    forced(call, queue, options.force) ??
    target(call, queue, options.to)
  if (refused !== undefined) return refused
  if (options.to === undefined && origin === undefined) {
    return OptionNames.error(call, queue, "the queue that the letter came from is unknown", 'Use { to: "NAME" }')
  }
  if (!isAlike({ body: options.body ?? body, headers: options.headers ?? headers }, { body, headers })) return undefined
  const remedy = "Use another body or headers; to send the letter back unchanged, use redrive with a filter"
  return OptionNames.error(call, queue, "the copy must differ from the letter", remedy)
}

/** Returns the error of the options of `purge`. */
const purge = (call: string, queue: string, options: PurgeOptions): RangeError | undefined =>
  Removal.refusal({ call, queue, things: "dead letters" }, options, purgeKinds) ?? forced(call, queue, options.force)

/**
 * Returns functions that check the arguments of each call. Each returns an error, or `undefined` if the arguments are
 * valid.
 */
export const refusals = (queue: string) => ({
  read: (options?: ReadOptions) => read("DeadLetters.read", queue, options),
  list: (options?: ListOptions) => list("DeadLetters.list", queue, options),
  group: (options?: ListOptions) => list("DeadLetters.group", queue, options),
  redrive: (options?: RedriveOptions) => redrive("DeadLetters.redrive", queue, options),
  park: (options?: ParkOptions) => park("DeadLetters.park", queue, options),
  edit: (letter: DeadLetter, options: EditOptions) => edit("DeadLetters.edit", queue, letter, options),
  purge: (options: PurgeOptions) => purge("DeadLetters.purge", queue, options)
})
