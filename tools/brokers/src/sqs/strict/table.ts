/**
 * The rules of AWS that servers for tests do not keep, and their sources. `README.md` has the same table; each rule has a case of
 * its name in `test/strictCases`.
 */

const docs = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest"

interface Rule {
  readonly says: string
  /** A test that LocalStack has validated on AWS, by name, or a page of AWS. */
  readonly source: string
  /** The servers that keep it without the proxy. */
  readonly without: ReadonlyArray<"fauxqs" | "elasticmq">
}

const validated = (name: string, says: string, ...without: Rule["without"]): Rule => ({ says, source: name, without })

/** The rules that the proxy keeps, or for FIFO order the servers themselves. */
export const rules = {
  groupsInOneReceive: validated(
    "test_fifo_receive_message_group_id_ordering",
    "A receive has all messages of a FIFO group that there are, in their order, then those of the next group.",
    "fauxqs",
    "elasticmq"
  ),
  groupsInFlight: validated(
    "test_fifo_receive_message_visibility_timeout_shared_in_group",
    "No message of a FIFO group is received while one in front of it is in flight.",
    "fauxqs",
    "elasticmq"
  ),
  groupsInvisibleForNoTime: validated(
    "test_fifo_receive_message_with_zero_visibility_timeout",
    "A receive with no visibility timeout leaves the groups free, in their order.",
    "fauxqs",
    "elasticmq"
  ),
  groupsReturned: validated(
    "test_fifo_message_group_visibility_after_terminate_visibility_timeout",
    "A message that goes back to its FIFO group is received again, though those behind it are still in flight.",
    "fauxqs",
    "elasticmq"
  ),
  groupsDeleted: validated(
    "test_fifo_message_group_visibility_after_partial_delete",
    "A FIFO group continues when all its messages in flight are deleted, not when one of them is.",
    "fauxqs",
    "elasticmq"
  ),
  groupsExtended: validated(
    "test_fifo_group_visibility_extends_with_change_message_visibility",
    "A message of a FIFO group that stays in flight holds back those behind it, and none in front.",
    "fauxqs",
    "elasticmq"
  ),
  fairGroup: validated(
    "test_fair_queue_with_message_group_id",
    "A receive returns the group of a message in a standard queue.",
    "elasticmq"
  ),
  deadLetters: validated(
    "test_dead_letter_queue_message_attributes",
    "The receive count of a message that SQS moves to a dead-letter queue continues, and a receive returns DeadLetterQueueSourceArn.",
    "elasticmq"
  ),
  deadLetterSources: {
    says: "The queues whose redrive policy names a queue are listed.",
    source: `${docs}/APIReference/API_ListDeadLetterSourceQueues.html`,
    without: ["elasticmq"]
  },
  sizeInBatch: validated(
    "test_send_batch_message_size",
    "An entry larger than the queue's MaximumMessageSize fails, the others are sent."
  ),
  sizeChanged: validated(
    "test_send_message_with_updated_maximum_message_size",
    "A message larger than the queue's MaximumMessageSize is refused, also where that was changed."
  ),
  batchWithoutGroup: validated(
    "test_send_batch_missing_message_group_id_for_fifo_queue",
    "A batch to a FIFO queue with an entry without a group is refused as a whole."
  ),
  batchWithoutDeduplication: validated(
    "test_send_batch_missing_deduplication_id_for_fifo_queue",
    "So is one without a deduplication id, where the queue does not make it from the body."
  ),
  attributeNames: validated(
    "test_send_message_with_invalid_string_attributes",
    "The names, types and characters of message attributes are checked. Letters of all languages are good."
  ),
  deletedMessage: validated(
    "test_change_visibility_on_deleted_message_raises_invalid_parameter_value",
    "The visibility of a deleted message cannot be changed."
  ),
  expiredVisibility: validated(
    "test_change_message_visibility_after_visibility_timeout_expiration",
    "The visibility of a message of a standard queue is changed without an error after its timeout has ended."
  ),
  deletedQueue: validated(
    "test_create_queue_recently_deleted",
    "A queue cannot be created within 60 seconds after one of its name was deleted."
  ),
  fifoAttributes: validated(
    "test_create_standard_queue_with_fifo_attribute_raises_error",
    "A standard queue takes no attribute of FIFO queues, not even `false`."
  ),
  fifoSuffix: validated(
    "test_standard_queue_cannot_have_fifo_suffix",
    "A name with `.fifo` is refused without `FifoQueue`."
  ),
  typeChanged: validated(
    "test_set_unsupported_attribute_fifo",
    "A standard queue does not become a FIFO queue, nor the other way round."
  ),
  oneEncryption: validated(
    "test_sse_kms_and_sqs_are_mutually_exclusive",
    "A key of KMS and the encryption by SQS exclude each other."
  ),
  encryptionDefaults: validated(
    "test_set_queue_attributes_default_values",
    "A new queue is encrypted by SQS; a key ends that, and its end does not bring it back."
  ),
  moveSource: validated(
    "test_source_needs_redrive_policy",
    "Only a queue that is the dead-letter queue of another one can be the source of a move task."
  ),
  moveDestination: validated("test_destination_needs_to_exist", "The destination of a move task must be there."),
  moveTwice: validated("test_start_multiple_move_tasks", "A queue has one move task at a time."),
  moveBack: validated(
    "test_move_task_workflow_with_multiple_sources_as_default_destination",
    "A move task without a destination moves each message back to the queue that SQS moved it from."
  ),
  moveSentMessage: {
    says: "A move task without a destination fails at a message that was sent to the queue: CouldNotDetermineMessageSource.",
    source: `${docs}/SQSDeveloperGuide/troubleshooting-dlq-redrive.html`,
    without: []
  },
  otherOwner: {
    says: "QueueOwnerAWSAccountId and the account in a queue's URL count: a queue of another account is not there.",
    source: `${docs}/APIReference/API_GetQueueUrl.html`,
    without: []
  },
  otherOwnersDeadLetters: {
    says: "A dead-letter queue is of the same account and region as its source.",
    source: `${docs}/SQSDeveloperGuide/sqs-dead-letter-queues.html`,
    without: []
  },
  redriveAllowPolicy: {
    says: "A RedriveAllowPolicy rejects queues that use its queue for their dead letters. (AWS's words are not known.)",
    source: `${docs}/APIReference/API_SetQueueAttributes.html`,
    without: []
  }
} as const satisfies Readonly<Record<string, Rule>>

/** The rules that a proxy cannot keep. */
export const notKept: ReadonlyArray<Omit<Rule, "without"> & { readonly why: string }> = [
  {
    says: "The receipt handle of a standard queue deletes its message after it has expired.",
    source: "test_delete_after_visibility_timeout",
    why: "fauxqs forgets the handle, and takes the message by no other name."
  },
  {
    says: "DeadLetterQueueSourceArn of a message whose receives another client made, straight from the server.",
    source: "test_dead_letter_queue_message_attributes",
    why: "fauxqs does not return it, and the proxy has not seen them."
  },
  {
    says: "New attributes hold after up to 60 seconds, a new retention period after up to 15 minutes.",
    source: `${docs}/APIReference/API_SetQueueAttributes.html`,
    why: "The server behind has them at once."
  },
  {
    says: "The numbers of messages are approximate, and right about a minute after the last send.",
    source: `${docs}/APIReference/API_GetQueueAttributes.html`,
    why: "The server behind counts exactly."
  }
]
