/** The engine of a consumer, for the redrives of `@requeue/operations` alone. */
export type { Outcome } from "./consume/internal/dispatch.ts"
export type { Item } from "./consume/internal/item.ts"
export { make } from "./consume/internal/lifecycle.ts"
export type { RunHandler } from "./consume/internal/workers.ts"
