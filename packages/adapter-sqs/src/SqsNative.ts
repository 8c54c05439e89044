/**
 * SQS's facts about a message: its attributes with their types, and its system attributes.
 *
 * When to use: to send attributes that are not text, or to read foreign attributes, the sender, the sequence number or
 * other system attributes.
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
 * Makes native options for one message. Pass the result as the option `native` of `send`, or of an entry of `sendBatch`.
 *
 * @throws RangeError when an option is unknown, or SQS does not accept an attribute
 *
 * @example
 * ```ts
 * import { SqsNative } from "@requeue/adapter-sqs"
 *
 * SqsNative.make({ attributes: { raw: { type: "Binary", value: new Uint8Array([1, 2]) } } })
 * ```
 */
export const make = (options: Options): Message.Native => Native.nativeOptions.make("SqsNative.make", options)

/** Returns SQS's facts about a message or dead letter; `undefined` for messages of other brokers. */
export const of = ({ native }: { readonly native?: Message.Native | undefined }): SqsNative | undefined =>
  native?.[Native.broker] as SqsNative | undefined // Set by this adapter.
