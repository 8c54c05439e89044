/**
 * The seam between this adapter and SQLite with its file, for simulations and tests. Programs do not need it.
 *
 * A broker takes the `Driver` from its context when it is made.
 */
export { Driver, node } from "./internal/client.ts"
export { checkpoint } from "./internal/connect/checkpoint.ts"
export { blocked, free } from "./internal/connect/schema.ts"
export type { Database, Statement } from "./internal/driver.ts"
export type { Log } from "./internal/log.ts"
