/** Requeue on NSQ. */
export * as NsqBroker from "./NsqBroker.ts"
export * as NsqNative from "./NsqNative.ts"
export * as NsqOperator from "./NsqOperator.ts"
export * as NsqOptions from "./NsqOptions.ts"
export * as NsqPlan from "./NsqPlan.ts"
export { adapter } from "./NsqBroker.ts"
