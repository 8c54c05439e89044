/** The rules of AWS for whole calls that depend on the call alone, which servers for tests do not check. */
import { named, type AwsError, type ErrorName } from "./AwsError.ts"
import * as Call from "./Call.ts"
import { mebibyte, outside, sizeOf } from "./messageRules.ts"
import { attributesRefused, changeRefused, nameRefused } from "./queueRules.ts"

const sent = (name: ErrorName, what: string): AwsError => {
  const error = named(name)
  return { ...error, message: `${error.message} You have sent ${what}.` }
}

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html */
const batchRefused = (call: Call.Call): AwsError | undefined => {
  const entries = Call.entriesOf(call)
  const ids = entries.map(({ Id = "" }) => Id)
  if (entries.length === 0) return named("EmptyBatchRequest")
  if (entries.length > 10) return sent("TooManyEntriesInBatchRequest", `${entries.length}`)
  if (!ids.every((id) => /^[\w-]{1,80}$/.test(id))) return named("InvalidBatchEntryId")
  if (new Set(ids).size < ids.length) return named("BatchEntryIdsNotDistinct")
  const size = entries.reduce((sum, entry) => sum + sizeOf(entry), 0)
  return size > mebibyte ? sent("BatchRequestTooLong", `${size} bytes`) : undefined
}

const receiveRefused = ({ MaxNumberOfMessages, VisibilityTimeout, WaitTimeSeconds }: Call.Body) =>
  outside("MaxNumberOfMessages", MaxNumberOfMessages, 1, 10) ??
  outside("VisibilityTimeout", VisibilityTimeout, 0, 43_200) ??
  outside("WaitTimeSeconds", WaitTimeSeconds, 0, 20)

/** Returns why AWS rejects a whole call; `undefined` if it does not. */
export const callRefused = (call: Call.Call): AwsError | undefined => {
  if (Call.isBatch(call)) return batchRefused(call)
  if (call.action === "ReceiveMessage") return receiveRefused(call.body)
  if (call.action === "SetQueueAttributes") return changeRefused(call)
  return call.action === "CreateQueue" ? (nameRefused(call) ?? attributesRefused(call)) : undefined
}
