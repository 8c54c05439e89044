/** Queue definitions: a queue as the program sees it, with its name, its codec, and the delay of its messages. */
import * as Codec from "./Codec.ts"
import { guard } from "./internal/ownBytes.ts"
import * as Delay from "./Delay.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** A queue whose bodies are of type `A`. */
export interface QueueDefinition<in out A> {
  readonly name: string
  readonly codec: Codec.Codec<A>
  /** Delay of every message that is sent without one, in milliseconds; `undefined` for none. */
  readonly delay: Delay.Delay | undefined
}

/** Options of {@link make}. */
export interface Options<A> {
  /** Encodes and decodes the bodies. Default: `Codec.json`, which checks nothing. */
  readonly codec?: Codec.Codec<A> | undefined
  /** Delay of every message that is sent without one, 0 to 24 hours; a number counts milliseconds. Default: none. */
  readonly delay?: Delay.Input | undefined
}

/** Whether a queue may have this name: 1 to 200 characters. */
export const isName = (name: string): boolean => name.length > 0 && name.length <= 200

const kinds: OptionNames.Of<Options<AnyBody>> = {
  codec: OptionKind.object("a codec, such as Codec.text", "encode", "decode"),
  delay: Delay.kind(0, Delay.max)
}

/**
 * Defines a queue.
 *
 * When to use: in place of a queue's name, where bodies have a type or messages a default delay.
 *
 * @throws RangeError when the name has not 1 to 200 characters, an option is unknown or of another kind, or the delay is
 * not 0 to 24 hours
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 *
 * const lines = QueueDefinition.make("lines", { codec: Codec.text, delay: "1 second" })
 * ```
 */
export const make = <A = AnyBody>(name: string, options: Options<A> = {}): QueueDefinition<A> => {
  if (!isName(name)) {
    throw new RangeError(`QueueDefinition.make: name must have 1 to 200 characters, got ${JSON.stringify(name)}`)
  }
  OptionNames.check("QueueDefinition.make", options, kinds, name)
  const { codec = Codec.json, delay } = options
  return { name, codec, delay: delay === undefined ? undefined : Delay.parse("delay", delay) }
}

/** A definition, or the name of a queue whose bodies are unchecked JSON. */
export type Input<A> = string | QueueDefinition<A>

/**
 * The definition itself, or a definition of the queue with this name. Its codec shares no bytes with anybody: where one
 * might, as one of your own may, its bytes are copied on both ways.
 *
 * @throws RangeError when the input is neither, or the name has not 1 to 200 characters
 */
export const from = <A>(queue: Input<A>): QueueDefinition<A> => {
  if (typeof queue === "string") return make<A>(queue)
  // JavaScript may pass anything, for example an environment variable that is not set.
  if (typeof queue === "object" && queue !== null && "codec" in queue) {
    const codec = guard(queue.codec)
    return codec === queue.codec ? queue : { ...queue, codec }
  }
  throw new RangeError(
    `QueueDefinition.from: queue must be a name or a definition, got ${queue === null ? "null" : typeof queue}`
  )
}

/** The bodies of a queue of which only the name is known, and of code that asks for no check. */
export type AnyBody = any // A name tells nothing, and `unknown` would make every handler begin with a cast.
