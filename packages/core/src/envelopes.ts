/**
 * Bodies that come in an envelope of another service: `EnvelopeCodec`.
 *
 * It has an entry of its own, because few queues need it.
 */
export * as EnvelopeCodec from "./message/EnvelopeCodec.ts"
