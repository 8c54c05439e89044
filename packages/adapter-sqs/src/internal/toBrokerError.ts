/** From what the SDK or SQS said to a `BrokerError` with a remedy. Pure. */
import { BrokerError } from "@requeue/core/adapter-kit"

export interface Context {
  readonly operation: string
  readonly queue?: string | undefined
}

interface Answer {
  readonly reason: BrokerError.Reason
  readonly remedy?: string
}

const access: Answer = {
  reason: "AccessRefused",
  remedy: "Allow the action on this queue in the identity's IAM policy"
}
const credentials: Answer = {
  reason: "AccessRefused",
  remedy: "Check access key and secret, or what the SDK's default chain finds; and the region and the system's clock"
}
const throttled: Answer = { reason: "Throttled", remedy: "Send less at a time, or ask AWS for a higher quota" }
const missing: Answer = {
  reason: "QueueMissing",
  remedy: `Check region, account and name, or create it; with queues: "create", a consumer does when it starts`
}
const lost: Answer = { reason: "LeaseLost" }
const large: Answer = { reason: "BodyTooLarge", remedy: "Store the content elsewhere and send a reference to it" }
const kms: Answer = { reason: "AccessRefused", remedy: "Check the state and the policy of the queue's KMS key" }
const reach: Answer = {
  reason: "ConnectionFailed",
  remedy: "Check region, host and port, and the network; is the server running?"
}
const broken: Answer = { reason: "ConnectionLost" }

/** By the code of the error, without the prefix of its namespace. */
const byCode: Readonly<Record<string, Answer>> = {
  QueueDoesNotExist: missing,
  NonExistentQueue: missing,
  QueueDeletedRecently: {
    reason: "QueueMissing",
    remedy: "SQS makes a queue of a deleted one's name again after 60 seconds"
  },
  QueueNameExists: {
    reason: "QueueMismatch",
    remedy: `The queue exists with other attributes: set queues: "verify" to see which, or "use" to take it as it is`
  },
  AccessDenied: access,
  AccessDeniedException: access,
  InvalidSecurity: access,
  NotAuthorized: access,
  InvalidClientTokenId: credentials,
  UnrecognizedClientException: credentials,
  SignatureDoesNotMatch: credentials,
  InvalidSignatureException: credentials,
  InvalidAccessKeyId: credentials,
  MissingAuthenticationToken: credentials,
  IncompleteSignature: credentials,
  ExpiredToken: credentials,
  ExpiredTokenException: credentials,
  RequestExpired: credentials,
  OptInRequired: credentials,
  CredentialsProviderError: credentials,
  KmsAccessDenied: kms,
  KmsDisabled: kms,
  KmsInvalidKeyUsage: kms,
  KmsInvalidState: kms,
  KmsNotFound: kms,
  KmsOptInRequired: kms,
  KmsThrottled: throttled,
  RequestThrottled: throttled,
  Throttling: throttled,
  ThrottlingException: throttled,
  ThrottledException: throttled,
  TooManyRequestsException: throttled,
  SlowDown: throttled,
  ServiceUnavailable: throttled,
  InternalError: throttled,
  InternalFailure: throttled,
  InternalServerError: throttled,
  PurgeQueueInProgress: { reason: "Throttled", remedy: "SQS purges a queue once in 60 seconds: try again then" },
  OverLimit: {
    reason: "QueueFull",
    remedy: "Too many messages are in flight: settle them sooner, or let retries be copies by a lower inFlightLimit"
  },
  ReceiptHandleIsInvalid: lost,
  MessageNotInflight: lost,
  InvalidMessageContents: { reason: "Unsupported", remedy: "Send the characters of XML 1.0, or bytes" },
  MessageTooLong: large,
  BatchRequestTooLong: large,
  UnsupportedOperation: { reason: "Unsupported" },
  TimeoutError: { reason: "Timeout" },
  RequestTimeout: { reason: "Timeout" },
  RequestTimeoutException: { reason: "Timeout" },
  AbortError: { reason: "Timeout" },
  ECONNREFUSED: reach,
  ENOTFOUND: reach,
  EAI_AGAIN: reach,
  EHOSTUNREACH: reach,
  ENETUNREACH: reach,
  ECONNRESET: broken,
  EPIPE: broken,
  ETIMEDOUT: { reason: "Timeout" }
}

/** Where only the text tells what is meant. */
const byText: ReadonlyArray<readonly [RegExp, Answer]> = [
  [
    /receipt handle.*(expired|not valid|invalid)|message.*(does not exist|not in flight|not available)|Total VisibilityTimeout/is,
    lost
  ],
  [/must be shorter than|too long|exceeds? .*size/i, large],
  [/non.?existent|does not exist/i, missing],
  [/socket hang up|aborted/i, broken],
  [
    /certificate|self.signed|\bSSL\b|\bTLS\b|altnames/i,
    { reason: "ConnectionFailed", remedy: "Check the certificate, or tls in the URL" }
  ]
]

/** What an entry of a batch, or a whole call, failed with. */
export interface Refusal {
  readonly code: string
  readonly text: string
  /** The HTTP status, where there was an answer. */
  readonly status: number | undefined
}

const bare = (code: string): string => code.slice(Math.max(code.lastIndexOf("."), code.lastIndexOf("#")) + 1)

const answerTo = ({ code, status, text }: Refusal): Answer =>
  byCode[bare(code)] ??
  byText.find(([pattern]) => pattern.test(text))?.[1] ??
  (status === undefined
    ? broken
    : status >= 500 || status === 429
      ? throttled
      : status === 403 || status === 401
        ? access
        : { reason: "Unsupported" })

/** Whether the error says that nothing is wrong with the request itself. */
export const isTransient = ({ reason }: BrokerError.BrokerError): boolean =>
  reason === "Throttled" || reason === "Timeout" || reason === "ConnectionFailed" || reason === "ConnectionLost"

export const fromRefusal = (refusal: Refusal, { operation, queue }: Context): BrokerError.BrokerError => {
  const { reason, remedy } = answerTo(refusal)
  const detail = refusal.text === "" ? refusal.code : `${bare(refusal.code)}: ${refusal.text}`
  return new BrokerError.BrokerError({ broker: "sqs", operation, queue, reason, detail, remedy })
}

const field = (error: object, name: string): unknown => (error as Record<string, unknown>)[name]

const statusOf = (error: Error): number | undefined => {
  const metadata = field(error, "$metadata")
  const status = typeof metadata === "object" && metadata !== null ? field(metadata, "httpStatusCode") : undefined
  return typeof status === "number" ? status : undefined
}

/** The SDK names errors by their class, Node by `code`; several addresses may have been tried. */
const codeOf = (error: Error): string => {
  if (error.name in byCode) return error.name
  for (const name of ["Code", "code"]) {
    const code = field(error, name)
    if (typeof code === "string") return code
  }
  const [first] = error instanceof AggregateError ? (error.errors as ReadonlyArray<unknown>) : []
  return first instanceof Error ? codeOf(first) : error.name
}

export const toBrokerError = (cause: unknown, context: Context): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  if (!(cause instanceof Error)) return fromRefusal({ code: "Error", text: String(cause), status: undefined }, context)
  return fromRefusal({ code: codeOf(cause), text: cause.message, status: statusOf(cause) }, context)
}
