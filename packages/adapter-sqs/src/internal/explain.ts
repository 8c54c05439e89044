/**
 * The reason and remedy of a failed call, by code, text and status of the response. Pure.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
 */
import type { BrokerError } from "@requeue/core/port"

export interface Explanation {
  readonly reason: BrokerError.Reason
  readonly remedy?: string
}

const access: Explanation = {
  reason: "AccessRefused",
  remedy: "Allow the action on this queue in the identity's IAM policy"
}
/** Concerns the caller as a whole: every other call fails too. */
export const credentials: Explanation = {
  reason: "AccessRefused",
  remedy:
    "Check the access key and secret, or those that the SDK's default chain finds. Check the region and the system's clock as well"
}
const throttled: Explanation = { reason: "Throttled", remedy: "Send less at a time, or ask AWS for a higher quota" }
const remedyOfFailure =
  "Nothing is wrong with the call, which is repeated; where it goes on, see AWS's Health Dashboard"
/** SQS has failed, and the call may have taken effect. */
const failed: Explanation = { reason: "ConnectionLost", remedy: remedyOfFailure }
const unavailable: Explanation = { reason: "ConnectionFailed", remedy: remedyOfFailure }
const missing: Explanation = {
  reason: "QueueMissing",
  remedy: `Check region, account and name, or create the queue. With queues: "create", a consumer creates it at its start`
}
const lost: Explanation = { reason: "LeaseLost" }
const large: Explanation = {
  reason: "BodyTooLarge",
  remedy: "Store the content elsewhere and send a reference to it, as the codec ClaimCheck does"
}
const kms: Explanation = { reason: "AccessRefused", remedy: "Check the state and the policy of the queue's KMS key" }
const reach: Explanation = {
  reason: "ConnectionFailed",
  remedy: "Check region, host and port, and the network; is the server running?"
}
const silent: Explanation = {
  reason: "Timeout",
  remedy: "Check the network and the load of the server. Repeat a send with the same id, or raise requestTimeout"
}
const broken: Explanation = {
  reason: "ConnectionLost",
  remedy: "Try again, and repeat a send with the same id. If the server needs TLS, write tls=true in the URL"
}
const remedyOfForeign = "Is there a proxy or a login page between here and SQS, or another server at this address?"
/** Another server reports success in an unreadable response, or redirects. */
const unreadable: Explanation = { reason: "ConnectionLost", remedy: remedyOfForeign }
/** A proxy has stopped waiting for SQS, but the call may still take effect. */
const impatient: Explanation = { reason: "Timeout", remedy: remedyOfForeign }

/** The server does not speak HTTP. */
export const foreign: Explanation = {
  reason: "ConnectionFailed",
  remedy:
    "Check host and port: something answers there that does not speak HTTP. If the server needs TLS, write tls=true in the URL"
}

/** By error code, without namespace prefix. */
const codes: Readonly<Record<string, Explanation>> = {
  QueueDoesNotExist: missing,
  NonExistentQueue: missing,
  QueueDeletedRecently: {
    reason: "QueueMissing",
    remedy: "Try again after 60 seconds: until then, SQS refuses a queue with the name of a deleted one"
  },
  QueueNameExists: {
    reason: "QueueMismatch",
    remedy: `The queue exists with other attributes: set queues: "verify" to see which, or "use" to use the queue as it is`
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
  ServiceUnavailable: unavailable,
  ServiceUnavailableException: unavailable,
  InternalError: failed,
  InternalFailure: failed,
  InternalServerError: failed,
  PurgeQueueInProgress: { reason: "Throttled", remedy: "SQS purges a queue once in 60 seconds: try again later" },
  OverLimit: {
    reason: "QueueFull",
    remedy:
      "Too many messages are in flight: settle messages sooner, or lower inFlightLimit: retries then wait as copies that are not in flight"
  },
  ReceiptHandleIsInvalid: lost,
  MessageNotInflight: lost,
  InvalidMessageContents: { reason: "Unsupported", remedy: "Send only characters that XML 1.0 allows, or send bytes" },
  MessageTooLong: large,
  BatchRequestTooLong: large,
  UnsupportedOperation: { reason: "Unsupported" },
  TimeoutError: silent,
  RequestTimeout: silent,
  RequestTimeoutException: silent,
  AbortError: silent,
  ECONNREFUSED: reach,
  ENOTFOUND: reach,
  EAI_AGAIN: reach,
  EHOSTUNREACH: reach,
  ENETUNREACH: reach,
  ECONNRESET: broken,
  EPIPE: broken,
  ETIMEDOUT: silent,
  UnreadableAnswer: unreadable
}

// A Map: the code may be the name of an object's inherited property.
export const byCode: ReadonlyMap<string, Explanation> = new Map(Object.entries(codes))

/** By HTTP status, for errors without a known code or text. */
const statuses: ReadonlyMap<number, Explanation> = new Map([
  [401, access],
  [403, access],
  [408, impatient],
  [413, large],
  [429, throttled],
  [499, impatient]
])

/** By error text, for unspecific codes. */
const byText: ReadonlyArray<readonly [RegExp, Explanation]> = [
  [
    /receipt handle.*(expired|not valid|invalid)|message.*(does not exist|not in flight|not available)|Total VisibilityTimeout/is,
    lost
  ],
  [/must be shorter than|too long|exceeds? .*size/i, large],
  [/non.?existent|does not exist/i, missing],
  [/socket hang up|aborted/i, broken],
  [/^Parse Error: Expected HTTP\//, foreign],
  [
    /wrong version number/i,
    {
      reason: "ConnectionFailed",
      remedy: "The server does not support TLS on this port: leave tls=true out, or write another port"
    }
  ],
  [
    /certificate|self.signed|\bSSL\b|\bTLS\b|altnames/i,
    {
      reason: "ConnectionFailed",
      remedy:
        "Check host and certificate; name the file of its authority in NODE_EXTRA_CA_CERTS, or give " +
        "requestHandler.httpsAgent an https.Agent with ca"
    }
  ]
]

/** The error of an entry of a batch, or of a whole call. */
export interface Refusal {
  readonly code: string
  readonly text: string
  /** The HTTP status, if there was a response. */
  readonly status: number | undefined
}

export const bare = (code: string): string => code.slice(Math.max(code.lastIndexOf("."), code.lastIndexOf("#")) + 1)

export const explain = ({ code, status, text }: Refusal): Explanation => {
  const known = byCode.get(bare(code))
  if (/\bKMS\./.test(code) && known !== throttled) return kms
  if (known !== undefined) return known
  // The text may come from the response, and explains nothing.
  if (status !== undefined && status >= 200 && status < 400) return unreadable
  const told = byText.find(([pattern]) => pattern.test(text))?.[1]
  if (told !== undefined) return told
  if (status === undefined) return broken
  // SQS's refusals have names. An error without a name may come from a proxy that has already forwarded the call.
  const isNamed = !/^Unknown(Error)?$/.test(code)
  if (status >= 500) return status === 503 && isNamed ? unavailable : failed
  const byStatus = statuses.get(status)
  return byStatus ?? (isNamed ? { reason: "Unsupported" } : { reason: "Unsupported", remedy: remedyOfForeign })
}
