/**
 * Options of TLS, decoded as strictly as all others: one that is misspelt leaves a connection less secure.
 *
 * When to use: in an adapter whose driver takes the options of `node:tls`.
 */
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import * as OptionKind from "../options/OptionKind.ts"
import { summarize } from "../policy/Failure.ts"
import { decoder } from "./AdapterOptions.ts"

/** Options of TLS, as `node:tls` takes them. https://nodejs.org/api/tls.html#tlscreatesecurecontextoptions */
export interface Tls {
  /** Certificates of the authorities that are trusted, as PEM. Default: those of Node.js. */
  readonly ca?: string | Buffer | Array<string | Buffer> | undefined
  /** The path of a file of such certificates, read for each connection. Default: none. */
  readonly caFile?: string | undefined
  /** The client's own certificate, as PEM. Goes with `key`. Default: none. */
  readonly cert?: string | Buffer | undefined
  /** The path of a file with the client's certificate, read for each connection. Default: none. */
  readonly certFile?: string | undefined
  /** The client's private key, as PEM. Goes with `cert`. Default: none. */
  readonly key?: string | Buffer | undefined
  /** The path of a file with the client's private key, read for each connection. Default: none. */
  readonly keyFile?: string | undefined
  /** The client's certificate and key in one, as PKCS12. Default: none. */
  readonly pfx?: Buffer | undefined
  /** The passphrase of `key` or `pfx`. Default: none. */
  readonly passphrase?: string | Redacted.Redacted | undefined
  /** The name that the server's certificate must have. Default: the host that is connected to. */
  readonly servername?: string | undefined
  /** Whether the server's certificate is checked. Default: `true`. */
  readonly rejectUnauthorized?: boolean | undefined
}

const materials = ["ca", "cert", "key"] as const

/** Node ignores material that is not PEM, such as a path, and then trusts other authorities than were meant. */
const isPem = (value: unknown): boolean => {
  if (typeof value === "string") return value.includes("-----BEGIN ")
  return value instanceof Uint8Array && isPem(new TextDecoder().decode(value))
}

const pem = (name: (typeof materials)[number], expected: string): OptionKind.OptionKind => ({
  expected,
  holds: (value) => [value].flat().every(isPem),
  remedy: (value) =>
    [value].flat().some((each) => typeof each === "string") ? `Give the path of a file as ${name}File` : undefined
})

const isPassphrase = (value: unknown): boolean =>
  typeof (Redacted.isRedacted(value) ? Redacted.value(value) : value) === "string"

const fields = {
  ca: pem("ca", "PEM text or bytes, or an array of them"),
  caFile: OptionKind.nonEmpty,
  cert: pem("cert", "PEM text or bytes"),
  certFile: OptionKind.nonEmpty,
  key: pem("key", "PEM text or bytes"),
  keyFile: OptionKind.nonEmpty,
  pfx: { expected: "bytes", holds: (value: unknown) => value instanceof Uint8Array },
  passphrase: { expected: "text, or Redacted text", holds: isPassphrase },
  servername: OptionKind.nonEmpty,
  rejectUnauthorized: OptionKind.flag
}

/**
 * Decodes TLS options. It fails for one that is unknown or of the wrong kind, and for a certificate without its key or a
 * key without its certificate. `broker` and `option` are the names of the adapter and of its option, for errors.
 *
 * @example
 * ```ts
 * import { TlsOptions } from "@requeue/core/adapter-kit"
 * import { Result } from "effect"
 *
 * Result.isFailure(TlsOptions.decode("acme", "tls", { serverName: "host" })) // => true
 * ```
 */
export const decode = (broker: string, option: string, tls: unknown): Result.Result<Tls, ConfigurationError> => {
  const refuse = (field: string, detail: string, remedy: string) =>
    Result.fail(new ConfigurationError({ field, detail, remedy, broker }))
  if (typeof tls !== "object" || tls === null) return refuse(option, "must be an object", "Give ca, cert and key")
  const decoded = decoder(broker, fields)(tls)
  if (Result.isFailure(decoded)) {
    const { detail, field, remedy } = decoded.failure
    return refuse(
      `${option}.${field}`,
      detail,
      /^(Use|Did|Give) /.test(remedy) ? remedy : "See the TLS options of node:tls"
    )
  }
  const given = decoded.success as Tls // All of them are of their kinds.
  const twice = materials.find((name) => given[name] !== undefined && given[`${name}File`] !== undefined)
  if (twice !== undefined) return refuse(`${option}.${twice}File`, `${twice} is given as well`, "Leave one of them out")
  const [cert, key] = (["cert", "key"] as const).map((name) =>
    given[name] !== undefined ? name : given[`${name}File`] !== undefined ? `${name}File` : undefined
  )
  if ((cert === undefined) !== (key === undefined)) {
    const lacks = key === undefined ? "key" : "cert"
    const has = cert ?? key
    return refuse(`${option}.${has}`, `there is no ${lacks}`, `Give ${lacks} as well, or leave ${has} out`)
  }
  const { passphrase } = given
  return Result.succeed(typeof passphrase === "string" ? { ...given, passphrase: Redacted.make(passphrase) } : given)
}

/** Reads one of the options that are paths. */
const contentOf = (option: string, path: string, readFile: (path: string) => Buffer): Buffer => {
  let content: Buffer
  try {
    content = readFile(path)
  } catch (cause) {
    throw new Error(`TLS: ${option} cannot be read: ${summarize(cause).message}`, { cause })
  }
  if (isPem(content)) return content
  throw new Error(`TLS: ${option} ${path} has no PEM text, which begins with -----BEGIN`)
}

/**
 * Returns the options as `node:tls` and drivers take them: the passphrase in the clear, and the content of files, which
 * `readFile` reads. Call it for each connection, so a renewed certificate counts from the next connection.
 *
 * @throws Error when a file cannot be read or is not PEM
 */
export const toNode = (
  { caFile, certFile, keyFile, passphrase, ...material }: Tls,
  readFile: (path: string) => Buffer
) => ({
  ...material,
  ...(caFile === undefined ? {} : { ca: contentOf("caFile", caFile, readFile) }),
  ...(certFile === undefined ? {} : { cert: contentOf("certFile", certFile, readFile) }),
  ...(keyFile === undefined ? {} : { key: contentOf("keyFile", keyFile, readFile) }),
  ...(passphrase === undefined
    ? {}
    : { passphrase: typeof passphrase === "string" ? passphrase : Redacted.value(passphrase) })
})
