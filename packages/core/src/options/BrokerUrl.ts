/**
 * Parses the URLs of brokers. Each part is percent-decoded and otherwise unchanged. A URL is refused if JavaScript's
 * `URL` class would remove or replace text in it. No error shows a part of the URL: any part may belong to a password
 * that is not percent-encoded.
 *
 * When to use: in an adapter, instead of `new URL`.
 *
 * @example
 * ```ts
 * import { BrokerUrl } from "@requeue/core/port"
 * import { Result } from "effect"
 *
 * const { password, path } = Result.getOrThrow(BrokerUrl.parse("acme://user:p%40ss@host/my%2Fpath"))
 * password // => "p@ss"
 * path // => "my/path"
 * ```
 */
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { show } from "./OptionKind.ts"
import { remedy } from "./OptionNames.ts"

export { passwordOf, withoutPassword } from "./urlPassword.ts"

/** The decoded parts of a URL. */
export interface BrokerUrl {
  readonly url: URL
  readonly username: string
  readonly password: string
  /** The path without its first slash. */
  readonly path: string
  readonly parameters: Readonly<Record<string, string>>
}

/** A reason to refuse a URL. */
export interface Problem {
  readonly detail: string
  /** How to fix the URL. Default: the adapter's own example. */
  readonly remedy?: string
}

const encoding =
  "Percent-encode special characters inside the parts, with encodeURIComponent: @ is %40, / is %2F, ? is %3F, # is %23, % is %25"

const refuse = (detail: string, how?: string): Result.Result<never, Problem> =>
  Result.fail(how === undefined ? { detail } : { detail, remedy: how })

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Whether the URL parser would silently remove or replace text. It keeps the dots of a path without a first slash. */
const isAltered = (text: string): boolean =>
  /[\t\n\r]/.test(text.trim()) ||
  !text.isWellFormed() ||
  (!/^\w+:[^/]/.test(text.trim()) && /\/(\.|%2e){1,2}(?=[/?#]|$)/i.test(text.trim()))

/** Finds a parameter that is unknown or given twice, or a plus, which means a space in forms and a plus to people. */
const problemOfQuery = ({ search, searchParams }: URL, known: ReadonlyArray<string>): Problem | undefined => {
  if (search.includes("+")) {
    return { detail: "the URL has a + in its query", remedy: "Write %2B for a plus, and %20 for a space" }
  }
  const names = [...searchParams.keys()]
  const other = names.find((name) => !known.includes(name))
  if (other !== undefined) {
    return { detail: "the URL has a parameter that is not an option", remedy: remedy(other, known) }
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  return twice === undefined ? undefined : { detail: `the parameter ${twice} is given twice`, remedy: "Write it once" }
}

/**
 * Parses a URL. `known` lists the query parameters that the URL may have, each at most once. Default: the URL may have any
 * parameters, and if a name occurs several times, the last value counts.
 */
export const parse = (
  input: string | URL | Redacted.Redacted,
  known?: ReadonlyArray<string>
): Result.Result<BrokerUrl, Problem> => {
  const given: unknown = Redacted.isRedacted(input) ? Redacted.value(input) : input
  if (typeof given !== "string" && !(given instanceof URL)) return refuse(`must be a URL, got ${show(given)}`)
  if (typeof given === "string" && isAltered(given)) {
    return refuse("the URL has a line break, a path of dots, or a character that no URL can have", encoding)
  }
  const url = given instanceof URL ? given : URL.parse(given)
  // An @ ends a password, in which one of these characters would end the host.
  if (url === null) return refuse("the value is not a valid URL", String(given).includes("@") ? encoding : undefined)
  if (url.href.includes("#")) return refuse("the URL has a #, which would start a fragment", encoding)
  if (`${url.pathname}${url.search}`.includes("@")) return refuse("the URL has an @ after the host", encoding)
  const [username, password] = [decoded(url.username), decoded(url.password)]
  const path = decoded(url.pathname.replace(/^\//, ""))
  if (username === undefined || password === undefined || path === undefined || decoded(url.search) === undefined) {
    return refuse("the URL has a % that encodes no character", encoding)
  }
  const problem = known && problemOfQuery(url, known)
  if (problem !== undefined) return Result.fail(problem)
  return Result.succeed({ url, username, password, path, parameters: Object.fromEntries(url.searchParams) })
}
