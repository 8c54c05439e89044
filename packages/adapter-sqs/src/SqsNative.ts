/**
 * Facts of SQS about a message: its attributes with their types, and what SQS itself says of it.
 *
 * When to use: to send attributes that are no text, and to read those of others, or the sender, the sequence number and
 * whatever else SQS tells.
 *
 * @example
 * ```ts
 * import { SqsNative } from "@requeue/adapter-sqs"
 * import type { Handler } from "@requeue/core"
 *
 * const native = SqsNative.make({ attributes: { total: { type: "Number", value: "9.5" } } })
 * const handler = async (message: Handler.Received<unknown>) => SqsNative.of(message)?.system["SenderId"]
 * ```
 */
import type { Message } from "@requeue/core/port"
import * as Native from "./internal/native.ts"
import type { Options, SqsNative } from "./internal/native.ts"

export type { Attribute, Options, SqsNative } from "./internal/native.ts"

/**
 * Wishes for one message that is sent, as `native` of `send`, or of an entry of `sendBatch`.
 *
 * @throws RangeError when an option is unknown, or SQS does not take an attribute
 *
 * @example
 * ```ts
 * import { SqsNative } from "@requeue/adapter-sqs"
 *
 * SqsNative.make({ attributes: { raw: { type: "Binary", value: new Uint8Array([1, 2]) } } })
 * ```
 */
export const make = (options: Options): Message.Native => Native.nativeOptions.make("SqsNative.make", options)

/** The facts of a message or a dead letter from SQS; `undefined` for one of another broker. */
export const of = ({ native }: { readonly native?: Message.Native | undefined }): SqsNative | undefined =>
  native?.[Native.broker] as SqsNative | undefined // The adapter has made them.
