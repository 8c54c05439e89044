/** The bucket of a store: options and keys. */
import { OptionKind, type OptionNames } from "@requeue/core/port"

/** The S3 calls that are used, as in `new S3()` of `@aws-sdk/client-s3`. */
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
  /** The client, with its credentials, endpoint, retries and timeouts: `new S3({ region: "eu-west-1" })`. */
  readonly client: Client
  /** The bucket for bodies. It must exist. */
  readonly bucket: string
  /** Prefix of the keys of new objects. Default: empty. */
  readonly prefix?: string | undefined
  /**
   * Other buckets to which pointers may lead, such as a former one. Default: none, because senders choose the pointers.
   */
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

/** Parses a key of the store into bucket and object key; `undefined` if invalid. */
export const parse = (key: string): { readonly bucket: string; readonly object: string } | undefined => {
  const [, bucket, object] = pointer.exec(key) ?? []
  return bucket === undefined || object === undefined ? undefined : { bucket, object }
}

/** Returns the store's key of an object. */
export const format = (bucket: string, object: string): string => `s3://${bucket}/${object}`
