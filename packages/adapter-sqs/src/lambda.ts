/**
 * Functions on AWS Lambda: `SqsLambda`.
 *
 * This is a separate entry point, because a function needs AWS' SDK before its first event. Other programs load the SDK
 * when they make their broker.
 */
export * as SqsLambda from "./SqsLambda.ts"
