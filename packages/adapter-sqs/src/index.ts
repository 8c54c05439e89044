/** Requeue on Amazon SQS. */
export * as SqsOptions from "./SqsOptions.ts"
export * as SqsPermissions from "./SqsPermissions.ts"
export * as SqsPlan from "./SqsPlan.ts"
