/**
 * Large bodies in the format of AWS' extended clients for Java and Python: the body is an object of S3, and the message a
 * pointer to it with the attribute `ExtendedPayloadSize`, or `SQSLargePayloadSize` from older versions.
 *
 * When to use: if the other side of the queue uses such a client. If both sides use Requeue, `ClaimCheck` with an `S3Store`
 * works with every broker.
 *
 * Those libraries delete the object before its message: by default in Java, optionally in Python. Redeliveries, dead
 * letters and other queues of a topic then have a pointer to nothing. Turn that deletion off (`cleanupS3Payload: false`)
 * and delete objects with a lifecycle rule of the bucket; this codec never deletes objects.
 *
 * Those libraries read objects as UTF-8, so the inner codec must write text.
 *
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-managing-large-messages.html
 * https://github.com/awslabs/amazon-sqs-java-extended-client-lib
 * https://github.com/awslabs/amazon-sqs-python-extended-client-lib
 */
import { Codec } from "@requeue/core"
import { OptionKind, OptionNames } from "@requeue/core/port"
import { ClaimCheck } from "@requeue/codecs"
import { format, kinds as kindsOfStore, type Options as StoreOptions, parse } from "./internal/s3.ts"
import * as S3Store from "./S3Store.ts"
import * as SqsNative from "./SqsNative.ts"

/** Options of {@link make}. */
export interface Options extends StoreOptions {
  /** Size in bytes above which a body is stored in S3. Default: 262,144. */
  readonly threshold?: ClaimCheck.Options["threshold"]
  /** How to treat a message whose object is missing: `"dead-letter"` or `"retry"`. Default: `"dead-letter"`. */
  readonly lost?: ClaimCheck.Options["lost"]
  /**
   * Whether to write the attribute of older versions, `SQSLargePayloadSize`. The codec reads both attributes. Default:
   * false.
   */
  readonly legacyAttribute?: boolean | undefined
}

const kinds: OptionNames.Of<Options> = {
  ...kindsOfStore,
  threshold: OptionKind.whole(0),
  lost: OptionKind.oneOf(["dead-letter", "retry"]),
  legacyAttribute: OptionKind.flag
}

const attribute = "ExtendedPayloadSize"
const legacy = "SQSLargePayloadSize"

/** Java class names at the start of pointers; the second is from older versions. */
const classes = ["software.amazon.payloadoffloading.PayloadS3Pointer", "com.amazon.sqs.javamessaging.MessageS3Pointer"]

/** Adds an attribute to the program's own. */
const withAttribute = (name: string, size: number, given: Codec.MessageParts): Codec.MessageParts => {
  const asked = SqsNative.of(given)?.attributes
  const value = String(size)
  const native = SqsNative.make({ attributes: { ...asked, [name]: { type: "Number", value } } })
  return { headers: { ...given.headers, [name]: value }, native: { ...given.native, ...native } }
}

const textOf = (value: unknown, name: string): string | undefined => {
  const text: unknown = OptionKind.isObject(value) && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined
  return typeof text === "string" && text !== "" ? text : undefined
}

/** Returns the store's key from a pointer of AWS' libraries. */
const keyOf = (bytes: Uint8Array): string => {
  let json: unknown
  try {
    json = Codec.json.decode(bytes, {})
  } catch {
    throw new ClaimCheck.InvalidPointerError({ detail: "the pointer is not JSON" })
  }
  const [type, at]: ReadonlyArray<unknown> = Array.isArray(json) && json.length === 2 ? json : []
  const [bucket, object] = [textOf(at, "s3BucketName"), textOf(at, "s3Key")]
  if (!classes.some((known) => known === type) || bucket === undefined || object === undefined)
    throw new ClaimCheck.InvalidPointerError({
      detail: "the message body is not a pointer in the format of AWS's extended clients"
    })
  return format(bucket, object)
}

const formatOf = (name: string): ClaimCheck.Format => ({
  markers: [attribute, legacy],
  write: (key, size, given) => {
    const { bucket: s3BucketName, object: s3Key } = parse(key)! // Made by the store.
    return { ...withAttribute(name, size, given), body: Codec.json.encode([classes[0], { s3BucketName, s3Key }]) }
  },
  read: keyOf
})

/**
 * Makes a codec for this format around a codec that writes text.
 *
 * @throws RangeError when an option is unknown, of another kind, out of its range or missing
 *
 * @example
 * ```ts no-run
 * import { S3 } from "@aws-sdk/client-s3"
 * import { ExtendedClient } from "@requeue/adapter-sqs/s3"
 * import { Codec, QueueDefinition } from "@requeue/core"
 *
 * const client = new S3({ region: "eu-west-1" })
 * const orders = QueueDefinition.make("orders", { codec: ExtendedClient.make(Codec.json, { client, bucket: "acme-bodies" }) })
 * ```
 */
export const make = <A, I>(codec: Codec.Codec<A, I>, options: Options): Codec.Codec<A, I> => {
  OptionNames.check("ExtendedClient.make", options, kinds)
  const { legacyAttribute = false, lost, threshold, ...s3 } = options
  const store = S3Store.make(s3)
  return ClaimCheck.make(codec, { store, threshold, lost, format: formatOf(legacyAttribute ? legacy : attribute) })
}
