/** Brokers, queues and policies from one file. Without Effect, `loadConfig` is all there is. */
export { ConfigFile, jsonSchema, type Json } from "./ConfigFile.ts"
export { ConfigFileError } from "./ConfigFileError.ts"
export type { ConfiguredQueue } from "./ConfiguredQueue.ts"
export * as Configuration from "./Configuration.ts"
export { defineConfig, loadConfig, type LoadedConfig } from "./promise.ts"
