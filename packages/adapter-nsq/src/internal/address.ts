/** Addresses of nsqd and nsqlookupd, from a URL and from lists. Pure. */
import { BrokerUrl, ConfigurationError, type OptionKind } from "@requeue/core/port"
import type { TlsOptions } from "@requeue/kit"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/** An HTTP interface of nsqd or of nsqlookupd. */
export interface HttpInterface {
  /** Without a slash at the end. */
  readonly url: string
  /** TLS options, for `https:`. */
  readonly tls: TlsOptions.Tls
}

/** The address of one nsqd. */
export interface Address {
  readonly host: string
  readonly port: number
  /** `undefined` when the HTTP interface is not used. */
  readonly http: HttpInterface | undefined
}

/** The parts of an `nsq:` URL. */
export interface Parsed {
  /** `host:port` of the URL itself; `undefined` when it has no host. */
  readonly nsqd: string | undefined
  readonly secret: string
  /** The options in the URL's query, as strings or lists of strings. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** The options that are lists. A URL's query separates their items with commas. */
const lists: ReadonlySet<string> = new Set(["nsqd", "nsqdHttp", "lookupd"])

const example =
  "Write nsq://:secret@host:4150, or nsq://?lookupd=host:4161; further nsqd go into the query: nsqd=host:4150,host:4150"

const refuse = (detail: string, remedy = example): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field: "url", detail, remedy, broker: "nsq" }))

/**
 * Parses a broker's URL, whose query may have the `known` parameters. Errors never show the URL: it may hold a secret.
 */
export const parse = (
  input: string | URL | Redacted.Redacted,
  known: ReadonlyArray<string>
): Result.Result<Parsed, ConfigurationError.ConfigurationError> => {
  const parsed = BrokerUrl.parse(input, known)
  if (Result.isFailure(parsed)) return refuse(parsed.failure.detail, parsed.failure.remedy)
  const { parameters, password: secret, path, url, username } = parsed.success
  if (url.protocol !== "nsq:") return refuse(`the scheme ${url.protocol} is not nsq:`)
  if (path !== "") return refuse("the URL has a path", "Leave the path out; queues are named in the program")
  if (username !== "")
    return refuse("the URL has a user name, but NSQ has only a secret", "Write nsq://:secret@host:4150")
  return Result.succeed({
    nsqd: url.hostname === "" ? undefined : `${url.hostname}:${url.port === "" ? "4150" : url.port}`,
    secret,
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([name, text]) => [name, lists.has(name) ? text.split(",") : text])
    )
  })
}

const split = (text: string, otherwise: number): { readonly host: string; readonly port: number } => {
  const [, host = text, port] = /^(\[.+\]|[^:]+)(?::(\d+))?$/.exec(text) ?? []
  return { host: host.replace(/^\[|\]$/g, ""), port: port === undefined ? otherwise : Number(port) }
}

/** Whether a port is valid. For others the driver throws an uncaught exception. */
export const isPort = (port: unknown): boolean => Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536

/** Whether the characters are those of a host name or IP address. The driver throws for some others. */
export const isHost = (host: unknown): boolean => typeof host === "string" && /^[\w.:%-]{1,253}$/.test(host)

const kind = (expected: string, holds: (text: string) => boolean): OptionKind.OptionKind<string> => ({
  expected,
  holds: (value) => typeof value === "string" && holds(value)
})

const isHostPort = (text: string): boolean => {
  if (!/^(\[[0-9a-fA-F:]+\]|[^\s:/@?#[\]]+)(:\d{1,5})?$/.test(text)) return false
  const { host, port } = split(text, 1)
  return isHost(host) && isPort(port)
}

/** `host`, `host:port`, or `[::1]:port`. */
export const ofNsqd = kind("host or host:port, with a port from 1 to 65535", isHostPort)

/** `host:port`, or a URL when the interface is behind TLS or a proxy. */
export const ofHttp = kind("host:port or a URL of HTTP, with a port from 1 to 65535", (text) =>
  /^https?:/.test(text) ? /^https?:\/\/[^\s@?#]+$/.test(text) && URL.canParse(text) : isHostPort(text)
)

/** Whether a host name is local: `localhost`, 127.0.0.0/8 or `::1`. */
export const isLocal = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|::1)$/i.test(host)

/** `host:port`, with brackets around an IPv6 address. */
export const hostPort = ({ host, port }: { readonly host: string; readonly port: number }): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`

/** Returns the URL of an HTTP interface, without a slash at the end. `otherwise` is the default port. */
export const toHttp = (text: string, otherwise: number): string =>
  text.includes("://") ? text.replace(/\/+$/, "") : `http://${hostPort(split(text, otherwise))}`

/**
 * Parses the address of an nsqd. Its HTTP interface is one port above unless `http` is given, and unused without `tls`.
 */
export const toAddress = (text: string, http: string | undefined, tls: TlsOptions.Tls | undefined): Address => {
  const { host, port } = split(text, 4150)
  const url = http === undefined ? `http://${hostPort({ host, port: port + 1 })}` : toHttp(http, 4151)
  return { host, port, http: tls === undefined ? undefined : { url, tls } }
}
