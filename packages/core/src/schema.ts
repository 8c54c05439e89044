/**
 * Modules that use `effect/Schema`: policies and adapters' options as plain JSON, and bodies of messages.
 *
 * They have an entry of their own, because Schema takes longer to load than all the rest.
 */
export * as AdapterOptions from "./adapter-kit/AdapterOptions.ts"
export * as PolicyConfig from "./faces/PolicyConfig.ts"
export * as SchemaCodec from "./message/SchemaCodec.ts"
export * as StrictSchema from "./options/StrictSchema.ts"
