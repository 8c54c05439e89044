/**
 * Bodies that are compressed on the wire: `CompressedCodec`.
 *
 * It has an entry of its own, because it needs `node:zlib`, which not every runtime has.
 */
export * as CompressedCodec from "./message/CompressedCodec.ts"
