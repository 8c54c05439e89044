export * as SqliteBroker from "./SqliteBroker.ts"
export * as SqliteOptions from "./SqliteOptions.ts"
export { adapter } from "./SqliteBroker.ts"
