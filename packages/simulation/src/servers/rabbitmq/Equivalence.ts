/**
 * Compares declarations with existing objects, and checks arguments.
 *
 * | rule | source |
 * | --- | --- |
 * | a declaration with another value of a known argument is refused, with both values | https://www.rabbitmq.com/docs/queues#property-equivalence, `assert_args_equivalence` in `rabbit_misc.erl` |
 * | the arguments that the existing queue's type knows are compared, in a fixed order | `capabilities` in `rabbit_quorum_queue.erl` and `rabbit_classic_queue.erl` |
 * | a TTL is a whole number of milliseconds from 0 to ten years | `check_expiry` in `rabbit_misc.erl` |
 */
import type * as Fields from "./Fields.ts"
import { Refusal } from "./Refusal.ts"
import type { Type } from "./Settings.ts"

/** The arguments that the server compares, by the type of the existing queue. */
const compared: Readonly<Record<Type, ReadonlyArray<string>>> = {
  quorum: [
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-overflow",
    "x-single-active-consumer",
    "x-queue-type",
    "x-delivery-limit",
    "x-message-ttl"
  ],
  classic: [
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-single-active-consumer",
    "x-queue-type"
  ]
}

/** The server's name for the type of a value in a table. */
const typeName = (value: unknown): string => {
  if (typeof value === "string") return "longstr"
  if (typeof value !== "number") return "bool"
  if (!Number.isInteger(value)) return "double"
  if (value < 128 && value >= -128) return "byte"
  if (value < 0x8000 && value >= -0x8000) return "short"
  return value < 0x80000000 && value >= -0x80000000 ? "signedint" : "long"
}

const show = (value: unknown): string =>
  value === undefined ? "none" : `the value '${String(value)}' of type '${typeName(value)}'`

const refuse = (name: string, object: string, received: string, current: string): never => {
  throw new Refusal(406, `inequivalent arg '${name}' for ${object}: received ${received} but current is ${current}`)
}

/** Refuses a property that differs. */
export const property = (name: string, object: string, received: unknown, current: unknown): void => {
  if (received !== current) refuse(name, object, `'${String(received)}'`, `'${String(current)}'`)
}

/** Refuses the first argument that differs. */
export const args = (
  names: ReadonlyArray<string>,
  object: string,
  received: Fields.Table,
  current: Fields.Table
): void => {
  for (const name of names)
    if (received[name] !== current[name]) refuse(name, object, show(received[name]), show(current[name]))
}

/** Refuses the first argument of a queue that differs. */
export const queueArgs = (type: Type, object: string, received: Fields.Table, current: Fields.Table): void =>
  args(compared[type], object, received, current)

/** Ten years in milliseconds. */
const longest = 315_360_000_000

const invalid = (name: string, object: string, why: string): never => {
  throw new Refusal(406, `invalid arg '${name}' for ${object}: ${why}`)
}

/** Refuses invalid arguments of a new queue. */
export const check = (object: string, { arguments: given, type }: { arguments: Fields.Table; type: unknown }): void => {
  if (type !== "classic" && type !== "quorum")
    invalid("x-queue-type", object, `unsupported queue type '${String(type)}'`)
  for (const name of ["x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes"]) {
    const value = given[name]
    if (value === undefined) continue
    if (typeof value !== "number" || !Number.isInteger(value))
      invalid(name, object, `{unacceptable_type,${typeName(value)}}`)
    else if (value < 0) invalid(name, object, `{value_negative,${value}}`)
    else if ((name === "x-message-ttl" || name === "x-expires") && value > longest)
      invalid(name, object, `{value_too_big,${value}}`)
    else if (name === "x-expires" && value === 0) invalid(name, object, "{value_zero,0}")
  }
}

/** Returns the expiration of a message in milliseconds; refuses text that is not a whole number. */
export const checkExpiration = (text: string | undefined): void => {
  if (text === undefined || (/^\d+$/.test(text) && Number(text) <= longest)) return
  throw new Refusal(406, `invalid expiration '${text}': no_integer`)
}
