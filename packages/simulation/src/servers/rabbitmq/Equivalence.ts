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
import * as Version from "./Version.ts"

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
    "x-quorum-initial-group-size",
    "x-delivery-limit",
    "x-message-ttl",
    "x-queue-leader-locator"
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
    "x-queue-type",
    "x-queue-leader-locator"
  ]
}

/** The arguments of quorum queues from 4.3 on. */
const ofQuorum43 = [
  ...compared.quorum,
  "x-consumer-timeout",
  "x-delayed-retry-type",
  "x-delayed-retry-min",
  "x-delayed-retry-max"
]

/** The server's name for the type of a value in a table. */
const typeName = (value: unknown): string => {
  if (typeof value === "string") return "longstr"
  if (typeof value !== "number") return "bool"
  if (!Number.isInteger(value)) return "double"
  if (value < 128 && value >= -128) return "byte"
  if (value < 0x8000 && value >= -0x8000) return "short"
  return value < 0x80000000 && value >= -0x80000000 ? "signedint" : "long"
}

/** Two values of one kind are shown without their types. */
const show = (value: unknown, other: unknown): string => {
  if (value === undefined) return "none"
  return typeof value === typeof other
    ? `'${String(value)}'`
    : `the value '${String(value)}' of type '${typeName(value)}'`
}

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
    if (received[name] !== current[name])
      refuse(name, object, show(received[name], current[name]), show(current[name], received[name]))
}

/** Refuses the first argument of a queue that differs. */
export const queueArgs = (
  type: Type,
  version: string,
  object: string,
  received: Fields.Table,
  current: Fields.Table
): void => {
  const isNew = type === "quorum" && Version.isAtLeast(version, "4.3.0")
  args(isNew ? ofQuorum43 : compared[type], object, received, current)
}

/** Ten years in milliseconds. */
const longest = 315_360_000_000

const invalid = (name: string, object: string, why: string): void => {
  throw new Refusal(406, `invalid arg '${name}' for ${object}: ${why}`)
}

/** Arguments that are numbers. */
const numbers = ["x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes"]

/** Values of arguments that are texts, and the server's word for others. */
const texts: Readonly<Record<string, readonly [values: ReadonlyArray<string>, otherwise: string]>> = {
  "x-overflow": [["drop-head", "reject-publish", "reject-publish-dlx"], "invalid_overflow"],
  "x-dead-letter-strategy": [["at-most-once", "at-least-once"], "invalid_dlx_strategy"]
}

/** Arguments that only quorum queues have. */
const onlyQuorum = ["x-dead-letter-strategy", "x-delivery-limit", "x-quorum-initial-group-size"]

const checkNumber = (name: string, object: string, value: unknown): void => {
  if (value === undefined) return
  if (typeof value !== "number" || !Number.isInteger(value))
    return invalid(name, object, `"expected integer, got ${typeName(value)}"`)
  const isTime = name === "x-message-ttl" || name === "x-expires"
  if (value < 0) invalid(name, object, `{value_negative,${value}}`)
  if (isTime && value > longest) invalid(name, object, `{value_too_large,${value}}`)
  if (name === "x-expires" && value === 0) invalid(name, object, "{value_zero,0}")
}

/** Refuses invalid arguments and properties of a new queue. */
export const check = (
  object: string,
  {
    arguments: given,
    durable,
    exclusive,
    type
  }: { arguments: Fields.Table; durable: boolean; exclusive: boolean; type: unknown }
): void => {
  if (type !== "classic" && type !== "quorum")
    invalid("x-queue-type", object, `"unsupported queue type '${String(type)}'"`)
  for (const name of numbers) checkNumber(name, object, given[name])
  for (const [name, [values, otherwise]] of Object.entries(texts))
    if (given[name] !== undefined && !values.includes(String(given[name]))) invalid(name, object, otherwise)
  const other = type === "classic" ? onlyQuorum.find((name) => name in given) : undefined
  if (other !== undefined)
    throw new Refusal(406, `invalid arg '${other}' for ${object} of queue type rabbit_classic_queue`)
  if (type === "quorum" && (exclusive || !durable))
    throw new Refusal(406, `invalid property '${durable ? "exclusive-owner" : "non-durable"}' for ${object}`)
}

/** Returns the expiration of a message in milliseconds; refuses text that is not a whole number. */
export const checkExpiration = (text: string | undefined): void => {
  if (text === undefined || (/^\d+$/.test(text) && Number(text) <= longest)) return
  throw new Refusal(406, `invalid expiration '${text}': no_integer`)
}
