/** The driver as the adapter sees it, for simulations and tests. */
export { type Database, Driver, type Flusher, type Statement } from "./internal/client.ts"
