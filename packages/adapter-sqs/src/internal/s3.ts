/** The bucket of a store: its options, and its keys. */
import { OptionKind, type OptionNames } from "@requeue/core/port"

/** The calls of S3 that are used, as `new S3()` of `@aws-sdk/client-s3` has them. */
export interface Client {
  readonly putObject: (input: {
    readonly Bucket: string
    readonly Key: string
    readonly Body: Uint8Array
  }) => Promise<unknown>
  readonly getObject: (input: {
    readonly Bucket: string
    readonly Key: string
  }) => Promise<{ readonly Body?: { readonly transformToByteArray: () => Promise<Uint8Array> } | undefined }>
}

/** Options of `S3Store.make`. */
export interface Options {
  /** The client, whose credentials, endpoint, retries and timeouts count: `new S3({ region: "eu-west-1" })`. */
  readonly client: Client
  /** The bucket for bodies. It must exist. */
  readonly bucket: string
  /** The beginning of the keys of new objects. Default: nothing. */
  readonly prefix?: string | undefined
  /** Other buckets that pointers may lead to, such as a former one. Default: none, since whoever sends chooses pointers. */
  readonly readable?: ReadonlyArray<string> | undefined
}

/** The kinds of the options. */
export const kinds: OptionNames.Of<Options> = {
  client: OptionKind.object("a client with putObject and getObject", "putObject", "getObject"),
  bucket: OptionKind.text,
  prefix: OptionKind.text,
  readable: OptionKind.list
}

const pointer = /^s3:\/\/([^/]+)\/(.+)$/s

/** The bucket and the object's key in a key of the store; `undefined` for what is none. */
export const parse = (key: string): { readonly bucket: string; readonly object: string } | undefined => {
  const [, bucket, object] = pointer.exec(key) ?? []
  return bucket === undefined || object === undefined ? undefined : { bucket, object }
}

/** The key of the store for an object. */
export const format = (bucket: string, object: string): string => `s3://${bucket}/${object}`
