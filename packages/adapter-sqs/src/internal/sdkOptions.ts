/**
 * Checks the options that pass the program's objects to the SDK: client, credentials, endpoint, request handler. Does
 * not call them.
 */
import { ConfigurationError, OptionKind, OptionNames } from "@requeue/core/port"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { Address } from "./address.ts"
import type { SdkOptions } from "./client.ts"

/** How each option is checked. */
interface Check {
  readonly expected: string
  readonly holds: (value: unknown) => boolean
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null

/** A member of a foreign value. */
const memberOf = (value: unknown, name: string): unknown => (isObject(value) ? Reflect.get(value, name) : undefined)

const isFunction = (value: unknown): boolean => typeof value === "function"

const isHttp = (value: unknown): boolean =>
  typeof value === "string" && ["http:", "https:"].includes(URL.parse(value)?.protocol ?? "")

const checks: { readonly [N in keyof Required<SdkOptions>]: Check } = {
  client: {
    expected: "an SQSClient of @aws-sdk/client-sqs",
    holds: (value) =>
      isObject(value) &&
      isFunction(Reflect.get(value, "send")) &&
      memberOf(Reflect.get(value, "config"), "serviceId") === "SQS"
  },
  credentials: { expected: "a function that returns credentials", holds: isFunction },
  requestHandler: {
    expected: "a request handler of the SDK, or the options of one",
    holds: (value) => OptionKind.isObject(value) && (!("handle" in value) || isFunction(value.handle))
  },
  endpoint: {
    expected: "an http: or https: URL, or a function that returns one",
    holds: (value) => isFunction(value) || isHttp(value)
  }
}

/** Options of the SDK's own request handler. */
const handlerOptions = [
  "connectionTimeout",
  "requestTimeout",
  "socketTimeout",
  "socketAcquisitionWarningTimeout",
  "throwOnRequestTimeout",
  "httpAgent",
  "httpsAgent",
  "logger"
]

/** Describes a value for an error, without its text, which may be a secret. */
const show = (value: unknown): string =>
  value === null || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : `a value of type ${typeof value}`

const refuse = (
  field: string,
  detail: string,
  remedy: string
): Result.Result<never, ConfigurationError.ConfigurationError> =>
  Result.fail(new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "sqs" }))

const leave = "Leave one of the two out"

/** Options of the adapter that also concern requests. */
interface Timeouts {
  readonly connectTimeout?: unknown
  readonly requestTimeout?: unknown
}

/** Checks the names of a request handler's options, and that none is also given as an option of the adapter. */
const checkHandler = (handler: object, { connectTimeout, requestTimeout }: Timeouts) => {
  const unknown = Object.keys(handler).find((name) => !handlerOptions.includes(name))
  if (unknown !== undefined)
    return refuse(`requestHandler.${unknown}`, "unknown option", OptionNames.remedy(unknown, handlerOptions))
  if (connectTimeout !== undefined && memberOf(handler, "connectionTimeout") !== undefined)
    return refuse("connectTimeout", "requestHandler.connectionTimeout is given as well", leave)
  return requestTimeout !== undefined && memberOf(handler, "requestTimeout") !== undefined
    ? refuse("requestTimeout", "requestHandler.requestTimeout is given as well", leave)
    : undefined
}

/** Returns the request timeout in the options of the SDK's request handler. */
export const requestTimeout = ({ requestHandler }: SdkOptions): number | undefined => {
  const given = memberOf(requestHandler, "requestTimeout")
  return typeof given === "number" && given > 0 && memberOf(requestHandler, "handle") === undefined ? given : undefined
}

/** Checks the options, and that no two options conflict. */
export const check = (
  given: SdkOptions,
  { credentials, endpoint }: Address,
  others: Timeouts
): Result.Result<SdkOptions, ConfigurationError.ConfigurationError> => {
  for (const [name, { expected, holds }] of Object.entries(checks)) {
    const value: unknown = Reflect.get(given, name)
    if (value !== undefined && !holds(value)) {
      return refuse(name, `must be ${expected}, got ${show(value)}`, "See the options table of the adapter for sqs")
    }
  }
  const { client, requestHandler } = given
  const hasHandler = isObject(requestHandler) && "handle" in requestHandler
  const [accessKey, host, connectTimeout] = [credentials !== undefined, endpoint !== undefined, others.connectTimeout]
  if (client !== undefined) {
    const all = {
      ...given,
      client: undefined,
      accessKeyId: accessKey || undefined,
      url: host || undefined,
      connectTimeout
    }
    const twice = Object.entries(all).find(([, value]) => value !== undefined)?.[0]
    if (twice === "url")
      return refuse("url", "the URL names a server, but client has its own endpoint", "Write sqs://<region>")
    if (twice !== undefined) return refuse(twice, `client is given, and has its own ${twice}`, leave)
  }
  if (given.credentials !== undefined && accessKey)
    return refuse("credentials", "an access key is given as well", leave)
  if (given.endpoint !== undefined && host)
    return refuse("endpoint", "the URL names a server as well", "Write sqs://<region>")
  if (hasHandler && connectTimeout !== undefined)
    return refuse("connectTimeout", "requestHandler is given, and has its own connectTimeout", leave)
  const wrong = isObject(requestHandler) && !hasHandler ? checkHandler(requestHandler, others) : undefined
  return wrong ?? Result.succeed(given)
}

/** Adds the session token to an access key. */
export const sessionToken = (
  token: string | Redacted.Redacted | undefined,
  address: Address
): Result.Result<Address, ConfigurationError.ConfigurationError> => {
  if (token === undefined) return Result.succeed(address)
  const { credentials } = address
  if (credentials === undefined) {
    return refuse("sessionToken", "a session token needs an access key", "Set accessKeyId and secretAccessKey")
  }
  const secret = typeof token === "string" ? Redacted.make(token) : token
  return Result.succeed({ ...address, credentials: { ...credentials, sessionToken: secret } })
}
