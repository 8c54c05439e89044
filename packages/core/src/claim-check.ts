/**
 * Large bodies in a store, and pointers in their place: `ClaimCheck`.
 *
 * It has an entry of its own, because few queues need it.
 */
export * as ClaimCheck from "./message/ClaimCheck.ts"
