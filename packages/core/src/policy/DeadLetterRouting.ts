/** Dead-letter routing: the queues that take dead letters, and the part of their errors that travels with them. */
import { type ErrorSummary, type Reason, reasons } from "../message/Metadata.ts"

/** Where dead letters go. */
export interface DeadLetterRouting {
  /** The dead-letter queue; `undefined` for `<queue>.dlq`. */
  readonly queue: string | undefined
  /** Whether a reason without a route of its own keeps no dead letter. */
  readonly discard: boolean
  /** The dead-letter queue of single reasons, or `"discard"`. */
  readonly routes: Readonly<Partial<Record<Reason, string>>>
  /**
   * Rewrites the error before it travels with a message, for example to take secrets out of it. When it throws or
   * returns no error, the error's message is withheld.
   */
  readonly redact: ((error: ErrorSummary) => ErrorSummary) | undefined
}

/** A queue's name, `"discard"` to keep no dead letters, or details. */
export type Options =
  | string
  | {
      /** The dead-letter queue, or `"discard"`. Default: `<queue>.dlq`. */
      readonly queue?: string | undefined
      /** The dead-letter queue of single reasons, or `"discard"`. Default: none, so that all reasons use `queue`. */
      readonly routes?: Partial<Record<Reason, string>> | undefined
      /** Rewrites the error before it travels with a message. Default: the error is kept as it is. */
      readonly redact?: ((error: ErrorSummary) => ErrorSummary) | undefined
    }

/**
 * Builds a routing. Default: `<queue>.dlq`, for every reason.
 *
 * @throws RangeError when a queue's name is empty
 *
 * @example
 * ```ts
 * import { DeadLetterRouting } from "@requeue/core"
 *
 * const routing = DeadLetterRouting.make({ routes: { undecodable: "unreadable" } })
 * DeadLetterRouting.queues(routing, "orders") // => ["orders.dlq", "unreadable"]
 * ```
 */
export const make = (options: Options = {}): DeadLetterRouting => {
  const { queue, redact, routes = {} } = typeof options === "object" ? options : { queue: options }
  for (const name of [queue, ...Object.values(routes)]) {
    if (name === "") throw new RangeError(`RetryPolicy.make: deadLetter must not be an empty queue name, got ""`)
  }
  const discard = queue === "discard"
  return { queue: discard ? undefined : queue, discard, routes, redact }
}

/** The queue that takes a dead letter from `origin` with this reason; `undefined` when none is kept. */
export const queueFor = (self: DeadLetterRouting, origin: string, reason: Reason): string | undefined => {
  const route = self.routes[reason] ?? (self.discard ? "discard" : (self.queue ?? `${origin}.dlq`))
  return route === "discard" ? undefined : route
}

/** Every queue that a dead letter from `origin` can go to. */
export const queues = (self: DeadLetterRouting, origin: string): ReadonlyArray<string> => {
  const names = reasons.map((reason) => queueFor(self, origin, reason))
  return [...new Set(names.filter((name) => name !== undefined))]
}

/** The error as it may travel with a message. When `redact` fails, its message is withheld. */
export const redacted = ({ redact }: DeadLetterRouting, error: ErrorSummary): ErrorSummary => {
  if (redact === undefined) return error
  try {
    const { message, name } = redact(error)
    return { name: String(name), message: String(message) }
  } catch {
    return { name: error.name, message: "(withheld: redact failed)" }
  }
}
