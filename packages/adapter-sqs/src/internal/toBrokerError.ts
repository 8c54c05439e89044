/** Converts an error of the SDK or SQS to a `BrokerError` with a remedy. Pure. */
import { BrokerError, Failure } from "@requeue/core/port"
import { bare, byCode, explain, type Refusal } from "./explain.ts"

/** The failed call. */
export interface Context {
  readonly operation: string
  readonly queue?: string | undefined
}

const remedyOfUnsent =
  "Nothing was sent: check the sources of credentials and endpoint, such as the functions in these options"

/** A call has failed before its request was passed to the request handler. The cause has the reason. */
export class NotSent extends Error {
  constructor({ cause }: { readonly cause: unknown }) {
    super("not sent", { cause })
  }
}

/** Whether the request itself was valid. */
export const isTransient = ({ reason }: BrokerError.BrokerError): boolean =>
  reason === "Throttled" || reason === "Timeout" || reason === "ConnectionFailed" || reason === "ConnectionLost"

/** Makes the `BrokerError` of a refusal. */
export const fromRefusal = (refusal: Refusal, { operation, queue }: Context): BrokerError.BrokerError => {
  const { reason, remedy } = explain(refusal)
  // The remedy follows as a sentence.
  const text = refusal.text.trim().replace(/\.$/, "")
  const detail = text === "" ? refusal.code : `${bare(refusal.code)}: ${text}`
  return new BrokerError.BrokerError({ broker: "sqs", operation, queue, reason, detail, remedy })
}

const field = (error: object, name: string): unknown => Reflect.get(error, name)

/** Returns the HTTP status of an SDK error; `undefined` if SQS did not respond. */
export const statusOf = (error: unknown): number | undefined => {
  if (typeof error !== "object" || error === null) return undefined
  const metadata = field(error, "$metadata")
  const status = typeof metadata === "object" && metadata !== null ? field(metadata, "httpStatusCode") : undefined
  return typeof status === "number" ? status : undefined
}

/** Returns the code of an error. The SDK uses the name, Node `code`; several addresses may have been tried. */
const codeOf = (error: Error): string => {
  const { name: own } = Failure.summarize(error)
  const ofNode = field(error, "code")
  // The SDK names a reset connection TimeoutError, but keeps Node's code.
  if (own === "TimeoutError" && typeof ofNode === "string" && byCode.has(ofNode)) return ofNode
  if (byCode.has(own)) return own
  for (const name of ["Code", "code"]) {
    const code = field(error, name)
    if (typeof code === "string") return code
  }
  const errors: ReadonlyArray<unknown> = error instanceof AggregateError ? error.errors : []
  const first = errors[0]
  return first instanceof Error ? codeOf(first) : own
}

/** Makes the `BrokerError` of anything that a call has thrown. Never throws: that would end the calling loop. */
export const toBrokerError = (cause: unknown, context: Context): BrokerError.BrokerError => {
  try {
    return translated(cause, context)
  } catch {
    return unknownError(cause, context)
  }
}

const unknownError = (cause: unknown, context: Context): BrokerError.BrokerError =>
  fromRefusal({ code: "Error", text: Failure.summarize(cause).message, status: undefined }, context)

const translated = (cause: unknown, context: Context): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  if (cause instanceof NotSent) {
    const error = toBrokerError(cause.cause, context)
    if (!BrokerError.isDoubtful(error)) return error
    const { detail } = error
    return new BrokerError.BrokerError({
      broker: "sqs",
      ...context,
      reason: "ConnectionFailed",
      detail,
      remedy: remedyOfUnsent
    })
  }
  if (!(cause instanceof Error)) return unknownError(cause, context)
  // The SDK copies the message from the response, whatever its type.
  const { message: text } = Failure.summarize(cause)
  return fromRefusal({ code: codeOf(cause), text, status: statusOf(cause) }, context)
}
