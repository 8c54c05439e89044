/**
 * What is decoded with `effect/Schema`: policies and adapters' options as plain JSON, and bodies of messages.
 *
 * It has a path of its own because Schema takes longer to load than all the rest.
 */
export * as AdapterOptions from "./adapter-kit/AdapterOptions.ts"
export * as PolicyConfig from "./faces/PolicyConfig.ts"
export * as SchemaCodec from "./message/SchemaCodec.ts"
export * as StrictSchema from "./options/StrictSchema.ts"
