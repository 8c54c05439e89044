/** Requests to the HTTP interfaces of nsqd and nsqlookupd. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type ErrorContext, timedOut, toBrokerError } from "./toBrokerError.ts"

/** The answer when the topic or channel of a request does not exist; that is no failure. */
export const missing = Symbol("missing")

const withAddress = (base: string, cause: unknown): Error => {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  return new Error(`${base}: ${inner instanceof Error ? inner.message : String(inner)}`, { cause: inner })
}

/** Requests `path` of the interface at `base`, within a time in milliseconds. Answers the parsed JSON, or `missing`. */
export const request = (
  context: ErrorContext,
  timeout: number,
  { base, method = "GET", path }: { readonly base: string; readonly method?: "GET" | "POST"; readonly path: string }
): Effect.Effect<unknown, BrokerError.BrokerError> =>
  Effect.tryPromise({
    try: async (signal): Promise<unknown> => {
      const headers = { accept: "application/vnd.nsq; version=1.0" }
      const response = await fetch(`${base}/${path}`, { method, headers, signal })
      const body = await response.text()
      if (response.status === 404 && /_NOT_FOUND/.test(body)) return missing
      if (!response.ok)
        throw new Error(`HTTP status ${response.status} for /${path.split("?")[0]}: ${body.slice(0, 200)}`)
      return body === "" ? undefined : JSON.parse(body)
    },
    catch: (cause) => toBrokerError(withAddress(base, cause), context, "ConnectionFailed")
  }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(timeout),
      orElse: () => Effect.fail(timedOut(context, timeout))
    })
  )

/** The error of an nsqd whose HTTP interface is used and does not answer. */
export const unreachable = (base: string, error: BrokerError.BrokerError): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: error.operation,
    reason: error.reason === "Timeout" ? "ConnectionFailed" : error.reason,
    detail: `nsqd's HTTP interface at ${base} does not answer: ${error.detail}`,
    remedy: "Give its address in nsqdHttp, or set http: false and see the README for what is lost"
  })

/** The error of an operation that needs nsqd's HTTP interface, with `http: false`. */
export const needed = (operation: string, queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    queue,
    reason: "Unsupported",
    detail: "only nsqd's HTTP interface can do this",
    remedy: "Set http: true, and nsqdHttp if it is not one port above"
  })
