/** Requests to the HTTP interfaces of nsqd and nsqlookupd. */
import { BrokerError } from "@requeue/core/port"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Settings } from "../NsqOptions.ts"
import type { HttpInterface } from "./address.ts"
import type { Driver } from "./driver.ts"
import type { HttpResponse } from "./httpClient.ts"
import { type ErrorContext, timedOut, toBrokerError } from "./toBrokerError.ts"

/** The result, not an error, when the topic or channel of a request does not exist. */
export const missing = Symbol("missing")

/**
 * Returns the HTTPS interface of an nsqd with `--tls-required`; `undefined` for all other answers.
 * https://nsq.io/components/nsqd.html: `--tls-required`
 */
const behindTls = ({ tls, url }: HttpInterface, { body, status }: HttpResponse): HttpInterface | undefined => {
  const port = status === 403 ? /"TLS_REQUIRED", *"https_port": *(\d+)/.exec(body)?.[1] : undefined
  if (port === undefined || !url.startsWith("http:")) return undefined
  const at = new URL(url)
  at.protocol = "https:"
  at.port = port
  return { url: at.href.replace(/\/$/, ""), tls }
}

interface Question {
  readonly base: HttpInterface
  readonly method?: "GET" | "POST"
  readonly path: string
}

/** The response of an interface, and its time. */
interface JsonResponse {
  /** The parsed JSON, or `missing`. */
  readonly json: unknown
  /** Milliseconds since the epoch, without the fraction of a second; `undefined` if the response has no date. */
  readonly date: number | undefined
}

/** The driver, and the time limit of its requests. */
export interface Access {
  readonly driver: Pick<Driver, "ask">
  readonly settings: Pick<Settings, "requestTimeout">
}

/** Requests `path` from the interface at `base`. */
export const response = (
  context: ErrorContext,
  { driver: { ask }, settings: { requestTimeout: timeout } }: Access,
  { base, method = "GET", path }: Question
): Effect.Effect<JsonResponse, BrokerError.BrokerError> =>
  Effect.tryPromise({
    try: async (signal): Promise<JsonResponse> => {
      const first = await ask(base, path, { method, signal })
      const secure = behindTls(base, first)
      const { body, date, status } = secure === undefined ? first : await ask(secure, path, { method, signal })
      if (status === 404 && /_NOT_FOUND/.test(body)) return { json: missing, date }
      if (status !== 200) throw new Error(`HTTP status ${status} for /${path.split("?")[0]}: ${body.slice(0, 200)}`)
      return { json: body === "" ? undefined : JSON.parse(body), date }
    },
    catch: (cause) => toBrokerError(new Error(base.url, { cause }), context, "ConnectionFailed")
  }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(timeout),
      orElse: () => Effect.fail(failure(context, base, timedOut(context, timeout)))
    })
  )

/** Returns only the parsed JSON, or `missing`. */
export const request = (
  context: ErrorContext,
  access: Access,
  question: Question
): Effect.Effect<unknown, BrokerError.BrokerError> =>
  Effect.map(response(context, access, question), ({ json }) => json)

const failure = (
  { operation, queue }: ErrorContext,
  { url }: HttpInterface,
  { detail, reason }: Pick<BrokerError.BrokerError, "detail" | "reason">
): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "nsq", operation, queue, reason, detail: `${url}: ${detail}` })

/** Reads a response. Fails, and shows the response, if `read` returns `undefined` because it is not NSQ's. */
export const parse = <A>(
  context: ErrorContext,
  base: HttpInterface,
  json: unknown,
  read: (json: unknown) => A | undefined
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.suspend(() => {
    const parsed = read(json)
    if (parsed !== undefined) return Effect.succeed(parsed)
    const detail = `the response is not from NSQ: ${String(JSON.stringify(json)).slice(0, 200)}`
    return Effect.fail(failure(context, base, { reason: "ConnectionFailed", detail }))
  })

/** Formats a URL's query. */
export const query = (params: Readonly<Record<string, string>>): string => new URLSearchParams(params).toString()

/** Returns a JSON value if it is a number of 0 or more. */
export const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" && value >= 0 ? value : undefined

/** Makes the error of an nsqd whose HTTP interface does not answer. */
export const unreachable = ({ url }: HttpInterface, error: BrokerError.BrokerError): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: error.operation,
    reason: error.reason === "Timeout" ? "ConnectionFailed" : error.reason,
    isMisconfigured: error.isMisconfigured,
    detail: `nsqd's HTTP interface at ${url} does not answer: ${error.detail}`,
    remedy:
      "Give its address in nsqdHttp, the authority of its certificate in httpTls, " +
      "or set http: false: counts, browsing and purges do not work then"
  })

/** Makes the error of an operation that needs nsqd's HTTP interface while `http` is false. */
export const needed = (operation: string, queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    queue,
    reason: "Unsupported",
    detail: "only nsqd's HTTP interface can do this",
    remedy: "Set http: true, and set nsqdHttp if the HTTP port is not the one above the TCP port"
  })
