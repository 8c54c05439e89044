/** Brokers, queues and policies from one file. Programs without Effect need only `loadConfig`. */
export { ConfigFile, jsonSchema, type Json } from "./ConfigFile.ts"
export { ConfigFileError } from "./ConfigFileError.ts"
export type { ConfiguredQueue } from "./ConfiguredQueue.ts"
export * as Configuration from "./Configuration.ts"
export { defineConfig, loadConfig, type LoadedConfig } from "./promise.ts"
