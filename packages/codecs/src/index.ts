/**
 * Codecs for large bodies: compressed bodies, and bodies in a store with pointers to them.
 *
 * They are a separate package, because few queues need them, and compression needs `node:zlib`.
 */
export * as ClaimCheck from "./ClaimCheck.ts"
export * as CompressedCodec from "./CompressedCodec.ts"
