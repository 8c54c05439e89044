/**
 * Bodies of messages from any Effect Schema. A separate entry, because Schema takes longer to load than everything else.
 */
export * as SchemaCodec from "./message/SchemaCodec.ts"
