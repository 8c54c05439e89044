/** Environment variables in a file: overrides of its values, and secrets in them. */
import { Adapter, OptionNames } from "@requeue/core/port"
import type * as StrictSchema from "../StrictSchema.ts"

/** The environment variables of a process. */
export type Variables = Readonly<Record<string, string | undefined>>

type Path = StrictSchema.Problem["path"]

/** Whether a value is an object of the file. In a module, an adapter or an object of a class with methods is one value. */
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => {
  if (typeof value !== "object" || value === null || Array.isArray(value) || Adapter.isAdapter(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  // Objects of another realm, such as a test runner's, have another prototype.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return true
  return Object.getOwnPropertyNames(prototype).every((name) => name === "constructor") && !hasMethods(value)
}

const hasMethods = (value: object): boolean => Object.values(value).some((item) => typeof item === "function")

/** The paths of all values that are neither object nor list. */
const leaves = (value: unknown, path: Path = []): ReadonlyArray<Path> => {
  if (Array.isArray(value)) return value.flatMap((item, index) => leaves(item, [...path, index]))
  if (isObject(value)) return Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]))
  return [path]
}

/** The variable of a path: `REQUEUE_QUEUES_ORDERS_RETRY_MAX_RETRIES` for `queues.orders.retry.maxRetries`. */
export const variableOf = (path: Path): string =>
  ["requeue", ...path]
    .map((key) =>
      String(key)
        .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, "_")
        .replaceAll(/[^A-Za-z0-9]+/g, "_")
        .toUpperCase()
    )
    .join("_")

const keysOf = (file: Readonly<Record<string, unknown>>, section: string): ReadonlyArray<string> =>
  Object.keys(isObject(file[section]) ? file[section] : {})

/** The paths that variables may override: those of the file's values, and those that choose a broker. */
const slots = (file: Readonly<Record<string, unknown>>): ReadonlyArray<Path> => [
  ["broker"],
  ...keysOf(file, "brokers").map((name) => ["brokers", name, "url"]),
  ...keysOf(file, "queues").map((name) => ["queues", name, "broker"]),
  ...leaves(file)
]

const set = (value: unknown, [key, ...rest]: Path, text: string): unknown => {
  if (key === undefined) return typed(value, text)
  if (Array.isArray(value)) return value.map((item, index) => (index === key ? set(item, rest, text) : item))
  const object = isObject(value) ? value : {}
  return { ...object, [key]: set(object[key], rest, text) }
}

/** Turns a text into a number or a boolean where the value before was one. */
const typed = (value: unknown, text: string): unknown => {
  if (typeof value === "number" && text.trim() !== "" && Number.isFinite(Number(text))) return Number(text)
  if (typeof value === "boolean" && ["true", "false"].includes(text)) return text === "true"
  return text
}

const isOverride = (name: string): boolean => /^REQUEUE_(BROKER$|(BROKERS|QUEUES|POLICIES)_)/.test(name)

/** Turns brokers that are a URL into objects, so every broker has its `url`. */
const normal = (file: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  if (!isObject(file["brokers"])) return file
  const brokers = Object.entries(file["brokers"]).map(
    // Variables are filled in only inside objects, so another value must not count as a broker.
    ([name, url]) => [name, typeof url === "string" ? { url } : isObject(url) ? url : undefined] as const
  )
  return { ...file, brokers: Object.fromEntries<unknown>(brokers) }
}

/** A file with its overrides. */
export interface Overridden {
  readonly value: unknown
  /** The paths of values that variables have set, as JSON. `${NAME}` in such a value is not filled in. */
  readonly set: ReadonlySet<string>
  readonly problems: ReadonlyArray<StrictSchema.Problem>
}

/** The problem of a variable that is the name of no value in the file. `others` are values that the file may have. */
const overridesNothing = (
  name: string,
  file: Readonly<Record<string, unknown>>,
  found: ReadonlyMap<string, unknown>,
  others: ReadonlyArray<Path>
): Problem => {
  const absent = others.find((path) => variableOf(path) === name)
  if (absent !== undefined) {
    const detail = `the file has no ${absent.join(".")} that this environment variable could override`
    return { path: [name], detail, remedy: `Write ${absent.join(".")} in the file first, or unset ${name}` }
  }
  // Of a name that begins right, only the rest can be wrong.
  const items = ["brokers", "queues", "policies"].flatMap((section) =>
    keysOf(file, section).map((key) => [section, key])
  )
  const right = items.map((item) => `${variableOf(item)}_`).find((start) => name.startsWith(start)) ?? ""
  const known = [...found.keys(), ...others.map(variableOf)].filter((each) => each.startsWith(right))
  const meant = OptionNames.nearest(
    name.slice(right.length),
    known.map((each) => each.slice(right.length))
  )
  return {
    path: [name],
    detail: "this environment variable overrides nothing in the file",
    remedy:
      meant === undefined ? `Write the value in the file first, or unset ${name}` : `Did you mean ${right}${meant}?`
  }
}

/**
 * Puts the values of environment variables into a file. A variable that overrides nothing is a problem. `allowed` are the
 * paths that each entry of a section may have.
 */
export const override = (
  given: unknown,
  environment: Variables,
  allowed: Readonly<Record<string, ReadonlyArray<Path>>> = {}
): Overridden => {
  if (!isObject(given)) return { value: undefined, set: new Set(), problems: [] }
  const written = normal(given)
  let file: unknown = written
  const found = Map.groupBy(slots(written), variableOf)
  const others = Object.entries(allowed).flatMap(([section, paths]) =>
    keysOf(written, section).flatMap((key) => paths.map((path) => [section, key, ...path]))
  )
  const problems: Array<StrictSchema.Problem> = []
  const done = new Set<string>()
  for (const [name, text] of Object.entries(environment)) {
    if (text === undefined || !isOverride(name)) continue
    const paths = [...new Map((found.get(name) ?? []).map((path) => [JSON.stringify(path), path])).values()]
    const [path] = paths
    if (path === undefined) {
      problems.push(overridesNothing(name, written, found, others))
    } else if (paths.length > 1) {
      const detail = `this environment variable could override ${paths.map((p) => p.join(".")).join(" or ")}`
      problems.push({ path: [name], detail, remedy: "Rename one of them" })
    } else {
      file = set(file, path, text)
      done.add(JSON.stringify(path))
    }
  }
  return { value: file, set: done, problems }
}

/** A value with its secrets filled in. */
export interface Expanded {
  readonly value: unknown
  /** The values that were filled in, by variable. No error shows them. */
  readonly secrets: ReadonlyMap<string, string>
  /** The paths of texts that are one variable and nothing else: they may stand for a number or a boolean. */
  readonly whole: ReadonlyArray<Path>
  readonly problems: ReadonlyArray<StrictSchema.Problem>
}

/** Dollars before a brace, and the name in it. Two dollars stand for one; an odd one begins a variable. */
const form = /(\$+)\{(?:([A-Za-z_]\w*)\})?/

/** A text up to a form, and the form: a variable's name, text, or neither. */
interface Step {
  readonly before: string
  readonly after: string
  readonly found: { readonly variable: string } | "text" | "unknown"
}

/** Reads a text up to its first form; `undefined` if it has none. */
const step = (text: string): Step | undefined => {
  const match = form.exec(text)
  if (match === null) return undefined
  const [all, { length } = "", variable] = match
  const before = text.slice(0, match.index) + "$".repeat(Math.floor(length / 2))
  const isText = length % 2 === 0
  if (!isText && variable !== undefined) {
    return { before, after: text.slice(match.index + all.length), found: { variable } }
  }
  return { before, after: text.slice(match.index + length + 1), found: isText ? "text" : "unknown" }
}

/** The part of a URL that comes between `before` and `after`; `undefined` where `before` does not begin a URL. */
const partOf = (before: string, after: string): "account" | "host" | "rest" | undefined => {
  const [, afterScheme] = /^[a-z][a-z0-9+.-]*:(\/\/.*|\?.*)$/is.exec(before) ?? []
  if (afterScheme === undefined) return undefined
  if (/^\?|^\/\/.*[/?#]/s.test(afterScheme)) return "rest"
  const [authority = ""] = /^[^/?#]*/.exec(after) ?? []
  return authority.includes("@") ? "account" : "host"
}

/** Whether a text ends inside a URL in the query of another URL, where a value would need encoding twice. */
const isNested = (before: string): boolean => /[?&][^=&]*=[^&]*(:|%3a)(\/|%2f){2}[^&]*$/i.test(before)

/** Encodes a variable's value for its place in a text, or returns the problem. */
const inserted = (name: string, value: string, before: string, after: string): string | Omit<Problem, "path"> => {
  const part = partOf(before, after)
  const what = `the environment variable ${name}`
  // An empty password would be used for the login.
  const isNeeded = part === "account" || `${before}${after}` === ""
  if (isNeeded && value === "") return { detail: `${what} is empty`, remedy: `Set ${name}` }
  if (part === undefined) return value
  if (part === "host") {
    if (/^[\w.:[\]-]*$/.test(value)) return value
    return { detail: `${what} has characters that no host or port has`, remedy: `Set ${name} to a host or a port` }
  }
  if (isNested(before)) {
    const detail = `${what} is part of a URL in the query of another URL`
    return { detail, remedy: "Write the inner URL as an option of the broker" }
  }
  if (value.isWellFormed()) return encodeURIComponent(value)
  return { detail: `${what} has a character that no URL can have`, remedy: `Set ${name} to other characters` }
}

/** Fills in a text from left to right, and reports the variables that it cannot fill in. */
const filled = (template: string, valueOf: (name: string) => string | undefined, refuse: Refuse): string => {
  let [before, rest] = ["", template]
  for (;;) {
    const next = step(rest)
    if (next === undefined) return before + rest
    before += next.before
    rest = next.after
    if (typeof next.found === "string") {
      before += next.found === "text" ? "{" : "${"
      continue
    }
    const name = next.found.variable
    const value = valueOf(name)
    const text =
      value === undefined
        ? { detail: `the environment variable ${name} is not set`, remedy: `Set ${name}` }
        : inserted(name, value, before, rest)
    if (typeof text !== "string") refuse(text)
    before += typeof text === "string" ? text : `\${${name}}`
  }
}

/** The problem of a `${` that does not begin `${NAME}`. The text after it may be a password, so little of it is shown. */
const unknownForm = (after: string): Omit<Problem, "path"> => {
  const [, space = "", name = "", operator = ""] = /^( ?)([A-Z_][A-Z0-9_]*)( |:?[-=?+]|(?=\}))[^}]*\}/.exec(after) ?? []
  return {
    detail: `\${${space}${name}${operator}…} is not a variable: defaults, spaces and other forms are not supported`,
    remedy: `Write \${${name === "" ? "NAME" : name}}, or $\${ for the text \${`
  }
}

/** A text, or the password of a URL, that is `$NAME`. */
const bare = /^\$([A-Za-z_]\w*)$|^[a-z][\w+.-]*:\/\/[^/?#@:]*:\$([A-Za-z_]\w*)@/i

/** Whether a path is that of a broker's URL. */
const isUrl = ([section, , field, ...rest]: Path): boolean =>
  section === "brokers" && field === "url" && rest.length === 0

/** The problem of a URL that begins with `$NAME`. A name that is not in capitals may be a password, so it is not shown. */
const unfilledUrl = (text: string): Omit<Problem, "path"> | undefined => {
  const [, name, variable] = /^\$(([A-Z_][A-Z0-9_]*)(?!\w)|[A-Za-z_])/.exec(text) ?? []
  if (name === undefined) return undefined
  return {
    detail: `a URL cannot begin with $${variable ?? "…"}, which is not a variable`,
    remedy: `Write \${${variable ?? "NAME"}} for the environment variable`
  }
}

/**
 * Returns the problems of texts that look like a variable: `${NAME:-default}`, `${ NAME }`, and `$NAME` if that variable is set
 * or the text is a URL. It skips the paths of `verbatim`.
 */
export const mistaken = (file: unknown, environment: Variables, verbatim: Overridden["set"]): ReadonlyArray<Problem> =>
  leaves(file).flatMap((path) => {
    const text = at(file, path)
    if (typeof text !== "string" || verbatim.has(JSON.stringify(path))) return []
    const problems: Array<Problem> = []
    for (let next = step(text); next !== undefined; next = step(next.after)) {
      if (next.found === "unknown") problems.push({ path, ...unknownForm(next.after) })
    }
    const unfilled = isUrl(path) ? unfilledUrl(text) : undefined
    if (unfilled !== undefined) return [{ path, ...unfilled }]
    const [, whole, password = whole] = bare.exec(text) ?? []
    if (password === undefined || typeof environment[password] !== "string") return problems
    const detail = `$${password} is text, although an environment variable ${password} is set`
    return [
      ...problems,
      { path, detail, remedy: `Write \${${password}}, or another variable whose value is this text` }
    ]
  })

type Problem = StrictSchema.Problem

type Refuse = (problem: Omit<Problem, "path">) => void

/**
 * Fills in `${NAME}` in every text of a value, and writes `${` for `$${`, except for texts at the paths of `verbatim`. In the
 * user name, password, path and query of a URL, it percent-encodes the values.
 */
export const expand = (
  given: unknown,
  environment: Variables,
  at: Path,
  verbatim: ReadonlySet<string> = new Set()
): Expanded => {
  const secrets = new Map<string, string>()
  const problems: Array<Problem> = []
  const whole: Array<Path> = []
  const valueOf = (name: string): string | undefined => {
    const secret = environment[name]
    if (secret !== undefined) secrets.set(name, secret)
    return secret
  }
  const fill = (value: unknown, path: Path): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => fill(item, [...path, index]))
    if (isObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, [...path, key])]))
    }
    if (typeof value !== "string" || verbatim.has(JSON.stringify(path))) return value
    if (/^\$\{[A-Za-z_]\w*\}$/.test(value)) whole.push(path)
    return filled(value, valueOf, (problem) => problems.push({ path, ...problem }))
  }
  return { value: fill(given, at), secrets, whole, problems }
}

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((inner, key) => (Object(inner) === inner ? Reflect.get(Object(inner), key) : undefined), value)

/** Turns text at the paths `whole`, at or below a refused path, into the number or boolean that it represents. */
export const retype = (value: unknown, whole: ReadonlyArray<Path>, refused: ReadonlyArray<Path>): unknown =>
  whole.reduce((retyped, path) => {
    const isRefused = refused.some((place) => place.every((key, index) => path[index] === key))
    const text = at(retyped, path)
    if (!isRefused || typeof text !== "string") return retyped
    const other = typed(/^(true|false)$/.test(text) ? true : 0, text)
    return other === text ? retyped : put(retyped, path, other)
  }, value)

/** Replaces the value at an existing path; `undefined` removes it. */
const put = (value: unknown, [key, ...rest]: Path, inner: unknown): unknown => {
  if (key === undefined) return inner
  if (Array.isArray(value)) return value.map((item, index) => (index === key ? put(item, rest, inner) : item))
  if (!isObject(value) || !Object.hasOwn(value, key)) return value
  const changed = put(value[key], rest, inner)
  const { [key]: _, ...others } = value
  return changed === undefined ? others : { ...value, [key]: changed }
}

/**
 * Removes the problem at a path: the field of a queue or policy is left out, a broker becomes one in memory, the default broker
 * another one. Brokers, queues and policies keep their names.
 */
export const without = (file: unknown, path: Path): unknown => {
  const [section, name, field] = path
  if (section === "brokers" && name !== undefined) return put(file, [section, name], "memory:")
  if (section === "broker") return put(file, [section], Object.keys(Object(at(file, ["brokers"])))[0])
  if (field !== undefined) return put(file, path.slice(0, 3), undefined)
  return put(file, path, name === undefined ? undefined : {})
}

/** Returns the forms of a secret in a text: as it is, percent-encoded, in quotes, or in one line. */
const forms = (secret: string): ReadonlyArray<string> => [
  secret,
  encodeURIComponent(secret.toWellFormed()),
  JSON.stringify(secret).slice(1, -1),
  secret.replaceAll(/\s+/g, " ")
]

/** Replaces secrets in a text by their variables. A value of one or two characters does not count as a secret. */
export const mask = (text: string, secrets: ReadonlyMap<string, string>): string => {
  const longest = [...secrets].filter(([, secret]) => secret.length > 2).toSorted(([, a], [, b]) => b.length - a.length)
  return longest.reduce(
    (masked, [name, secret]) =>
      forms(secret).reduce((shown, form) => shown.replaceAll(form, () => `\${${name}}`), masked),
    text
  )
}

/** Masks the secrets in a problem's texts. */
export const maskProblem = (
  { detail, path, remedy }: StrictSchema.Problem,
  secrets: Expanded["secrets"]
): StrictSchema.Problem => ({
  path,
  detail: mask(detail, secrets),
  remedy: remedy === undefined ? undefined : mask(remedy, secrets)
})
