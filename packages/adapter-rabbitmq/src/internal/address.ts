/** Reads a broker's address and login from a URL. The password is redacted as soon as it is read. */
import { BrokerUrl, ConfigurationError } from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { fields } from "./fields.ts"
import { limit } from "./nameRules.ts"

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
  /** The options in the URL's query. JSON is decoded; the option kinds parse other text. */
  readonly parameters: Readonly<Record<string, unknown>>
}

const example = "Write amqp://user:password@host:5672/vhost, or amqps: for TLS"

const refuse = (detail: string, remedy = example): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field: "url", detail, remedy, broker: "rabbitmq" }))

/** Decodes a query parameter: JSON for an array or an object, otherwise text. */
const decodeParameter = (text: string): unknown => {
  if (!/^[[{]/.test(text)) return text
  try {
    const json: unknown = JSON.parse(text)
    return json
  } catch {
    return text
  }
}

/** Returns `host:port`, with brackets around an IPv6 address. */
export const hostPort = ({ hostname, port }: Address): string =>
  `${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`

/** Reads another node of the cluster from `host` or `host:port`. The other values are those of `address`. */
export const node = (text: string, address: Address): Address => {
  const [, host = text, port] = /^(\[.+\]|[^:]+)(?::(\d+))?$/.exec(text) ?? []
  const hostname = host.replace(/^\[|\]$/g, "")
  return { ...address, hostname, port: port === undefined ? address.port : Number(port) }
}

/** Reads a URL. `username` and `password` override those of the URL. Without either, the account is guest's. */
export const parse = (
  input: string | URL | Redacted.Redacted = "amqp://127.0.0.1:5672/",
  username?: string,
  password?: string | Redacted.Redacted
): Result.Result<Parsed, ConfigurationError.ConfigurationError> => {
  const notText = AdapterOptions.secretProblem("rabbitmq", { username, password })
  if (notText !== undefined) return Result.fail(notText)
  const parsed = BrokerUrl.parse(input, Object.keys(fields))
  if (Result.isFailure(parsed)) return refuse(parsed.failure.detail, parsed.failure.remedy)
  const { parameters, password: secret, path: vhost, url, username: user } = parsed.success
  const secure = url.protocol === "amqps:"
  if (!secure && url.protocol !== "amqp:") return refuse(`the scheme ${url.protocol} is not amqp: or amqps:`)
  const hostname = url.hostname.replace(/^\[|\]$/g, "")
  if (hostname === "") return refuse("the URL has no host")
  if (url.pathname.slice(1).includes("/")) return refuse("the virtual host has a slash", "Write the slash as %2F")
  const size = Buffer.byteLength(vhost)
  if (size > limit)
    return refuse(`the virtual host has ${size} bytes, AMQP carries at most ${limit}`, "Use a shorter name")
  const anonymous = user === "" && secret === ""
  return Result.succeed({
    address: {
      secure,
      hostname,
      port: url.port === "" ? (secure ? 5671 : 5672) : Number(url.port),
      vhost: vhost === "" ? "/" : vhost,
      username: username ?? (anonymous ? "guest" : user),
      password: Redacted.make(password === undefined ? (anonymous ? "guest" : secret) : AdapterOptions.textOf(password))
    },
    parameters: Object.fromEntries(Object.entries(parameters).map(([name, text]) => [name, decodeParameter(text)]))
  })
}
