/** Where messages go that are given up, and what of their errors may travel with them. */
import type { ErrorSummary, Reason } from "../message/Metadata.ts"

export interface DeadLetterRouting {
  /** `undefined`: `<queue>.dlq`. */
  readonly queue: string | undefined
  readonly discard: boolean
  /** Queues for single reasons, or `discard`. */
  readonly routes: Readonly<Partial<Record<Reason, string>>>
  /**
   * Rewrites the error before it travels with a message, for example to take secrets out of it. When it throws or
   * answers no error, the error's message is withheld.
   */
  readonly redact: ((error: ErrorSummary) => ErrorSummary) | undefined
}

/** A queue name, `"discard"` to lose what is given up, or details. */
export type Options =
  | string
  | {
      readonly queue?: string | undefined
      readonly routes?: Partial<Record<Reason, string>> | undefined
      readonly redact?: ((error: ErrorSummary) => ErrorSummary) | undefined
    }

/**
 * Builds the routing. Default: `<queue>.dlq`, for every reason.
 *
 * @throws RangeError when a queue name is empty
 */
export const make = (options: Options = {}): DeadLetterRouting => {
  const { queue, redact, routes = {} } = typeof options === "object" ? options : { queue: options }
  for (const name of [queue, ...Object.values(routes)]) {
    if (name === "") throw new RangeError(`RetryPolicy.make: deadLetter must not be an empty queue name, got ""`)
  }
  const discard = queue === "discard"
  return { queue: discard ? undefined : queue, discard, routes, redact }
}

/** The queue that takes a dead letter of this reason; `undefined` when it is discarded. */
export const queueFor = (self: DeadLetterRouting, origin: string, reason: Reason): string | undefined => {
  const route = self.routes[reason] ?? (self.discard ? "discard" : (self.queue ?? `${origin}.dlq`))
  return route === "discard" ? undefined : route
}

/** Every queue that a dead letter from `origin` can go to. */
export const queues = (self: DeadLetterRouting, origin: string): ReadonlyArray<string> => {
  const reasons: ReadonlyArray<Reason> = ["retries-exhausted", "permanent", "undecodable", "too-old"]
  const names = reasons.map((reason) => queueFor(self, origin, reason))
  return [...new Set(names.filter((name) => name !== undefined))]
}

/** An error as it may travel. What cannot be redacted is withheld. */
export const redacted = ({ redact }: DeadLetterRouting, error: ErrorSummary): ErrorSummary => {
  if (redact === undefined) return error
  try {
    const { message, name } = redact(error)
    return { name: String(name), message: String(message) }
  } catch {
    return { name: error.name, message: "(withheld: redact failed)" }
  }
}
