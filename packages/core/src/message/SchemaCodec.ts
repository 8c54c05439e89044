/** Codecs from an Effect `Schema`: JSON on the wire, which the schema checks and transforms both ways. */
import * as Schema from "effect/Schema"
import * as Codec from "./Codec.ts"
import { isSeparate } from "./internal/ownBytes.ts"

/**
 * A codec for the values of a schema, also for values that JSON lacks (`Date`, `Map`, `bigint`, …).
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
  const decode = Schema.decodeUnknownSync(wire)
  const encode = Schema.encodeSync(wire)
  return isSeparate({
    contentType: Codec.json.contentType,
    encode: (value) => Codec.json.encode(encode(value)),
    decode: (bytes, headers) => decode(Codec.json.decode(bytes, headers))
  })
}
