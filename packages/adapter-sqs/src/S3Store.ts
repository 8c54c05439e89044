/**
 * A store for large bodies in a bucket of Amazon S3, for the codec `ClaimCheck` on queues of any broker.
 *
 * Objects have unique keys, `<prefix><UUID>`. A producer needs `s3:PutObject`. A consumer needs `s3:GetObject` and
 * `s3:ListBucket`; without `s3:ListBucket`, S3 reports a missing object as access denied, which is retried. With a KMS
 * key, they need `kms:GenerateDataKey` and `kms:Decrypt`.
 *
 * The store never deletes objects. Delete them with a lifecycle rule of the bucket, after messages and dead letters
 * have expired. SQS keeps both for at most 14 days, and a redrive restarts that time.
 *
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
 * https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lifecycle-mgmt.html
 */
import { OptionNames } from "@requeue/core/port"
import type { ClaimCheck } from "@requeue/codecs"
import * as Data from "effect/Data"
import { format, kinds, type Options, parse } from "./internal/s3.ts"

export type { Client, Options } from "./internal/s3.ts"

/** The error of a pointer to a bucket that the store may not read. */
export class ForeignBucketError extends Data.TaggedError("ForeignBucketError")<{
  readonly key: string
  /** The buckets that the store may read. */
  readonly buckets: ReadonlyArray<string>
}> {
  readonly permanent = true
  override get message() {
    return `S3Store: the pointer leads to ${this.key}, and only ${this.buckets.join(", ")} may be read. Add its bucket to readable`
  }
}

/** Whether S3 reports that the object is missing and the bucket exists. */
const isMissing = (error: unknown): boolean => Object(error).name === "NoSuchKey"

/**
 * Makes a store in a bucket. The store's keys are `s3://<bucket>/<key>`.
 *
 * @throws RangeError when an option is unknown, of another kind or missing
 *
 * @example
 * ```ts no-run
 * import { S3 } from "@aws-sdk/client-s3"
 * import { S3Store } from "@requeue/adapter-sqs/s3"
 * import { Codec, QueueDefinition } from "@requeue/core"
 * import { ClaimCheck } from "@requeue/codecs"
 *
 * const store = S3Store.make({ client: new S3({ region: "eu-west-1" }), bucket: "acme-bodies", prefix: "orders/" })
 * const orders = QueueDefinition.make("orders", { codec: ClaimCheck.make(Codec.json, { store }) })
 * ```
 */
export const make = (options: Options): ClaimCheck.Store => {
  OptionNames.check("S3Store.make", options, kinds)
  const { bucket: own, client, prefix = "", readable = [] } = options
  if (client === undefined || own === undefined) throw new RangeError("S3Store.make: client and bucket must be given")
  const buckets = new Set([own, ...readable])
  return {
    name: `s3://${own}`,
    put: async (Body) => {
      const object = `${prefix}${crypto.randomUUID()}`
      await client.putObject({ Bucket: own, Key: object, Body })
      return format(own, object)
    },
    get: async (key) => {
      const at = parse(key)
      if (at === undefined || !buckets.has(at.bucket)) throw new ForeignBucketError({ key, buckets: [...buckets] })
      try {
        const { Body } = await client.getObject({ Bucket: at.bucket, Key: at.object })
        return (await Body?.transformToByteArray()) ?? new Uint8Array()
      } catch (error) {
        if (isMissing(error)) return undefined
        throw error
      }
    }
  }
}
