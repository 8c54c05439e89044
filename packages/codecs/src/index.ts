/**
 * Codecs around other codecs: compressed bodies, and large bodies in a store with pointers in their place.
 *
 * They have a package of their own, because few queues need them, and compression needs `node:zlib`.
 */
export * as ClaimCheck from "./ClaimCheck.ts"
export * as CompressedCodec from "./CompressedCodec.ts"
