/** Requeue on Amazon SQS. */
export * as SqsBroker from "./SqsBroker.ts"
export * as SqsNative from "./SqsNative.ts"
export * as SqsOperator from "./SqsOperator.ts"
export * as SqsOptions from "./SqsOptions.ts"
export * as SqsPermissions from "./SqsPermissions.ts"
export * as SqsPlan from "./SqsPlan.ts"
export { adapter } from "./SqsBroker.ts"
