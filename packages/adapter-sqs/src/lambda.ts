/**
 * Functions on AWS Lambda: `SqsLambda`.
 *
 * It has an entry of its own, because such a function needs AWS' SDK before its first event, and other programs not before
 * their broker is made.
 */
export * as SqsLambda from "./SqsLambda.ts"
