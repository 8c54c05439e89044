/** Bodies of messages from any Effect Schema. A separate entry, because Schema takes longer to load than all the rest. */
export * as SchemaCodec from "./message/SchemaCodec.ts"
