/** Codecs from an Effect `Schema`: JSON on the wire, which the schema checks and transforms both ways. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Codec from "./Codec.ts"
import * as Standard from "./internal/standard.ts"
import { isSeparate } from "./OwnBytes.ts"

/**
 * Makes a codec for the values of a schema, including values that JSON lacks (`Date`, `Map`, `bigint`, …). The sender's
 * and the handler's type are the same. A body that does not fit causes the error `InvalidBody`, as with
 * `Codec.standard`.
 *
 * @example
 * ```ts
 * import { QueueDefinition } from "@requeue/core"
 * import { SchemaCodec } from "@requeue/core/schema"
 * import { Schema } from "effect"
 *
 * const Order = Schema.Struct({ id: Schema.String, placedAt: Schema.Date })
 * const orders = QueueDefinition.make("orders", { codec: SchemaCodec.make(Order) })
 * ```
 */
export const make = <A, E>(schema: Schema.Codec<A, E>): Codec.Codec<A> => {
  const wire = Schema.toCodecJson(schema)
  const decode = Schema.decodeUnknownResult(wire, { errors: "all" })
  const encode = Schema.encodeResult(wire, { errors: "all" })
  return isSeparate({
    contentType: Codec.json.contentType,
    encode: (value) => Codec.json.encode(fitting(encode(value))),
    decode: (bytes, headers) => fitting(decode(Codec.json.decode(bytes, headers)))
  })
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const fitting = <A>(result: Result.Result<A, Schema.SchemaError>): A => {
  if (Result.isSuccess(result)) return result.success
  throw Standard.invalid(format(result.failure.issue).issues)
}
