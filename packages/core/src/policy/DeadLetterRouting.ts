/** Dead-letter routing: the queues of dead letters, and the part of their errors that travels with them. */
import * as Predicate from "effect/Predicate"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Thenable from "../message/Thenable.ts"
import { type ErrorSummary, type Reason, reasons } from "../message/Metadata.ts"
import type { Failure } from "./Failure.ts"
import { describe } from "./internal/thrown.ts"
import * as StackTrace from "./StackTrace.ts"

/** A boolean with a brand that only {@link make} adds. The brand distinguishes a finished routing from options. */
export type Discard = boolean & { readonly built: "DeadLetterRouting" }

/** Rewrites an error, for example to take secrets out of its message and its stack. */
export type Redact = (error: ErrorSummary) => ErrorSummary

/** Where dead letters go. */
export interface DeadLetterRouting {
  /** The dead-letter queue; `undefined`: `<queue>.dlq`. */
  readonly queue: string | undefined
  /** Whether messages are removed without a dead letter, for reasons that have no entry in `routes`. */
  readonly discard: Discard
  /** For single reasons, the dead-letter queue or `"discard"`. */
  readonly routes: Readonly<Partial<Record<Reason, string>>>
  /**
   * Rewrites an error before it travels with a message or is shown. If it throws or returns no error, the error's
   * message is withheld.
   */
  readonly redact: Redact | undefined
}

/** The options of {@link make}: a queue's name, `"discard"` to keep no dead letters, or an object. */
export type Options =
  | string
  | {
      /** Name of the dead-letter queue, or `"discard"`. Default: `<queue>.dlq`. */
      readonly queue?: string | undefined
      /** For single reasons, another dead-letter queue or `"discard"`. Default: none; all reasons use `queue`. */
      readonly routes?: Partial<Record<Reason, string>> | undefined
      /**
       * Rewrites each error and each of its causes before they are stored or shown. If the result has no `stack`, the stack
       * trace is removed. Default: errors are unchanged.
       */
      readonly redact?: ((error: ErrorSummary) => ErrorSummary) | undefined
      /** Not an option: `queue: "discard"` keeps no dead letters. */
      readonly discard?: Discard | undefined
    }

const names: OptionNames.Of<DeadLetterRouting> = { queue: true, discard: true, routes: true, redact: true }

/** Whether {@link make} built the value. Only a built routing has `discard`. */
export const isRouting = (value: unknown): value is DeadLetterRouting =>
  Predicate.isObject(value) &&
  Object.keys(names).every((name) => Object.hasOwn(value, name)) &&
  typeof Reflect.get(value, "discard") === "boolean"

/**
 * Builds a routing of dead letters. By default, all go to the queue `<queue>.dlq`.
 *
 * @throws RangeError when an option or a reason is unknown, a queue's name is empty, not text or has broken surrogates,
 * or `redact` is not a function
 */
export const make = (options: Options = {}): DeadLetterRouting => {
  const details = typeof options === "string" ? { queue: options } : options
  if (!Predicate.isObject(details)) refuse(`must be a queue's name, "discard" or { queue, routes, redact }`, details)
  const { discard, queue, redact, routes = {}, ...unknown } = details
  const [other] = discard === undefined ? Object.keys(unknown) : ["discard"]
  if (other !== undefined) refuse("must have no options but queue, routes and redact", other)
  if (queue !== undefined) checkName("", queue)
  if (!Predicate.isObject(routes)) refuse("routes must be an object of reasons and queues", routes)
  for (const [reason, name] of Object.entries(routes)) {
    if (!reasons.some((known) => known === reason)) refuse(`routes must be among ${reasons.join(", ")}`, reason)
    if (name !== undefined) checkName(`routes.${reason} `, name)
  }
  if (redact !== undefined && typeof redact !== "function") refuse("redact must be a function", redact)
  const isDiscarded = queue === "discard"
  const own = isDiscarded as Discard // Made only here.
  return { queue: isDiscarded ? undefined : queue, discard: own, routes, redact }
}

const refuse = (constraint: string, got: unknown): never => {
  throw new RangeError(`RetryPolicy.make: deadLetter ${constraint}, got ${OptionKind.show(got)}`)
}

const checkName = (field: string, name: unknown): void => {
  if (typeof name !== "string") refuse(`${field}must be a queue's name`, name)
  if (name === "") refuse(`${field}must not be an empty queue name`, name)
  if (!String(name).isWellFormed()) refuse(`${field}must have no broken surrogates`, name)
}

/**
 * Returns the queue for a dead letter from `origin` with this reason; `undefined` if the policy keeps no such dead
 * letter.
 */
export const queueFor = (self: DeadLetterRouting, origin: string, reason: Reason): string | undefined => {
  const route = self.routes[reason]
  if (route !== undefined) return route === "discard" ? undefined : route
  return self.discard ? undefined : (self.queue ?? `${origin}.dlq`)
}

/** Returns every queue that a dead letter from `origin` can go to. */
export const queues = (self: DeadLetterRouting, origin: string): ReadonlyArray<string> => {
  const names = reasons.map((reason) => queueFor(self, origin, reason))
  return [...new Set(names.filter((name) => name !== undefined))]
}

/**
 * Returns the error as it may leave the program. Its stack is redacted when it is first read: `redact` is called for the
 * error and for each of its causes, with the frames of each.
 */
export const redacted = ({ redact }: DeadLetterRouting, { chain, summary, trace }: Thrown): ErrorSummary => {
  const { message, name } = summary
  if (redact === undefined) return trace === undefined ? { name, message } : summary
  const [thrown, ...inner] = chain ?? [summary]
  const own = safe(redact, trace === undefined ? thrown! : StackTrace.traced(thrown!, () => trace()[0]!.stack))
  const causes = inner.map((each) => safe(redact, each))
  const shown = { name: own.name, message: describe(own.message, causes) }
  if (trace === undefined) return shown
  const stack = () => {
    const [first, ...others] = trace()
    return StackTrace.render([
      { label: first!.label, ...own },
      ...others.map((each) => ({ label: each.label, ...safe(redact, each) }))
    ])
  }
  return StackTrace.traced(shown, stack)
}

/** The part of a failure that may leave the program. Without a trace, it has no stack. Without a chain, `summary` is the only error. */
export type Thrown = Pick<Failure, "summary" | "chain" | "trace">

/** Withholds the message and the frames if `redact` fails, or returns no name and message. */
const safe = (redact: Redact, error: ErrorSummary): Required<ErrorSummary> => {
  try {
    const redacted = redact(error)
    Thenable.onRejected(redacted, () => {})
    const { message, name, stack } = redacted
    if (typeof name === "string" && typeof message === "string") {
      return { name, message, stack: typeof stack === "string" ? stack : "" }
    }
  } catch {
    // Withheld too.
  }
  return { name: error.name, message: "(withheld: redact failed)", stack: "" }
}
