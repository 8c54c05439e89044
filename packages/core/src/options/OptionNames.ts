/**
 * Checks the names and kinds of options. Misspelt options and wrong values are refused, because an ignored limit could
 * lose messages or flood a service.
 *
 * When to use: in your own constructor or function that takes options.
 */
import * as Effect from "effect/Effect"
import { nearest } from "./nearest.ts"
import { quoted } from "./quoted.ts"
import { hasEntries, isObject, isPromise, remedyOfEntries, type OptionKind, show } from "./OptionKind.ts"
import { withoutPassword } from "./urlPassword.ts"

export { nearest } from "./nearest.ts"

/** For each option of `Options`, its kind, or `true` if other code checks the option. The compiler requires all options. */
export type Of<Options> = { readonly [K in keyof Required<Options>]: true | OptionKind }

/** The queue of a call: its name or definition. */
export type Queue = string | { readonly name: string } | undefined

/**
 * Makes an error that names the queue, and the call as the user wrote it. Use it synchronously in that call: the stack
 * then leads to the user's code.
 */
export const error = (call: string, queue: Queue, problem: string, remedy?: string): RangeError => {
  const name = typeof queue === "string" ? queue : queue?.name
  return new RangeError(
    `${call}${name === undefined ? "" : ` (queue ${quoted(name)})`}: ${problem}${remedy === undefined ? "" : `. ${remedy}`}`
  )
}

type Known = Readonly<Record<string, true | OptionKind>>

interface Problem {
  readonly detail: string
  readonly remedy?: string | undefined
}

/** Returns the problem of a value of the wrong kind. */
const problemOfValue = (name: string, value: unknown, kind: OptionKind): Problem | undefined =>
  kind.holds(value)
    ? undefined
    : { detail: `${name} must be ${kind.expected}, got ${show(value)}`, remedy: kind.remedy?.(value) }

/** Describes a property that a copy would lack, or whose value may change between reads; `undefined` for a plain one. */
const formOf = (options: object, name: string): string | undefined => {
  const own = Object.getOwnPropertyDescriptor(options, name)
  if (own === undefined) return "an inherited property"
  if (!("value" in own)) return "a getter"
  return own.enumerable === true ? undefined : "a property that is not enumerable"
}

/**
 * Returns the first option that is inherited, a getter or not enumerable, with its problem. Such an option would be
 * ignored, or could change before use.
 */
export const problemOfSource = (
  options: object,
  known: Readonly<Record<string, unknown>>
): (Required<Problem> & { readonly name: string }) | undefined => {
  for (const name in known) {
    const form = name in options ? formOf(options, name) : undefined
    if (form === undefined) continue
    return {
      name,
      detail: `must be a plain property, got ${form}`,
      remedy: `Write { ${name}: options.${name} }`
    }
  }
  return undefined
}

/**
 * A function that returns where an option of an unknown name belongs; `undefined` if no place has an option of this
 * name.
 */
export type Elsewhere = (name: string) => string | undefined

/** Returns the first problem of an options object. */
const problemOf = (options: unknown, known: Known, elsewhere?: Elsewhere): Problem | undefined => {
  if (!isObject(options) || hasEntries(options) || isPromise(options)) return problemOfForm(options, known)
  const source = problemOfSource(options, known)
  if (source !== undefined) return { ...source, detail: `${source.name} ${source.detail}` }
  // This runs for every send and retry, so it lists no names and checks ownership only of unknown ones.
  for (const name in options) {
    const kind = known[name]
    if (kind === true) continue
    if (kind?.holds === undefined) {
      if (Object.hasOwn(options, name)) {
        return problemOfPlace(name, options, known) ?? problemOfName(name, known, elsewhere)
      }
      continue
    }
    const value = (options as Readonly<Record<string, unknown>>)[name] // `name` is one of its keys.
    if (value !== undefined && !kind.holds(value)) return problemOfValue(name, value, kind)
  }
  return undefined
}

const problemOfForm = (given: unknown, known: Known): Problem => {
  const names = Object.keys(known)
  const detail = `options must be an object, got ${show(given)}`
  if (given === undefined || given === null) return { detail, remedy: "Write {} for the defaults" }
  if (isObject(given)) return { detail, remedy: isPromise(given) ? "Await the promise first" : remedyOfEntries }
  const all = { detail, remedy: allowed(names) }
  if (typeof given !== "string" && typeof given !== "number") return all
  const [meant, ...others] = names.filter((name) => isMeant(known[name], given))
  if (meant === undefined || others.length > 0) return all
  return { detail, remedy: `Write { ${meant}: ${typeof given === "string" && given.length > 40 ? "…" : show(given)} }` }
}

const isMeant = (kind: true | OptionKind | undefined, given: unknown): boolean =>
  typeof kind === "object" && (kind.fits ?? kind.holds)(given)

/** Returns the problem of an option that belongs inside another one. */
const problemOfPlace = (name: string, options: object, known: Known): Problem | undefined => {
  for (const [home, kind] of Object.entries(known)) {
    const inside = typeof kind === "object" ? kind.inside : undefined
    const write = inside !== undefined && Object.hasOwn(inside, name) ? inside[name] : undefined
    if (write === undefined) continue
    const value: unknown = Reflect.get(options, name)
    const isShown = ["string", "number", "boolean"].includes(typeof value)
    const remedy = `It belongs in ${home}. Write ${home}: ${write(isShown ? show(value) : "…")}`
    return { detail: `unknown option ${name}`, remedy }
  }
  return undefined
}

const problemOfName = (name: string, known: Known, elsewhere: Elsewhere | undefined): Problem => {
  const names = Object.keys(known)
  const meant = nearest(name, names)
  const place = meant === undefined ? elsewhere?.(name) : undefined
  const example = meant === undefined ? undefined : exampleOf(known, meant)
  const advice = place ?? remedy(name, names)
  return {
    detail: `unknown option ${withoutPassword(name)}`,
    remedy: example === undefined ? advice : `${advice} Write ${meant}: ${example}`
  }
}

const exampleOf = (known: Known, name: string): string | undefined => {
  const kind = known[name]
  return typeof kind === "object" ? kind.example : undefined
}

/** Returns the error of an argument of the wrong kind; `undefined` if the argument is right. */
export const argument = (
  call: string,
  name: string,
  value: unknown,
  kind: OptionKind,
  queue?: Queue
): RangeError | undefined => {
  const problem = problemOfValue(name, value, kind)
  return problem && error(call, queue, problem.detail, problem.remedy)
}

/**
 * Returns the error of the first option that is unknown or of the wrong kind. A known option with the value `undefined`
 * counts as left out.
 */
export const refusal = (
  call: string,
  options: unknown,
  known: Known,
  queue?: Queue,
  elsewhere?: Elsewhere
): RangeError | undefined => {
  const problem = problemOf(options, known, elsewhere)
  return problem && error(call, queue, problem.detail, problem.remedy)
}

/** Returns the error of the first batch entry without a body, or with an unknown option or a wrong kind. */
export const entries = (
  call: string,
  field: string,
  given: unknown,
  known: Known,
  queue?: Queue
): RangeError | undefined => {
  if (!Array.isArray(given)) return error(call, queue, `${field} must be an array, got ${show(given)}`)
  for (let index = 0; index < given.length; index++) {
    const entry: unknown = given[index]
    const place = `${field}[${index}]`
    if (!isObject(entry) || !("body" in entry)) {
      const problem = isObject(entry) ? "has no body" : `must be an object with a body, got ${show(entry)}`
      return error(call, queue, `${place} ${problem}`, "Write { body: message } for each message")
    }
    const problem = problemOf(entry, known)
    if (problem !== undefined) return error(call, queue, `${place}: ${problem.detail}`, problem.remedy)
  }
  return undefined
}

/**
 * Checks an options object at run time. `call` names the function in the error.
 *
 * @throws RangeError naming the first option that is unknown or of the wrong kind
 */
export const check = <Options extends object>(
  call: string,
  options: Options,
  known: Of<Options>,
  queue?: Queue
): void => orThrow(refusal(call, options, known, queue))

/** Throws the error, if there is one. */
export const orThrow = (refused: Error | undefined): void => {
  if (refused !== undefined) throw refused
}

/** Returns the effect; if there is an error, an effect that dies with it. The error's stack leads to the caller. */
export const orDie = <A, E, R>(
  refused: RangeError | undefined,
  effect: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => (refused === undefined ? effect() : Effect.die(refused))

/** Returns the advice for an unknown name: the nearest known name, or all known names. */
export const remedy = (name: string, known: ReadonlyArray<string>): string => {
  if (known.length === 0) return `Add ${withoutPassword(name)} first`
  const meant = nearest(name, known)
  return meant === undefined ? allowed(known) : `Did you mean ${withoutPassword(meant)}?`
}

const allowed = (names: ReadonlyArray<string>): string => `Allowed: ${names.map(withoutPassword).join(", ")}`
