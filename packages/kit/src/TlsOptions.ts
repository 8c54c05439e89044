/**
 * Decodes TLS options. It is strict, because a misspelt option would make a connection less secure.
 *
 * When to use: in an adapter whose driver takes the options of `node:tls`.
 */
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { ConfigurationError, Failure, OptionKind } from "@requeue/core/port"
import { decoder } from "./AdapterOptions.ts"

/** TLS options, as `node:tls` takes them. https://nodejs.org/api/tls.html#tlscreatesecurecontextoptions */
export interface Tls {
  /** Certificates of trusted authorities, as PEM. Default: the authorities that Node.js trusts. */
  readonly ca?: string | Buffer | Array<string | Buffer> | undefined
  /** The path of a file with certificates of trusted authorities, read for each connection. Default: none. */
  readonly caFile?: string | undefined
  /** The client's certificate, as PEM. Requires `key` or `keyFile`. Default: none. */
  readonly cert?: string | Buffer | undefined
  /** The path of a file with the client's certificate, read for each connection. Default: none. */
  readonly certFile?: string | undefined
  /** The client's private key, as PEM. Requires `cert` or `certFile`. Default: none. */
  readonly key?: string | Buffer | undefined
  /** The path of a file with the client's private key, read for each connection. Default: none. */
  readonly keyFile?: string | undefined
  /** The client's certificate and key in one, as PKCS12. Default: none. */
  readonly pfx?: Buffer | undefined
  /** The passphrase of `key` or `pfx`. Default: none. */
  readonly passphrase?: string | Redacted.Redacted | undefined
  /** The name that the server's certificate must have. Default: the host of the connection. */
  readonly servername?: string | undefined
  /** Whether the server's certificate is checked. Default: `true`. */
  readonly rejectUnauthorized?: boolean | undefined
}

const materials = ["ca", "cert", "key"] as const

/** Whether a value is PEM. Node ignores anything else, such as a path, and then trusts other authorities than intended. */
const isPem = (value: unknown): boolean => textOf(value).includes("-----BEGIN ")

/** Returns text, or bytes as text; empty for anything else. */
const textOf = (value: unknown): string =>
  typeof value === "string" ? value : value instanceof Uint8Array ? new TextDecoder().decode(value) : ""

/** Returns the defect for which OpenSSL silently ignores an authority: its PEM markers do not begin lines. */
const lineFault = (value: unknown): string | undefined => {
  const text = textOf(value)
  if (/-----BEGIN [^-]*-----(?![ \t]*\r?\n)|\S-----(BEGIN|END) /.test(text)) return "its line breaks are missing"
  return /[ \t]-----(BEGIN|END) /.test(text) ? "its lines begin with spaces" : undefined
}

/** The remedy of such a defect. */
const lineRemedy =
  "Set the option to PEM text with line breaks and without indentation. If the text has \\n instead, as in a .env file, replace each \\n by a line break"

/** Returns the kind of text that was given instead of a path; `undefined` for a path. */
const pathFault = (value: unknown): string | undefined => {
  if (typeof value !== "string") return undefined
  if (isPem(value)) return "PEM text"
  if (value.startsWith("LS0tLS1CRUdJTi")) return "PEM text in base64"
  return /[\r\n]/.test(value) ? "text with line breaks" : undefined
}

const pem = (name: (typeof materials)[number], expected: string): OptionKind.OptionKind => ({
  expected,
  holds: (value) => [value].flat().every(isPem),
  remedy: (value) =>
    [value].flat().some((each) => typeof each === "string") ? `Set ${name}File to the path of a file` : undefined
})

const isText = (value: unknown): value is string => typeof value === "string"

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
 * Decodes TLS options. Fails for an option that is unknown or of the wrong kind, and for a certificate without a key or
 * a key without a certificate. `broker` and `option` are the names of the adapter and its option, for errors.
 *
 * @example
 * ```ts
 * import { TlsOptions } from "@requeue/kit"
 * import { Result } from "effect"
 *
 * Result.isFailure(TlsOptions.decode("acme", "tls", { serverName: "host" })) // => true
 * ```
 */
export const decode = (
  broker: string,
  option: string,
  tls: unknown
): Result.Result<Tls, ConfigurationError.ConfigurationError> => {
  const refuse = (field: string, detail: string, remedy: string) =>
    Result.fail(new ConfigurationError.ConfigurationError({ field, detail, remedy, broker }))
  if (typeof tls !== "object" || tls === null)
    return refuse(option, "must be an object", "Write an object such as { ca, cert, key }")
  for (const name of materials) {
    const file = `${name}File`
    const instead = pathFault(Reflect.get(tls, file))
    if (instead !== undefined)
      return refuse(`${option}.${file}`, `must be a path, got ${instead}`, `Set ${name} to the PEM text`)
    const fault = [Reflect.get(tls, name)].flat().filter(isPem).map(lineFault).find(isText)
    if (fault !== undefined) return refuse(`${option}.${name}`, fault, lineRemedy)
  }
  const decoded = decoder(broker, fields)(tls)
  if (Result.isFailure(decoded)) {
    const { detail, field, remedy } = decoded.failure
    return refuse(
      `${option}.${field}`,
      detail,
      /^(Use|Did|Set) /.test(remedy) ? remedy : "See the TLS options of node:tls"
    )
  }
  const options = decoded.success as Tls // All kinds are checked.
  const twice = materials.find((name) => options[name] !== undefined && options[`${name}File`] !== undefined)
  if (twice !== undefined)
    return refuse(`${option}.${twice}File`, `${twice} is given as well`, `Leave ${twice} or ${twice}File out`)
  const [cert, key] = (["cert", "key"] as const).map((name) =>
    options[name] !== undefined ? name : options[`${name}File`] !== undefined ? `${name}File` : undefined
  )
  if ((cert === undefined) !== (key === undefined)) {
    const lacks = key === undefined ? "key" : "cert"
    const has = cert ?? key
    return refuse(`${option}.${has}`, `there is no ${lacks}`, `Set ${lacks} as well, or leave ${has} out`)
  }
  const { passphrase } = options
  return Result.succeed(
    typeof passphrase === "string" ? { ...options, passphrase: Redacted.make(passphrase) } : options
  )
}

/** The longest path that an error shows, in characters. Longer text may be a misplaced secret. */
const longestPath = 255

/** Reads the file of an option. Errors have no cause, which would show the path. */
const contentOf = (option: string, path: string, readFile: (path: string) => Buffer): Buffer => {
  const fail = (detail: string): never => {
    throw new Error(`TLS: ${option} ${detail}`)
  }
  const instead = pathFault(path)
  if (instead !== undefined) return fail(`must be a path, got ${instead}`)
  const shown = path.length > longestPath ? `a path of ${path.length} characters` : path
  let content: Buffer
  try {
    content = readFile(path)
  } catch (cause) {
    return fail(`cannot be read: ${Failure.summarize(cause).message.replaceAll(path, shown)}`)
  }
  if (!isPem(content)) return fail(`${shown} has no PEM text, which begins with -----BEGIN`)
  const fault = lineFault(content)
  return fault === undefined ? content : fail(`${shown} has PEM text, but ${fault}`)
}

/** Errors of Node.js and OpenSSL when one side rejects the other's certificate, or does not use TLS. */
const refusals = /certificate|self.signed|altnames|CERT_|unknown ca|wrong version number/i

/** Errors of OpenSSL and {@link toNode}, and what to do; the first match counts. `$` is the name of the option. */
const remedies: ReadonlyArray<readonly [RegExp, string]> = [
  [/TLS: (\w+) cannot be read/, "Set $.<1> to the path of a file that this process may read"],
  [/TLS: (\w+) .*(has|must be a path, got)( no)? (PEM )?text/, "Set $.<1> to the path of a file of PEM text"],
  [/key values mismatch/i, "Set $.key or $.keyFile to the private key of the certificate in $.cert or $.certFile"],
  [
    /bad decrypt|interrupted or cancelled|mac verify failure|bad password|empty password/i,
    "Set $.passphrase to the passphrase of the private key, or of $.pfx"
  ],
  [
    // One wrong passphrase in 256 also causes this: it decrypts the key to invalid bytes.
    /DECODER routines|ASN1|asn1 encoding/,
    "Set $.key or $.keyFile to a whole private key in PEM, and $.passphrase to its passphrase if it has one"
  ],
  [/no start line/i, "Set $.cert or $.certFile to a certificate in PEM, not to a key"],
  [/not enough data|PKCS12/i, "Set $.pfx to the bytes of a PKCS12 file"]
]

/**
 * Returns the remedy for an error of {@link toNode}, or of Node.js about a certificate or key of these options; `undefined`
 * for other errors. `text` has the code and message of the error, and `option` is the name of the adapter's option.
 *
 * @example
 * ```ts
 * import { TlsOptions } from "@requeue/kit"
 *
 * TlsOptions.remedy("error:05800074:x509 certificate routines::key values mismatch", "tls")
 * // => "Set tls.key or tls.keyFile to the private key of the certificate in tls.cert or tls.certFile"
 * ```
 */
export const remedy = (text: string, option: string): string | undefined => {
  for (const [pattern, words] of remedies) {
    const found = pattern.exec(text)
    if (found !== null) return words.replaceAll("$", option).replace("<1>", found[1] ?? "")
  }
  return undefined
}

/**
 * Whether a connection failed because of certificates, keys or TLS itself: another attempt fails too, until a certificate or
 * these options change. A connection that ends during the handshake is not such an error.
 *
 * @example
 * ```ts
 * import { TlsOptions } from "@requeue/kit"
 *
 * TlsOptions.isMistake("DEPTH_ZERO_SELF_SIGNED_CERT self-signed certificate") // => true
 * TlsOptions.isMistake("Client network socket disconnected before secure TLS connection was established") // => false
 * ```
 */
export const isMistake = (text: string): boolean => refusals.test(text) || remedy(text, "tls") !== undefined

/**
 * Returns the options for `node:tls` and drivers: with the passphrase in clear text and the content of files,
 * which `readFile` reads. Call it for each connection, so a renewed certificate applies to the next one.
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
