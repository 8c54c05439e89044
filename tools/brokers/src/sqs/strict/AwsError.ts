/**
 * Errors as AWS sends them over JSON: the type is in the body, the older code of the query protocol in a header.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
 */
import type { ServerResponse } from "node:http"

export interface AwsError {
  readonly code: string
  readonly message: string
  readonly status: number
  /** The type in the body, if it differs from the code. */
  readonly type?: string
  /** The code of the query protocol, if it differs from the code. */
  readonly queryCode?: string
}

const coral = (name: string) => `com.amazon.coral.service#${name}`

export const invalidParameter = (message: string): AwsError => ({
  code: "InvalidParameterValue",
  type: coral("InvalidParameterValueException"),
  message,
  status: 400
})

export const missingParameter = (name: string): AwsError => ({
  code: "MissingParameter",
  type: coral("MissingRequiredParameterException"),
  message: `The request must contain the parameter ${name}.`,
  status: 400
})

export const invalidAttributeName = (message: string): AwsError => ({
  code: "InvalidAttributeName",
  message,
  status: 400
})

export const notFound = (message: string): AwsError => ({ code: "ResourceNotFoundException", message, status: 404 })

/** Errors that a test may request by name, and those of rules without details. */
const errors = {
  RequestThrottled: { message: "The request was denied due to request throttling.", status: 403 },
  ThrottlingException: { message: "Rate exceeded", status: 400, type: coral("ThrottlingException") },
  KmsThrottled: { message: "The request was denied by AWS KMS due to request throttling.", status: 400 },
  OverLimit: { message: "Too many messages are in flight for this queue.", status: 403 },
  InternalFailure: { message: "We encountered an internal error.", status: 500, type: coral("InternalFailure") },
  ServiceUnavailable: { message: "Service unavailable.", status: 503, type: coral("ServiceUnavailableException") },
  AccessDenied: {
    message: "User is not authorized to perform this action on this resource.",
    status: 403,
    type: coral("AccessDeniedException")
  },
  ExpiredToken: {
    message: "The security token included in the request is expired",
    status: 403,
    type: coral("ExpiredTokenException")
  },
  KmsAccessDenied: { message: "The caller does not have access to the customer master key.", status: 400 },
  KmsDisabled: { message: "The customer master key is disabled.", status: 400 },
  InvalidClientTokenId: {
    message: "The security token included in the request is invalid.",
    status: 403,
    type: coral("UnrecognizedClientException")
  },
  SignatureDoesNotMatch: {
    message: "The request signature we calculated does not match the signature you provided.",
    status: 403,
    type: coral("InvalidSignatureException")
  },
  InvalidMessageContents: { message: "Invalid characters found in the message.", status: 400 },
  ReceiptHandleIsInvalid: { message: "The input receipt handle is invalid.", status: 404 },
  QueueDoesNotExist: {
    message: "The specified queue does not exist.",
    status: 400,
    queryCode: "AWS.SimpleQueueService.NonExistentQueue"
  },
  AttemptNotRetryable: {
    message:
      "Value x for parameter ReceiveRequestAttemptId is invalid. Reason: The receiveRequestAttemptId is not valid anymore since the receive call is not retryable.",
    status: 400,
    type: coral("InvalidParameterValueException"),
    queryCode: "InvalidParameterValue"
  },
  PurgeQueueInProgress: {
    message: "Only one PurgeQueue operation on a queue is allowed every 60 seconds.",
    status: 403,
    queryCode: "AWS.SimpleQueueService.PurgeQueueInProgress"
  },
  QueueDeletedRecently: {
    message: "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
    status: 400,
    queryCode: "AWS.SimpleQueueService.QueueDeletedRecently"
  },
  EmptyBatchRequest: {
    message: "There should be at least one entry in the request.",
    status: 400,
    queryCode: "AWS.SimpleQueueService.EmptyBatchRequest"
  },
  TooManyEntriesInBatchRequest: {
    message: "Maximum number of entries per request are 10.",
    status: 400,
    queryCode: "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"
  },
  BatchEntryIdsNotDistinct: {
    message: "Two or more batch entries in the request have the same Id.",
    status: 400,
    queryCode: "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"
  },
  InvalidBatchEntryId: {
    message:
      "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
    status: 400,
    queryCode: "AWS.SimpleQueueService.InvalidBatchEntryId"
  },
  BatchRequestTooLong: {
    message: "Batch requests cannot be longer than 1048576 bytes.",
    status: 400,
    queryCode: "AWS.SimpleQueueService.BatchRequestTooLong"
  }
} as const

export type ErrorName = keyof typeof errors

export const named = (name: ErrorName): AwsError => ({ code: name, ...errors[name] })

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html */
export const denied = (action: string, resource: string): AwsError => {
  const message = `User: arn:aws:iam::000000000000:user/requeue is not authorized to perform: sqs:${action.toLowerCase()}`
  return { ...named("AccessDenied"), message: `${message} on resource: ${resource}` }
}

/** Makes the entry of a batch that failed. */
export const failedEntry = (id: string, { code, message, status }: AwsError) => ({
  Id: id,
  Code: code,
  Message: message,
  SenderFault: status < 500 && code !== "RequestThrottled" && code !== "ThrottlingException"
})

export const send = (response: ServerResponse, { code, message, queryCode = code, status, type }: AwsError): void => {
  response.writeHead(status, {
    "content-type": "application/x-amz-json-1.0",
    "x-amzn-query-error": `${queryCode};${status < 500 ? "Sender" : "Receiver"}`
  })
  response.end(JSON.stringify({ __type: type ?? `com.amazonaws.sqs#${code}`, message }))
}
