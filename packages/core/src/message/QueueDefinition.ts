/** A queue as the program sees it: its name, what its bodies are, and the delay of its messages. */
import * as Codec from "./Codec.ts"
import * as Delay from "./Delay.ts"

export interface QueueDefinition<in out A> {
  readonly name: string
  readonly codec: Codec.Codec<A>
  /** Delay of every message that is sent without one, in milliseconds; `undefined`: none. */
  readonly delay: Delay.Delay | undefined
}

export interface Options<A> {
  /** Default: `Codec.json`. */
  readonly codec?: Codec.Codec<A> | undefined
  /** Default delay of messages sent to this queue, 0 to 24 hours. */
  readonly delay?: Delay.Input | undefined
}

/**
 * Defines a queue.
 *
 * When to use: wherever a plain queue name would do but bodies have a type, or messages a default delay.
 *
 * @throws RangeError when the name is empty or longer than 200 characters, or the delay is not 0 to 24 hours
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 *
 * const lines = QueueDefinition.make("lines", { codec: Codec.text, delay: "1 second" })
 * ```
 */
export const make = <A = AnyBody>(name: string, options: Options<A> = {}): QueueDefinition<A> => {
  if (name.length === 0 || name.length > 200) {
    throw new RangeError(`QueueDefinition.make: name must have 1 to 200 characters, got ${JSON.stringify(name)}`)
  }
  return {
    name,
    codec: options.codec ?? Codec.json,
    delay:
      options.delay === undefined
        ? undefined
        : Delay.constrain("QueueDefinition.make: delay", options.delay, 0, Delay.max)
  }
}

/** A definition, or the name of a queue whose bodies are unchecked JSON. */
export type Input<A> = string | QueueDefinition<A>

/**
 * A definition as it is, or one of the name.
 *
 * @throws RangeError when it is neither, or the name is empty or longer than 200 characters
 */
export const from = <A>(queue: Input<A>): QueueDefinition<A> => {
  if (typeof queue === "string") return make<A>(queue)
  // From JavaScript, or an environment variable that is not set.
  if (typeof queue === "object" && queue !== null && "codec" in queue) return queue
  throw new RangeError(
    `QueueDefinition.from: queue must be a name or a definition, got ${queue === null ? "null" : typeof queue}`
  )
}

/** The bodies of a queue of which only the name is known, and of code that asks for no check. */
export type AnyBody = any // A name tells nothing, and `unknown` would make every handler begin with a cast.
