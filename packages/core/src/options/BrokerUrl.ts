/**
 * URLs of brokers, parsed so strictly that every part arrives as it was written, or the URL is refused. No error shows a
 * part of the URL that can be a secret: where a password is not percent-encoded, that can be any part.
 *
 * When to use: in an adapter, in place of `new URL`.
 *
 * @example
 * ```ts
 * import { BrokerUrl } from "@requeue/core/adapter-kit"
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

/** The parts of a URL, decoded. */
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
  /** Default: an example of the adapter's own. */
  readonly remedy?: string
}

/** How a URL with special characters is written. */
export const encoding = "Percent-encode what stands between the parts: @ is %40, / is %2F, ? is %3F, # is %23, % is %25"

const refuse = (detail: string, how?: string): Result.Result<never, Problem> =>
  Result.fail(how === undefined ? { detail } : { detail, remedy: how })

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Whether the URL parser would remove or replace a part of the text silently. */
const isAltered = (text: string): boolean =>
  /[\t\n\r]/.test(text.trim()) || !text.isWellFormed() || /\/(\.|%2e){1,2}(?=[/?#]|$)/i.test(text.trim())

/** Parses a URL. `known` are the parameters that its query may have. Default: any. */
export const parse = (
  input: string | URL | Redacted.Redacted,
  known?: ReadonlyArray<string>
): Result.Result<BrokerUrl, Problem> => {
  const given: unknown = Redacted.isRedacted(input) ? Redacted.value(input) : input
  if (typeof given !== "string" && !(given instanceof URL)) return refuse(`must be a URL, got ${show(given)}`)
  if (typeof given === "string" && isAltered(given)) {
    return refuse("it has a line break, a path of dots, or a character that no URL can have", encoding)
  }
  const url = given instanceof URL ? given : URL.parse(given)
  if (url === null) return refuse("it is not a valid URL")
  if (url.href.includes("#")) return refuse("it has a #, which would start a fragment", encoding)
  if (`${url.pathname}${url.search}`.includes("@")) return refuse("it has an @ after the host", encoding)
  const [username, password] = [decoded(url.username), decoded(url.password)]
  const path = decoded(url.pathname.replace(/^\//, ""))
  if (username === undefined || password === undefined || path === undefined || decoded(url.search) === undefined) {
    return refuse("it has a % that encodes no character", encoding)
  }
  const names = [...url.searchParams.keys()]
  const other = known && names.find((name) => !known.includes(name))
  if (known !== undefined && other !== undefined) {
    return refuse("its query has a parameter that is not an option", remedy(other, known))
  }
  if (new Set(names).size < names.length) {
    const twice = known && names.find((name, index) => names.indexOf(name) !== index)
    return refuse(`${twice === undefined ? "a parameter" : `the parameter ${twice}`} is given twice`, "Give it once")
  }
  return Result.succeed({ url, username, password, path, parameters: Object.fromEntries(url.searchParams) })
}
