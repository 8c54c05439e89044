/** A broker's address and the account to log in with, from a URL. The password is redacted as soon as it is read. */
import { ConfigurationError } from "@requeue/core/adapter-kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

/** One node of the server, and the account to log in with. */
export interface Address {
  readonly secure: boolean
  readonly hostname: string
  readonly port: number
  readonly vhost: string
  readonly username: string
  readonly password: Redacted.Redacted
}

/** The parts of a URL. */
export interface Parsed {
  readonly address: Address
  /** The options in the URL's query. Texts that are numbers or JSON are decoded. */
  readonly parameters: Readonly<Record<string, unknown>>
}

const remedy = "Write amqp://user:password@host:5672/vhost, or amqps: for TLS; encode special characters with %"

const refuse = (detail: string): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field: "url", detail, remedy, broker: "rabbitmq" }))

const unescape = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Decodes a parameter of the query: digits are a number, JSON arrays and objects are JSON, all else is text. */
const decodeParameter = (text: string): unknown => {
  if (/^\d+$/.test(text)) return Number(text)
  if (!/^[[{]/.test(text)) return text
  try {
    const json: unknown = JSON.parse(text)
    return json
  } catch {
    return text
  }
}

const textOf = (secret: string | Redacted.Redacted): string =>
  typeof secret === "string" ? secret : Redacted.value(secret)

/** A further node of the cluster, from `host` or `host:port`; port and account are those of `address` otherwise. */
export const node = (text: string, address: Address): Address => {
  const [, host = text, port] = /^(\[.+\]|[^:]+)(?::(\d+))?$/.exec(text) ?? []
  const hostname = host.replace(/^\[|\]$/g, "")
  return { ...address, hostname, port: port === undefined ? address.port : Number(port) }
}

/** Reads a URL. `username` and `password` beat those of the URL; with neither, the account is guest's. */
export const parse = (
  input: string | URL | Redacted.Redacted = "amqp://127.0.0.1:5672/",
  username?: string,
  password?: string | Redacted.Redacted
): Result.Result<Parsed, ConfigurationError.ConfigurationError> => {
  const url = input instanceof URL ? input : URL.parse(textOf(input))
  // The text itself is not shown: it may hold a password.
  if (url === null) return refuse("it is no URL")
  const secure = url.protocol === "amqps:"
  if (!secure && url.protocol !== "amqp:") return refuse(`the scheme ${url.protocol} is not amqp: or amqps:`)
  const hostname = url.hostname.replace(/^\[|\]$/g, "")
  if (hostname === "") return refuse("it has no host")
  const path = url.pathname.slice(1)
  if (path.includes("/")) return refuse("the virtual host has a slash; write it as %2F")
  const [vhost, user, secret] = [unescape(path), unescape(url.username), unescape(url.password)]
  if (vhost === undefined || user === undefined || secret === undefined) return refuse("it is badly %-encoded")
  const names = [...url.searchParams.keys()]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) return refuse(`the parameter ${twice} is given twice`)
  const anonymous = user === "" && secret === ""
  return Result.succeed({
    address: {
      secure,
      hostname,
      port: url.port === "" ? (secure ? 5671 : 5672) : Number(url.port),
      vhost: vhost === "" ? "/" : vhost,
      username: username ?? (anonymous ? "guest" : user),
      password: Redacted.make(password === undefined ? (anonymous ? "guest" : secret) : textOf(password))
    },
    parameters: Object.fromEntries([...url.searchParams].map(([name, text]) => [name, decodeParameter(text)]))
  })
}
