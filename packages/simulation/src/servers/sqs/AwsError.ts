/**
 * The errors of SQS.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
 */

/** An error of SQS. */
export interface AwsError {
  /** The code of the query protocol, which the SDK returns as `Code`. */
  readonly code: string
  /** The type of the JSON protocol, which is the name of the SDK's error. */
  readonly name: string
  readonly message: string
  /** The HTTP status. */
  readonly status: number
}

const make = (code: string, message: string, { name = code, status = 400 } = {}): AwsError => ({
  code,
  name,
  message,
  status
})

/** A value that SQS does not accept. */
export const invalidParameter = (message: string): AwsError =>
  make("InvalidParameterValue", message, { name: "InvalidParameterValueException" })

/** The same, with the value and the reason. */
export const invalidValue = (name: string, value: unknown, reason: string): AwsError =>
  invalidParameter(`Value ${String(value)} for parameter ${name} is invalid. Reason: ${reason}`)

/** A call without a value that it needs. */
export const missingParameter = (name: string): AwsError =>
  make("MissingParameter", `The request must contain the parameter ${name}.`, {
    name: "MissingRequiredParameterException"
  })

/** An attribute of a queue that SQS does not have. */
export const invalidAttributeName = (message: string): AwsError => make("InvalidAttributeName", message)

/** A value that an attribute of a queue cannot have. */
export const invalidAttributeValue = (name: string, reason = ""): AwsError =>
  make("InvalidAttributeValue", `Invalid value for the parameter ${name}.${reason}`)

/** Returns the error of a number outside of its range; `undefined` if it is inside or missing. */
export const outside = (name: string, value: number | undefined, min: number, max: number): AwsError | undefined => {
  if (value === undefined) return undefined
  if (!Number.isInteger(value)) return make("SerializationException", `${name} must be an integer.`)
  return value >= min && value <= max ? undefined : invalidValue(name, value, `Must be between ${min} and ${max}.`)
}

/** A resource that does not exist. */
export const notFound = (message: string): AwsError => make("ResourceNotFoundException", message, { status: 404 })

/** A queue that exists with other attributes. */
export const nameExists = (attribute: string): AwsError =>
  make(
    "QueueAlreadyExists",
    `A queue already exists with the same name and a different value for attribute ${attribute}`,
    { name: "QueueNameExists" }
  )

/** A receipt handle that SQS has not made. */
export const invalidHandle = (handle: string): AwsError =>
  make("ReceiptHandleIsInvalid", `The input receipt handle "${handle}" is not a valid receipt handle.`, { status: 404 })

/** A purge less than a minute after the last one. */
export const purgedRecently = (queue: string): AwsError =>
  make(
    "AWS.SimpleQueueService.PurgeQueueInProgress",
    `Only one PurgeQueue operation on ${queue} is allowed every 60 seconds.`,
    { name: "PurgeQueueInProgress", status: 403 }
  )

/** An action that the caller has no permission for. */
export const denied = (action: string, queue: string): AwsError =>
  make("AccessDenied", `User is not authorized to perform: sqs:${action.toLowerCase()} on resource: ${queue}`, {
    name: "AccessDeniedException",
    status: 403
  })

const simple = (name: string, message: string, status = 400): AwsError => make(name, message, { status })
const older = (name: string, message: string): AwsError => make(`AWS.SimpleQueueService.${name}`, message, { name })

/** Errors without details, by name. */
export const named = {
  RequestThrottled: simple("RequestThrottled", "The request was denied due to request throttling.", 403),
  ThrottlingException: simple("ThrottlingException", "Rate exceeded"),
  OverLimit: simple("OverLimit", "Too many messages are in flight for this queue.", 403),
  InternalFailure: simple("InternalFailure", "We encountered an internal error.", 500),
  ServiceUnavailable: make("ServiceUnavailable", "Service unavailable.", {
    name: "ServiceUnavailableException",
    status: 503
  }),
  ExpiredToken: make("ExpiredToken", "The security token included in the request is expired", {
    name: "ExpiredTokenException",
    status: 403
  }),
  KmsThrottled: simple("KmsThrottled", "The request was denied by AWS KMS due to request throttling."),
  KmsAccessDenied: simple("KmsAccessDenied", "The caller does not have access to the customer master key."),
  KmsDisabled: simple("KmsDisabled", "The customer master key is disabled."),
  InvalidMessageContents: simple("InvalidMessageContents", "Invalid characters found in the message."),
  QueueDoesNotExist: make("AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.", {
    name: "QueueDoesNotExist"
  }),
  QueueDeletedRecently: older(
    "QueueDeletedRecently",
    "You must wait 60 seconds after deleting a queue before you can create another with the same name."
  ),
  EmptyBatchRequest: older("EmptyBatchRequest", "There should be at least one entry in the request."),
  TooManyEntriesInBatchRequest: older("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10."),
  BatchEntryIdsNotDistinct: older(
    "BatchEntryIdsNotDistinct",
    "Two or more batch entries in the request have the same Id."
  ),
  InvalidBatchEntryId: older(
    "InvalidBatchEntryId",
    "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long."
  ),
  BatchRequestTooLong: older("BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes.")
} as const satisfies Readonly<Record<string, AwsError>>

/** The name of an error without details. */
export type Name = keyof typeof named

/** Whether a client may repeat a call that failed so, without a change. */
export const isThrottling = ({ name }: AwsError): boolean =>
  name === "RequestThrottled" || name === "ThrottlingException"

/** Makes the entry of a batch that failed. */
export const failedEntry = (id: string, error: AwsError) => ({
  Id: id,
  Code: error.code,
  Message: error.message,
  SenderFault: error.status < 500 && !isThrottling(error)
})
