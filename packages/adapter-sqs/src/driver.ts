/**
 * The seam between the adapter and AWS' SDK, for simulated servers and tests: a program that provides a {@link Driver} runs
 * the adapter on it instead of the SDK.
 *
 * A separate entry point, because programs do not need it.
 */
export { Driver } from "./internal/driver.ts"
export type { Call, Client, Message, MessageAttributeValue, SendEntry, Settings } from "./internal/client.ts"
export { connect } from "./internal/lazyClient.ts"
export { NotSent } from "./internal/toBrokerError.ts"
