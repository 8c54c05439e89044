/**
 * The options of an Acme broker: from code, from a config object, or from a URL.
 *
 * They are decoded and checked before anything is connected. No error shows the URL: it may hold a password.
 */
import { AdapterOptions, ConfigurationError, OptionKind } from "@requeue/core/adapter-kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

const decodeFields = AdapterOptions.decoder("acme", {
  timeout: OptionKind.whole(100, 120_000),
  create: OptionKind.flag
})

/** The options of an Acme broker. Each can stand in the URL's query as well, and beats it there. */
export interface Options {
  /** Where Acme is. A `Redacted` one keeps its password out of logs. Default: `acme://localhost`. */
  readonly url?: string | URL | Redacted.Redacted | undefined
  /** Milliseconds that a publish, a settlement or a question may take. Default: 10000. */
  readonly timeout?: number | undefined
  /** Whether queues that are missing are created when they are first used. Default: true. */
  readonly create?: boolean | undefined
}

/** Decoded options, with every default filled in. */
export interface Settings {
  /** May hold a password: not for logs and errors. */
  readonly url: Redacted.Redacted<URL>
  readonly timeout: number
  readonly create: boolean
}

const refuse = (field: string, detail: string): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(
    new ConfigurationError.ConfigurationError({
      field,
      detail,
      remedy: "Write, for example, acme://localhost?timeout=5000",
      broker: "acme"
    })
  )

/** Numbers and truths, which are text in a URL. */
const valueOf = (text: string): unknown => {
  if (/^\d+$/.test(text)) return Number(text)
  return text === "true" ? true : text === "false" ? false : text
}

/** Decodes options. Those of the URL's query are beaten by those of the object. */
export const decode = (options: Options = {}): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { url: given = "acme://localhost", ...own } = options
  const url = URL.parse(String(Redacted.isRedacted(given) ? Redacted.value(given) : given))
  if (url === null) return refuse("url", "it is no URL")
  if (url.protocol !== "acme:") return refuse("url", `the scheme ${url.protocol} is not acme:`)
  const names = [...url.searchParams.keys()]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) return refuse(twice, "it is given twice in the URL")
  const query = Object.fromEntries([...url.searchParams].map(([name, text]) => [name, valueOf(text)]))
  return Result.map(decodeFields(query, own), ({ create = true, timeout = 10_000 }) => ({
    url: Redacted.make(url),
    timeout,
    create
  }))
}
