/**
 * Large bodies in Amazon S3: `S3Store`, for queues of any broker, and `ExtendedClient`, in the format of AWS' libraries.
 *
 * This is a separate entry point, because few queues need it. The program provides the S3 client.
 */
export * as ExtendedClient from "./ExtendedClient.ts"
export * as S3Store from "./S3Store.ts"
