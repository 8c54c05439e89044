/** Reads endpoint, region and credentials of SQS from a URL. The secret is redacted immediately. */
import { BrokerUrl, ConfigurationError } from "@requeue/core/port"
import { AdapterOptions } from "@requeue/kit"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: Redacted.Redacted
  /** `undefined` for a long-term key. */
  readonly sessionToken?: Redacted.Redacted | undefined
}

/** An endpoint, and the credentials for it. */
export interface Address {
  /** `undefined` for AWS, whose endpoint follows from the region. */
  readonly endpoint: string | undefined
  readonly region: string
  /** The account that owns the queues; `undefined` for the account of the credentials. */
  readonly account: string | undefined
  /** `undefined` for the SDK's default chain: environment, profile, container, instance. */
  readonly credentials: Credentials | undefined
}

/** A parsed URL. */
export interface Parsed {
  readonly address: Address
  /** The options in the URL's query. */
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

/** Whether a part of a host name is an AWS region. */
export const isRegion = (text: string): boolean => /^[a-z]{2,}(-[a-z]+)+-\d$/.test(text)

/**
 * Parses a URL, whose query may have the `known` options. `accessKeyId` and `secretAccessKey` override those of the
 * URL.
 */
export const parse = (
  input: string | URL | Redacted.Redacted,
  known: ReadonlyArray<string>,
  accessKeyId?: string | Redacted.Redacted,
  secretAccessKey?: string | Redacted.Redacted
): Result.Result<Parsed, ConfigurationError.ConfigurationError> => {
  const parsed = BrokerUrl.parse(input, ["region", "tls", ...known])
  if (Result.isFailure(parsed)) return refuse(parsed.failure.detail, "url", parsed.failure.remedy)
  const { password: secret, path, url, username: key } = parsed.success
  if (url.protocol !== "sqs:") return refuse(`the scheme ${url.protocol} is not sqs:`)
  if (url.hostname === "") return refuse("the URL has neither a region nor a host")
  const account = path.replace(/\/$/, "") || undefined
  if (account !== undefined && !/^\d{12}$/.test(account))
    return refuse("the path of the URL is not an account id of 12 digits")
  const { region: given, tls = "false", ...parameters } = parsed.success.parameters
  if (tls !== "true" && tls !== "false") return refuse("tls is neither true nor false")
  const aws = isRegion(url.hostname) && url.port === ""
  if (aws && given !== undefined) return refuse("the region is given twice")
  if (!aws && given === undefined) return refuse("the host is not a region; the URL of a server needs ?region=")
  const [id, password] = [
    accessKeyId === undefined ? key : AdapterOptions.textOf(accessKeyId),
    secretAccessKey === undefined ? secret : AdapterOptions.textOf(secretAccessKey)
  ]
  if ((id === "") !== (password === "")) {
    const [missing, given] = id === "" ? ["accessKeyId", "secretAccessKey"] : ["secretAccessKey", "accessKeyId"]
    return accessKeyId === undefined && secretAccessKey === undefined
      ? refuse("an access key requires its secret, and a secret its access key")
      : refuse(`${given} is given without it`, missing, `Set ${missing} as well, or leave ${given} out`)
  }
  return Result.succeed({
    address: {
      endpoint: aws ? undefined : `${tls === "true" ? "https" : "http"}://${url.host}`,
      region: given ?? url.hostname,
      account,
      credentials: id === "" ? undefined : { accessKeyId: id, secretAccessKey: Redacted.make(password) }
    },
    parameters
  })
}

/**
 * Fails if the program's client is for another region: calls would go to that region, and to another queue, whatever
 * the URL says. `regionOf` asks the client.
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
