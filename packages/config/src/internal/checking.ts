/** Checks a file: decodes and links it, and finds all of its problems. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ConfigFile } from "../ConfigFile.ts"
import * as StrictSchema from "../StrictSchema.ts"
import * as ConnectOptions from "./connectOptions.ts"
import * as Link from "./link.ts"
import { at, isObject, type Path, put, samePath, typed } from "./values.ts"

const decodeFile = Schema.decodeUnknownResult(ConfigFile)

/**
 * Splits off the brokers of a file, except their options of `connect`. The secrets of a broker are looked up when the broker is
 * used, so secrets of other brokers may be missing.
 */
export const splitBrokers = (document: unknown): readonly [unknown, unknown] => {
  if (typeof document !== "object" || document === null || !("brokers" in document)) return [document, undefined]
  const { brokers, ...rest } = document
  const options = Object.entries(isObject(brokers) ? brokers : {}).flatMap(([name, broker]) => {
    const own = isObject(broker) ? ConnectOptions.ofBroker.filter((key) => key in broker) : []
    return own.length === 0 ? [] : [[name, Object.fromEntries(own.map((key) => [key, at(broker, [key])]))] as const]
  })
  return [options.length === 0 ? rest : { ...rest, brokers: Object.fromEntries(options) }, brokers]
}

/** Puts the brokers back into a file. Their options of `connect` in the file stay. */
export const joinBrokers = (document: unknown, brokers: unknown): unknown => {
  if (brokers === undefined) return document
  const { brokers: options = {}, ...rest } = Object(document)
  const joined = isObject(brokers)
    ? Object.fromEntries(
        Object.entries(brokers).map(([name, broker]) => [
          name,
          Object.hasOwn(options, name) ? { ...Object(broker), ...options[name] } : broker
        ])
      )
    : brokers
  return { ...rest, brokers: joined }
}

interface Checked {
  readonly linked: Link.Linked
  readonly brokers: ConfigFile["brokers"]
}

type Problems = ReadonlyArray<StrictSchema.Problem>

/** Decodes and links a file. */
const decode = (document: unknown): Result.Result<Checked, Problems> => {
  const decoded = decodeFile(document, { errors: "all" })
  if (Result.isFailure(decoded)) {
    // Problems of brokers show no values: these may be secrets.
    const [shown] = splitBrokers(document)
    return Result.fail(StrictSchema.problems(decoded.failure, shown).map(ConnectOptions.explain))
  }
  const { brokers } = decoded.success
  return Result.map(Link.link(decoded.success), (linked) => ({ linked, brokers }))
}

/**
 * Decodes and links a file, or fails with all of its problems. One problem can hide others, so it removes the fields with
 * problems and tries the rest again. It tries refused text of `whole` as a number or boolean. `found` are the problems so far.
 */
export const check = (
  document: unknown,
  whole: ReadonlyArray<Path>,
  found: Problems = []
): Result.Result<Checked, Problems> => {
  const result = decode(document)
  if (Result.isSuccess(result)) return found.length === 0 ? result : Result.fail(found)
  const places = result.failure.map(({ path }) => path)
  const retyped = retype(document, whole, places)
  if (retyped !== document) return check(retyped, whole, found)
  const fresh = result.failure.filter(({ path }) => !found.some((known) => samePath(known.path, path)))
  if (fresh.length === 0) return Result.fail(found)
  const rest = fresh.reduce<unknown>((left, { path }) => without(left, path), document)
  return check(rest, whole, [...found, ...fresh])
}

/** Turns text at the paths `whole`, at or below a refused path, into the number or boolean that it represents. */
const retype = (value: unknown, whole: ReadonlyArray<Path>, refused: ReadonlyArray<Path>): unknown =>
  whole.reduce((retyped, path) => {
    const isRefused = refused.some((place) => place.every((key, index) => path[index] === key))
    const text = at(retyped, path)
    if (!isRefused || typeof text !== "string") return retyped
    const other = typed(/^(true|false)$/.test(text) ? true : 0, text)
    return other === text ? retyped : put(retyped, path, other)
  }, value)

/**
 * Removes the problem at a path. A field of a queue or policy is left out, a broker becomes a memory broker, and the
 * default broker becomes another one. Brokers, queues and policies keep their names.
 */
const without = (file: unknown, path: Path): unknown => {
  const [section, name, field] = path
  if (section === "brokers" && name !== undefined) return put(file, [section, name], "memory:")
  if (section === "broker") return put(file, [section], Object.keys(Object(at(file, ["brokers"])))[0])
  if (field !== undefined) return put(file, path.slice(0, 3), undefined)
  return put(file, path, name === undefined ? undefined : {})
}
