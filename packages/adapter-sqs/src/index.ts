/** Requeue on Amazon SQS. */
export * as SqsOptions from "./SqsOptions.ts"
