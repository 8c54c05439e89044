/** The endpoint and the credentials of SQS, from a URL. The secret is redacted as soon as it has been read. */
import { ConfigurationError } from "@requeue/core/adapter-kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  /** `undefined` for a key that lasts. */
  readonly sessionToken?: Redacted.Redacted | undefined
}

/** An endpoint, and the credentials for it. */
export interface Address {
  /** `undefined` for AWS itself, whose endpoint follows from the region. */
  readonly endpoint: string | undefined
  readonly region: string
  /** The account that owns the queues; `undefined` for that of the credentials. */
  readonly account: string | undefined
  /** `undefined` for the SDK's default chain: environment, profile, container, instance. */
  readonly credentials: Credentials | undefined
}

/** A URL, read. */
export interface Parsed {
  readonly address: Address
  /** The options in the URL's query; those of digits are numbers. */
  readonly parameters: Readonly<Record<string, unknown>>
}

const remedy =
  "Write sqs://<region>[/<account id>] for AWS, or sqs://<access key>:<secret>@<host>:<port>?region=<region> for another server"

const refuse = (detail: string): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field: "url", detail, remedy, broker: "sqs" }))

const unescape = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Whether a part of a host name is the name of a region of AWS. */
export const isRegion = (text: string): boolean => /^[a-z]{2,}(-[a-z]+)+-\d$/.test(text)

const textOf = (secret: string | Redacted.Redacted): string =>
  typeof secret === "string" ? secret : Redacted.value(secret)

/** Reads a URL; `accessKeyId` and `secretAccessKey` beat those of the URL. */
export const parse = (
  input: string | URL | Redacted.Redacted,
  accessKeyId?: string,
  secretAccessKey?: string | Redacted.Redacted
): Result.Result<Parsed, ConfigurationError.ConfigurationError> => {
  const url = input instanceof URL ? input : URL.parse(textOf(input))
  // The text itself is not shown: it may hold a secret.
  if (url === null) return refuse("it is no URL")
  if (url.protocol !== "sqs:") return refuse(`the scheme ${url.protocol} is not sqs:`)
  if (url.hostname === "") return refuse("it has neither a region nor a host")
  const account = url.pathname.replace(/^\/|\/$/g, "") || undefined
  if (account !== undefined && !/^\d{12}$/.test(account)) return refuse("the path is no account id of 12 digits")
  const [key, secret] = [unescape(url.username), unescape(url.password)]
  if (key === undefined || secret === undefined) return refuse("it is badly %-encoded")
  const names = [...url.searchParams.keys()]
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) return refuse(`the parameter ${twice} is given twice`)

  const { region: given, tls = "false", ...parameters } = Object.fromEntries(url.searchParams)
  if (tls !== "true" && tls !== "false") return refuse("tls is neither true nor false")
  const aws = isRegion(url.hostname) && url.port === ""
  if (aws && given !== undefined) return refuse("the region is given twice")
  if (!aws && given === undefined) return refuse("a server needs ?region=, or the host is no region")
  const [id, password] = [accessKeyId ?? key, secretAccessKey === undefined ? secret : textOf(secretAccessKey)]
  if ((id === "") !== (password === "")) return refuse("an access key and its secret belong together")
  return Result.succeed({
    address: {
      endpoint: aws ? undefined : `${tls === "true" ? "https" : "http"}://${url.host}`,
      region: given ?? url.hostname,
      account,
      credentials: id === "" ? undefined : { accessKeyId: id, secretAccessKey: Redacted.make(password) }
    },
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([name, text]) => [name, /^\d+$/.test(text) ? Number(text) : text])
    )
  })
}
