/**
 * Bodies of messages from any Effect Schema.
 *
 * They have an entry of their own, because Schema takes longer to load than all the rest.
 */
export * as SchemaCodec from "./message/SchemaCodec.ts"
