export { adapter } from "./PostgresBroker.ts"
export * as PostgresBroker from "./PostgresBroker.ts"
export * as PostgresOptions from "./PostgresOptions.ts"
export * as PostgresSchema from "./PostgresSchema.ts"
