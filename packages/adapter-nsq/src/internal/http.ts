/** Requests to the HTTP interfaces of nsqd and nsqlookupd. */
import { BrokerError } from "@requeue/core/adapter-kit"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Context, timedOut, toBrokerError } from "./toBrokerError.ts"

/** What was asked for is not there: an answer, and no failure. */
export const missing = Symbol("missing")

const text = (base: string, cause: unknown): Error => {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  return new Error(`${base}: ${inner instanceof Error ? inner.message : String(inner)}`, { cause: inner })
}

/** The parsed answer, or `missing`. */
export const request = (
  context: Context,
  millis: number,
  { base, method = "GET", path }: { readonly base: string; readonly method?: "GET" | "POST"; readonly path: string }
): Effect.Effect<unknown, BrokerError.BrokerError> =>
  Effect.tryPromise({
    try: async (signal) => {
      const headers = { accept: "application/vnd.nsq; version=1.0" }
      const response = await fetch(`${base}/${path}`, { method, headers, signal })
      const body = await response.text()
      if (response.status === 404 && /_NOT_FOUND/.test(body)) return missing
      if (!response.ok)
        throw new Error(`HTTP status ${response.status} for /${path.split("?")[0]}: ${body.slice(0, 200)}`)
      return body === "" ? undefined : (JSON.parse(body) as unknown)
    },
    catch: (cause) => toBrokerError(text(base, cause), context, "ConnectionFailed")
  }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(millis),
      orElse: () => Effect.fail(timedOut(context, millis))
    })
  )

/** Why an HTTP interface that must be there is not. */
export const unreachable = (base: string, error: BrokerError.BrokerError): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation: error.operation,
    reason: error.reason === "Timeout" ? "ConnectionFailed" : error.reason,
    detail: `nsqd's HTTP interface at ${base} does not answer: ${error.detail}`,
    remedy: "Give its address in nsqdHttp, or set http: false and see the README for what is lost"
  })

/** What only the HTTP interface can do, where it is not used. */
export const needed = (operation: string, queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    queue,
    reason: "Unsupported",
    detail: "only nsqd's HTTP interface can do this",
    remedy: "Set http: true, and nsqdHttp if it is not one port above"
  })
