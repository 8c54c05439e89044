/**
 * Large bodies in Amazon S3: `S3Store`, for queues of any broker, and `ExtendedClient`, in the format of AWS' own libraries.
 *
 * It has an entry of its own, because few queues need it. The client of S3 is the program's own.
 */
export * as ExtendedClient from "./ExtendedClient.ts"
export * as S3Store from "./S3Store.ts"
