/** Fills in secrets in a file: `${NAME}` stands for the environment variable NAME. */
import type * as StrictSchema from "../StrictSchema.ts"
import type { Overridden, Variables } from "./overrides.ts"
import { at, isObject, leaves, type Path } from "./values.ts"

type Problem = StrictSchema.Problem

type Refuse = (problem: Omit<Problem, "path">) => void

/** A value with its secrets filled in. */
export interface Expanded {
  readonly value: unknown
  /** The values that were filled in, by variable. No error shows them. */
  readonly secrets: ReadonlyMap<string, string>
  /** The paths of texts that consist of one variable only: such a text may stand for a number or a boolean. */
  readonly whole: ReadonlyArray<Path>
  readonly problems: ReadonlyArray<Problem>
}

/**
 * Matches dollars before a brace, and the name in the brace. Two dollars stand for one; an odd dollar begins a variable.
 */
const form = /(\$+)\{(?:([A-Za-z_]\w*)\})?/

/** A text up to a match of {@link form}, and the match: a variable's name, text, or neither. */
interface Step {
  readonly before: string
  readonly after: string
  readonly found: { readonly variable: string } | "text" | "unknown"
}

/** Reads a text up to the first match of {@link form}; `undefined` if there is none. */
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

/** Returns the part of a URL that comes between `before` and `after`; `undefined` if `before` does not begin a URL. */
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
    return {
      detail,
      remedy:
        "In the config file, write the inner URL as an option of the broker, next to the option url, not in the query of url"
    }
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

/**
 * Returns the problem of a `${` that does not begin `${NAME}`. The text after it may be a password, so little of it is
 * shown.
 */
const unknownForm = (after: string): Omit<Problem, "path"> => {
  const [, space = "", name = "", operator = ""] = /^( ?)([A-Z_][A-Z0-9_]*)( |:?[-=?+]|(?=\}))[^}]*\}/.exec(after) ?? []
  return {
    detail: `\${${space}${name}${operator}…} is not a variable: defaults, spaces and other forms are not supported`,
    remedy: `Write \${${name === "" ? "NAME" : name}}, or $\${ for the text \${`
  }
}

/** Matches `$NAME` as a whole text, or as the password of a URL. */
const bare = /^\$([A-Za-z_]\w*)$|^[a-z][\w+.-]*:\/\/[^/?#@:]*:\$([A-Za-z_]\w*)@/i

/** Whether a path is that of a broker's URL. */
const isUrl = ([section, , field, ...rest]: Path): boolean =>
  section === "brokers" && field === "url" && rest.length === 0

/**
 * Returns the problem of a URL that begins with `$NAME`. A name that is not in capitals may be a password, so it is not
 * shown.
 */
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
