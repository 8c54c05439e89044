/**
 * Modules that use `effect/Schema`: policies as plain JSON, and bodies of messages.
 *
 * They have an entry of their own, because Schema takes longer to load than all the rest.
 */
export * as PolicyConfig from "./faces/PolicyConfig.ts"
export * as SchemaCodec from "./message/SchemaCodec.ts"
export * as StrictSchema from "./options/StrictSchema.ts"
