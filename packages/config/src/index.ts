/** Brokers, queues and policies from one file. Programs without Effect need only `loadConfig`. */
export { ConfigFile, jsonSchema, type Json } from "./ConfigFile.ts"
export { ConfigFileError } from "./ConfigFileError.ts"
export type { ConfiguredQueue } from "./ConfiguredQueue.ts"
export * as Configuration from "./Configuration.ts"
export * as PolicyConfig from "./PolicyConfig.ts"
export { defineConfig, loadConfig, type LoadedConfig } from "./promise.ts"
export * as StrictSchema from "./StrictSchema.ts"
