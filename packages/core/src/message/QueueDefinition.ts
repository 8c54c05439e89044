/** Queue definitions: a queue's name, its codec, and the default delay of its messages. */
import type { StandardSchemaV1 } from "effect/StandardSchema"
import * as Codec from "./Codec.ts"
import { guard } from "./OwnBytes.ts"
import * as Standard from "./internal/standard.ts"
import * as Delay from "./Delay.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/**
 * A queue whose handlers get bodies of type `A`, and whose senders pass bodies of type `I`. The types differ if a
 * schema transforms bodies.
 */
export interface QueueDefinition<out A, in I = A> {
  /** The queue's name at the broker. */
  readonly name: string
  readonly codec: Codec.Codec<A, I>
  /** Delay of messages that are sent without one, in milliseconds; `undefined`: none. */
  readonly delay: Delay.Delay | undefined
  /** Options of the queue's consumers and pullers, set by a config file. Options of a call override them. Default: none. */
  readonly options?: object | undefined
}

/** Options of {@link make}. */
export interface Options<A, I = A> {
  /** Encodes and decodes bodies. Default: `Codec.json`, which checks nothing. */
  readonly codec?: Codec.Codec<A, I> | undefined
  /** Standard Schema that checks bodies when they are sent and read. Replaces `codec`. Default: none. */
  readonly schema?: StandardSchemaV1<I, A> | undefined
  /** Delay of messages that are sent without one. Range: 0 to 24 hours; a number means milliseconds. Default: none. */
  readonly delay?: Delay.DurationInput | undefined
}

/**
 * Returns why a queue's name is invalid; `undefined` if it is valid. Broken surrogates are invalid: UTF-8 writes them
 * all alike.
 */
export const problemOfName = (name: string): string | undefined => {
  if (name.length < 1 || name.length > 200) return `must have 1 to 200 characters, got ${JSON.stringify(name)}`
  return name.isWellFormed() ? undefined : `must have no broken surrogates, got ${JSON.stringify(name)}`
}

/** Whether a queue may have this name: 1 to 200 characters without broken surrogates. */
export const isName = (name: string): boolean => problemOfName(name) === undefined

const codecKind = OptionKind.object("a codec, such as Codec.text", "encode", "decode")

const kinds: OptionNames.Of<Options<AnyBody>> = {
  codec: {
    ...codecKind,
    // Zod's schemas have functions of these names.
    holds: (value) => codecKind.holds(value) && !Standard.kind.holds(value),
    remedy: (value) =>
      Standard.kind.holds(value) ? "This value is a schema: write schema in place of codec" : undefined
  },
  schema: Standard.kind,
  delay: Delay.kind(0, Delay.max)
}

/**
 * Defines a queue.
 *
 * When to use: instead of a queue's name, if bodies have a type or messages have a default delay.
 *
 * @throws RangeError when the name does not have 1 to 200 characters or has broken surrogates, an option is unknown or
 * of the wrong kind, the delay is not 0 to 24 hours, or there are both a codec and a schema
 *
 * @example
 * ```ts
 * import { Codec, QueueDefinition } from "@requeue/core"
 * import * as z from "zod"
 *
 * const lines = QueueDefinition.make("lines", { codec: Codec.text, delay: "1 second" })
 * const orders = QueueDefinition.make("orders", { schema: z.object({ id: z.string(), total: z.number() }) })
 * ```
 */
export const make = <A = AnyBody, I = A>(name: string, options: Options<A, I> = {}): QueueDefinition<A, I> => {
  const problem = typeof name === "string" ? problemOfName(name) : `must be text, got ${OptionKind.show(name)}`
  if (problem !== undefined) throw OptionNames.error("QueueDefinition.make", undefined, `name ${problem}`, unset(name))
  OptionNames.check("QueueDefinition.make", options, kinds, name)
  const { delay, schema } = options
  if (schema !== undefined && options.codec !== undefined) {
    const remedy = "To use a schema inside a codec, write gzip(Codec.standard(schema))"
    throw OptionNames.error("QueueDefinition.make", name, "give codec or schema, not both", remedy)
  }
  const { codec = schema === undefined ? Codec.json : Codec.standard(schema) } = options
  return { name, codec, delay: delay === undefined ? undefined : Delay.parse("delay", delay) }
}

/** A definition, or the name of a queue whose bodies are unchecked JSON. */
export type Input<A, I = A> = string | QueueDefinition<A, I>

/** The remedy for a name that is probably a variable without a value. */
const unset = (name: unknown): string | undefined =>
  name === undefined || name === "" ? "Check the variable that holds the queue's name" : undefined

/**
 * Returns the given definition, or makes one for the given name. Bytes that your own codec gets and returns are copied,
 * because it may share them with other code. `call` names the caller in errors.
 *
 * @throws RangeError when the input is not a name or a definition, or the name does not have 1 to 200 characters or has
 * broken surrogates
 */
export const from = <A, I = A>(queue: Input<A, I>, call = "QueueDefinition.from"): QueueDefinition<A, I> => {
  if (typeof queue === "string") {
    const problem = problemOfName(queue)
    if (problem !== undefined) throw OptionNames.error(call, undefined, `queue ${problem}`, unset(queue))
    return { name: queue, codec: Codec.json, delay: undefined }
  }
  // JavaScript may pass anything, for example an unset environment variable.
  if (typeof queue === "object" && queue !== null && "codec" in queue) {
    const codec = guard(queue.codec)
    return codec === queue.codec ? queue : { ...queue, codec }
  }
  const problem = `queue must be a name or a definition, got ${OptionKind.show(queue)}`
  throw OptionNames.error(call, undefined, problem, unset(queue))
}

/** The type of the bodies of a queue that is given by name only. Nothing checks these bodies. */
export type AnyBody = any // A name has no type, and `unknown` would force every handler to cast.
