/**
 * The options of an Acme broker: from code, from a config object, or from a URL.
 *
 * They are decoded and checked before anything is connected. No error shows the URL: it may hold a password.
 */
import { BrokerUrl, ConfigurationError, Delay, OptionKind } from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

const fields = {
  timeout: Delay.kind(100, 120_000),
  create: OptionKind.flag
}

const decodeFields = AdapterOptions.decoder("acme", fields)

/** The options of an Acme broker. Each can be in the URL's query as well, which it overrides. */
export interface Options {
  /** The address of Acme. A `Redacted` one keeps its password out of logs. Default: `acme://localhost`. */
  readonly url?: string | URL | Redacted.Redacted | undefined
  /** Milliseconds that a publish, a settlement or a query may take. Default: 10000. */
  readonly timeout?: Delay.DurationInput | undefined
  /** Whether missing queues are created when they are first used. Default: true. */
  readonly create?: boolean | undefined
}

/** Decoded options, with every default filled in. */
export interface Settings {
  /** May hold a password: not for logs and errors. */
  readonly url: Redacted.Redacted<URL>
  readonly timeout: number
  readonly create: boolean
}

const example = "Write, for example, acme://localhost?timeout=5000"

const refuse = (detail: string, remedy = example): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field: "url", detail, remedy, broker: "acme" }))

/** Decodes options. Those of the object override those of the URL's query. */
export const decode = (options: Options = {}): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { url: given = "acme://localhost", ...own } = options
  const parsed = BrokerUrl.parse(given, Object.keys(fields))
  if (Result.isFailure(parsed)) return refuse(parsed.failure.detail, parsed.failure.remedy)
  const { parameters, url } = parsed.success
  if (url.protocol !== "acme:") return refuse(`the scheme ${url.protocol} is not acme:`)
  return Result.map(decodeFields(parameters, own), ({ create = true, timeout = 10_000 }) => ({
    url: Redacted.make(url),
    timeout,
    create
  }))
}
