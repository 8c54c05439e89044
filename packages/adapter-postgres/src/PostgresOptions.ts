/**
 * The options of a PostgreSQL broker: from code, from a config object, or from a URL.
 *
 * They are decoded and checked before the adapter connects. Passwords are `Redacted` from here on.
 */
import { AsyncContext, BrokerUrl, ConfigurationError, Delay, OptionKind } from "@requeue/core/port"
import { AdapterOptions, TlsOptions } from "@requeue/kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/** Options of TLS, as `node:tls` takes them. */
export type Tls = TlsOptions.Tls

/** Returns the password of a new connection, such as a token that expires. */
export type Provider = () => string | Promise<string>

const fields = {
  schema: OptionKind.matching("1 to 63 characters without NUL", /^[^\0]{1,63}$/u),
  create: OptionKind.flag,
  notify: OptionKind.flag,
  lease: Delay.kind(1000, 43_200_000),
  timeout: Delay.kind(100, 120_000)
}

/** Further parameters of a URL. */
const inUrl = ["sslmode"]

const decodeFields = AdapterOptions.decoder("postgres", fields, ["url", "password", "tls"])

/** The options of a PostgreSQL broker. Most can also be in the URL's query; the options override it. */
export interface Options {
  /**
   * `postgres://user:password@host:5432/database`. The parameter `sslmode` is `disable`, `require` or `verify-full`; the last two
   * are the same. Default: `postgres://127.0.0.1`, where user and database are `postgres`.
   */
  readonly url?: string | URL | Redacted.Redacted | undefined
  /** Password, or a function that returns it for each connection. Default: the URL's. */
  readonly password?: string | Redacted.Redacted | Provider | undefined
  /** `true`, or certificates and keys; the server's certificate is always checked. Default: as the URL's `sslmode`, else no TLS. */
  readonly tls?: boolean | Tls | undefined
  /** Schema of the tables. Default: `requeue`. */
  readonly schema?: string | undefined
  /** Whether the adapter creates or migrates missing tables. Default: `true`. */
  readonly create?: boolean | undefined
  /** Whether processes wake each other by NOTIFY. Otherwise a consumer notices new messages within a second. Default: `true`. */
  readonly notify?: boolean | undefined
  /** Milliseconds until the message of a killed process is redelivered. Default: 30000. */
  readonly lease?: Delay.DurationInput | undefined
  /** Milliseconds that an operation waits for a connection, and then for an answer. Default: 10000. */
  readonly timeout?: Delay.DurationInput | undefined
}

/** Where and how to log in. */
export interface Address {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: Redacted.Redacted | Provider | undefined
  /** `undefined`: no TLS. */
  readonly tls: Tls | undefined
}

/** Decoded options, with every default filled in. */
export interface Settings {
  readonly address: Address
  readonly schema: string
  readonly create: boolean
  readonly notify: boolean
  /** Milliseconds. */
  readonly lease: number
  /** Milliseconds. */
  readonly timeout: number
}

const refuse = (
  field: string,
  detail: string,
  remedy: string
): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "postgres" }))

const example = "Write, for example, postgres://user:password@host:5432/database"

/** Decodes the TLS options; `undefined`: no TLS. */
const decodeTls = (
  given: unknown,
  mode: string | undefined
): Result.Result<Tls | undefined, ConfigurationError.ConfigurationError> => {
  if (mode !== undefined && !["disable", "require", "verify-full"].includes(mode)) {
    return refuse("url", "sslmode must be disable, require or verify-full", "Write, for example, ?sslmode=require")
  }
  const tls = given ?? (mode !== undefined && mode !== "disable")
  if (tls === false) return Result.succeed(undefined)
  return TlsOptions.decode("postgres", "tls", tls === true ? {} : tls)
}

const passwordOf = (given: Options["password"], ofUrl: string): Address["password"] => {
  if (typeof given === "function" || Redacted.isRedacted(given)) return given
  const text = given ?? ofUrl
  return text === "" ? undefined : Redacted.make(text)
}

/** Decodes options. Those of the object override those of the URL's query. No error shows a secret. */
export const decode = (options: Options = {}): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { password, tls, url: given = "postgres://127.0.0.1", ...own } = AsyncContext.bound(options)
  const notText = AdapterOptions.secretProblem("postgres", typeof password === "function" ? {} : { password })
  if (notText !== undefined) return Result.fail(notText)
  const parsed = BrokerUrl.parse(given, [...Object.keys(fields), ...inUrl])
  if (Result.isFailure(parsed)) return refuse("url", parsed.failure.detail, parsed.failure.remedy ?? example)
  const { parameters, password: ofUrl, path, url, username } = parsed.success
  if (!/^postgres(ql)?:$/.test(url.protocol))
    return refuse("url", `the scheme ${url.protocol} is not postgres:`, example)
  if (path.includes("/")) return refuse("url", "the database's name has a /", "Write %2F for a / in a name")
  const { sslmode, ...query } = parameters
  const decodedTls = decodeTls(tls, sslmode)
  if (Result.isFailure(decodedTls)) return Result.fail(decodedTls.failure)
  const user = username === "" ? "postgres" : username
  return Result.map(
    decodeFields(query, own),
    ({ create = true, lease = 30_000, notify = true, schema = "requeue", timeout = 10_000 }) => ({
      address: {
        host: url.hostname === "" ? "127.0.0.1" : url.hostname.replace(/^\[(.*)\]$/, "$1"),
        port: url.port === "" ? 5432 : Number(url.port),
        database: path === "" ? user : path,
        user,
        password: passwordOf(password, ofUrl),
        tls: decodedTls.success
      },
      schema,
      create,
      notify,
      lease,
      timeout
    })
  )
}
