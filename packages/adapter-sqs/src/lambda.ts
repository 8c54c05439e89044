/**
 * Functions on AWS Lambda: `SqsLambda`.
 *
 * A separate entry point: a function needs AWS' SDK before its first event, other programs only when they make their
 * broker.
 */
export * as SqsLambda from "./SqsLambda.ts"
