/** The endpoint, the region and the credentials of SQS, from a URL. The secret is redacted as soon as it has been read. */
import { ConfigurationError } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
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

const refuse = (
  detail: string,
  field = "url",
  how = remedy
): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field, detail, remedy: how, broker: "sqs" }))

/** A key, then something that ends the host of a URL, before the host: most secrets have a slash. */
const isUnescaped = (text: string): boolean => /^[a-z]+:\/\/[^@/?#:]+:[^@]*[/?#][^@]*@/i.test(text)

const percent = "Percent-encode the secret that stands before the @: / is %2F, ? is %3F, # is %23, + may stay"

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
  accessKeyId?: string | Redacted.Redacted,
  secretAccessKey?: string | Redacted.Redacted
): Result.Result<Parsed, ConfigurationError.ConfigurationError> => {
  const text = input instanceof URL ? input.href : textOf(input)
  const url = URL.parse(text)
  // The text itself is not shown: it may hold a secret.
  if (url === null && isUnescaped(text)) return refuse("it is no URL", "url", percent)
  if (url === null) return refuse("it is no URL")
  if (url.protocol !== "sqs:") return refuse(`the scheme ${url.protocol} is not sqs:`)
  if (url.hostname === "") return refuse("it has neither a region nor a host")
  const account = url.pathname.replace(/^\/|\/$/g, "") || undefined
  if (account !== undefined && !/^\d{12}$/.test(account)) {
    return refuse("the path is no account id of 12 digits", "url", isUnescaped(text) ? percent : remedy)
  }
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
  const [id, password] = [
    accessKeyId === undefined ? key : textOf(accessKeyId),
    secretAccessKey === undefined ? secret : textOf(secretAccessKey)
  ]
  if ((id === "") !== (password === "")) {
    const [missing, given] = id === "" ? ["accessKeyId", "secretAccessKey"] : ["secretAccessKey", "accessKeyId"]
    return accessKeyId === undefined && secretAccessKey === undefined
      ? refuse("an access key and its secret belong together")
      : refuse(`${given} is given without it`, missing, `Set ${missing} as well, or leave ${given} out`)
  }
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

/**
 * Fails where the program's own client is of another region: a call goes to that, whatever the URL says, and it would be
 * another queue. `regionOf` asks the client.
 */
export const checkRegion = (
  { region }: Address,
  regionOf: () => Promise<string>
): Effect.Effect<void, ConfigurationError.ConfigurationError> => {
  const refuseClient = (detail: string, remedy: string): ConfigurationError.ConfigurationError =>
    new ConfigurationError.ConfigurationError({ broker: "sqs", field: "client", detail, remedy })
  return Effect.tryPromise({
    try: regionOf,
    catch: () => refuseClient("its region cannot be read", "Make it with a region")
  }).pipe(
    Effect.flatMap((its) =>
      its === region
        ? Effect.void
        : Effect.fail(
            refuseClient(
              `its region is ${its}, the URL names ${region}`,
              `Write sqs://${its}, or make a client for ${region}`
            )
          )
    )
  )
}
