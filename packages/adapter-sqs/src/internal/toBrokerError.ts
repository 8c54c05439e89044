/** From an error of the SDK or of SQS to a `BrokerError` with a remedy. Pure. */
import { BrokerError, Failure } from "@requeue/core/port"
import { bare, byCode, explain, type Refusal } from "./explain.ts"

/** The call that has failed. */
export interface Context {
  readonly operation: string
  readonly queue?: string | undefined
}

const remedyOfUnsent =
  "Nothing was sent: see to what gives credentials and endpoint, such as the functions of these options"

/** A call has failed, and no request was handed to what sends it. Its cause says why. */
export class NotSent extends Error {
  constructor({ cause }: { readonly cause: unknown }) {
    super("not sent", { cause })
  }
}

/** Whether the error says that nothing is wrong with the request itself. */
export const isTransient = ({ reason }: BrokerError.BrokerError): boolean =>
  reason === "Throttled" || reason === "Timeout" || reason === "ConnectionFailed" || reason === "ConnectionLost"

/** The `BrokerError` of a refusal. */
export const fromRefusal = (refusal: Refusal, { operation, queue }: Context): BrokerError.BrokerError => {
  const { reason, remedy } = explain(refusal)
  // A sentence follows.
  const text = refusal.text.trim().replace(/\.$/, "")
  const detail = text === "" ? refusal.code : `${bare(refusal.code)}: ${text}`
  return new BrokerError.BrokerError({ broker: "sqs", operation, queue, reason, detail, remedy })
}

const field = (error: object, name: string): unknown => Reflect.get(error, name)

/** The HTTP status of an error of the SDK; `undefined` where SQS did not answer. */
export const statusOf = (error: unknown): number | undefined => {
  if (typeof error !== "object" || error === null) return undefined
  const metadata = field(error, "$metadata")
  const status = typeof metadata === "object" && metadata !== null ? field(metadata, "httpStatusCode") : undefined
  return typeof status === "number" ? status : undefined
}

/** The SDK names errors by their class, Node by `code`; several addresses may have been tried. */
const codeOf = (error: Error): string => {
  const { name: own } = Failure.summarize(error)
  const ofNode = field(error, "code")
  // The SDK calls a connection that was reset a TimeoutError, and leaves Node's code.
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

/** The `BrokerError` of whatever a call has thrown. It throws nothing itself: it would end the loop that has made the call. */
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
  // The SDK takes the message out of the answer, whatever it is.
  const { message: text } = Failure.summarize(cause)
  return fromRefusal({ code: codeOf(cause), text, status: statusOf(cause) }, context)
}
