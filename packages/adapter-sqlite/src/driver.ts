/** The driver as the adapter sees it, for simulations and tests. */
export { type Database, Driver, node, type Statement } from "./internal/client.ts"
export { checkpoint } from "./internal/connect/checkpoint.ts"
export type { Log } from "./internal/log.ts"
export { free } from "./internal/connect/schema.ts"
