/**
 * Options of TLS, decoded as strictly as all others: one that is misspelt leaves a connection less secure.
 *
 * When to use: in an adapter whose driver takes the options of `node:tls`.
 */
import { readFileSync } from "node:fs"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { ConfigurationError } from "../options/ConfigurationError.ts"
import { summarize } from "../policy/Failure.ts"
import * as OptionKind from "../options/OptionKind.ts"
import { decoder } from "./AdapterOptions.ts"

/** Options of TLS, as `node:tls` takes them. https://nodejs.org/api/tls.html#tlscreatesecurecontextoptions */
export interface Tls {
  /** Certificates of the authorities that are trusted, as PEM. Default: those of Node.js. */
  readonly ca?: string | Buffer | Array<string | Buffer> | undefined
  /** The path of a file of such certificates. Default: none. */
  readonly caFile?: string | undefined
  /** The client's own certificate, as PEM. Goes with `key`. Default: none. */
  readonly cert?: string | Buffer | undefined
  /** The path of a file with the client's certificate. Default: none. */
  readonly certFile?: string | undefined
  /** The client's private key, as PEM. Goes with `cert`. Default: none. */
  readonly key?: string | Buffer | undefined
  /** The path of a file with the client's private key. Default: none. */
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

/** Node ignores text that is not PEM, such as a path: then no authority is trusted, or the default ones. */
const isPem = (value: unknown): boolean =>
  typeof value === "string" ? value.includes("-----BEGIN ") : value instanceof Uint8Array

const pem = (name: string, expected: string): OptionKind.OptionKind => ({
  expected,
  holds: (value) => [value].flat().every(isPem),
  remedy: (value) => (typeof value === "string" ? `Give the path of a file as ${name}File` : undefined)
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

interface Refusal {
  readonly field: string
  readonly detail: string
  readonly remedy: string
}

/** Reads the files of options, so that `ca`, `cert` and `key` are all that is left. */
const readFiles = ({ caFile, certFile, keyFile, ...given }: Tls): Result.Result<Tls, Refusal> => {
  let tls: Tls = given
  for (const [name, path] of Object.entries({ ca: caFile, cert: certFile, key: keyFile })) {
    if (path === undefined) continue
    const field = `${name}File`
    if (name in given)
      return Result.fail({ field, detail: `${name} is given as well`, remedy: "Leave one of them out" })
    try {
      tls = { ...tls, [name]: readFileSync(path) }
    } catch (cause) {
      const detail = `the file cannot be read: ${summarize(cause).message}`
      return Result.fail({ field, detail, remedy: "Check its path, which is relative to the working directory" })
    }
    if (!String(Reflect.get(tls, name)).includes("-----BEGIN ")) {
      return Result.fail({
        field,
        detail: `${path} has no PEM text`,
        remedy: "Give a file that begins with -----BEGIN"
      })
    }
  }
  return Result.succeed(tls)
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
  const read = readFiles(Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)))
  if (Result.isFailure(read)) return refuse(`${option}.${read.failure.field}`, read.failure.detail, read.failure.remedy)
  const given = read.success
  if ((given.cert === undefined) !== (given.key === undefined)) {
    const [has, lacks] = given.key === undefined ? ["cert", "key"] : ["key", "cert"]
    return refuse(`${option}.${has}`, `there is no ${lacks}`, `Give ${lacks} as well, or leave ${has} out`)
  }
  const { passphrase } = given
  return Result.succeed(typeof passphrase === "string" ? { ...given, passphrase: Redacted.make(passphrase) } : given)
}

/** The options with the passphrase in the clear, for `node:tls` and for drivers. */
export const toNode = ({ passphrase, ...material }: Tls) => ({
  ...material,
  ...(passphrase === undefined
    ? {}
    : { passphrase: typeof passphrase === "string" ? passphrase : Redacted.value(passphrase) })
})
