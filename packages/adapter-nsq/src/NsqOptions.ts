/**
 * The options of an NSQ broker: from code, from a config object, or from a URL.
 *
 * They are decoded and validated before any connection is opened. The secret is `Redacted` from then on: no error, log or
 * printed option shows it.
 */
import { ConfigurationError } from "@requeue/core/adapter-kit"
import { AdapterOptions } from "@requeue/core/schema"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Address from "./internal/address.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const addresses = (pattern: RegExp) => Schema.Array(Schema.String.check(Schema.isPattern(pattern)))

const day = 24 * 60 * 60 * 1000

const fields = {
  /** Further nsqd beside that of the URL, as `host` or `host:port`. Default: none. */
  nsqd: addresses(Address.pattern),
  /** The HTTP interface of each nsqd, in the same order, as `host:port` or a URL. Default: one port above. */
  nsqdHttp: addresses(Address.httpPattern),
  /** HTTP interfaces of nsqlookupd, as `host:port` or a URL. Default: none. */
  lookupd: addresses(Address.httpPattern),
  /** Milliseconds between two requests to nsqlookupd, spread by a fifth. Default: 15000. */
  lookupdInterval: between(100, 3_600_000),
  /** The channel of queues that name none. Default: `requeue`. */
  channel: Schema.String.check(Schema.isPattern(/^[a-zA-Z0-9_-]{1,64}$/)),
  /** Compression of connections, if nsqd offers it. Default: `none`. */
  compression: Schema.Literals(["none", "deflate", "snappy"]),
  /** The name of this program in nsqd's statistics. Default: `requeue-nsq`. */
  userAgent: Schema.NonEmptyString,
  /** Milliseconds between two heartbeats. A connection without 2.5 of them is made again. Default: 10000. */
  heartbeat: between(1000, 60_000),
  /** Milliseconds that one attempt to connect may take. Default: 10000. */
  connectTimeout: between(100, 120_000),
  /** Milliseconds that an HTTP request may take, and a settlement until it has left this process. Default: 10000. */
  requestTimeout: between(100, 120_000),
  /** Milliseconds that a publish may take, with its wait for a connection. Default: 10000. */
  publishTimeout: between(100, 120_000),
  /** Milliseconds before the second attempt to connect again; the first is at once. Default: 100. */
  reconnectFirst: between(1, 60_000),
  /** Milliseconds that no pause between two attempts exceeds. Default: 5000. */
  reconnectMax: between(1, 120_000),
  /** The lease of a delivery in milliseconds, at least 1000. Default: that of nsqd. */
  messageTimeout: between(1000, day),
  /** Milliseconds for which nsqd may hold back a message to send it with others. Default: 25. */
  outputBufferTimeout: between(1, 60_000),
  /** Messages that may await their confirmation; further ones wait. Default: 1000. */
  maxUnconfirmed: between(1, 65_535),
  /** `exact` makes every retry a copy, with history and due time. Default: `native`, which is `REQ`. */
  retry: Schema.Literals(["native", "exact"]),
  /** `never` sends bare bodies, without id and headers. Default: `always`. */
  envelope: Schema.Literals(["always", "never"]),
  /** On how many nsqd a message is stored that is sent, 1 or 2. Default: 1. */
  publishTo: Schema.Literals([1, 2]),
  /** Whether topics and channels are made before they are used. Default: `true`. */
  create: Schema.Boolean,
  /** Whether the HTTP interface of nsqd is used. Default: `true`. */
  http: Schema.Boolean,
  /** The longest delay of nsqd in milliseconds. Default: nsqd is asked; a lower one of nsqd counts. */
  maxReqTimeout: between(1, day),
  /** The largest message of nsqd in bytes. Default: nsqd is asked; a lower one of nsqd counts. */
  maxMsgSize: between(8192, 1024 * 1024 * 1024),
  /** The largest `MPUB` of nsqd in bytes. Default: nsqd is asked; a lower one of nsqd counts. */
  maxBodySize: between(8192, 1024 * 1024 * 1024)
}

type Fields = { readonly [K in keyof typeof fields]: (typeof fields)[K]["Type"] }

/** Options of TLS, with their meaning in `node:tls`. */
export interface Tls {
  readonly ca?: string | Buffer | Array<string | Buffer> | undefined
  readonly cert?: string | Buffer | undefined
  readonly key?: string | Buffer | undefined
  readonly passphrase?: Redacted.Redacted | undefined
  readonly servername?: string | undefined
  readonly rejectUnauthorized?: boolean | undefined
}

/** The options of a broker. None is needed. All can be in a URL's query too, except certificates. */
export interface Options extends Partial<Fields> {
  /** `nsq://:secret@host:port?lookupd=host:port`. Default: `nsq://127.0.0.1:4150`, unless `nsqd` or `lookupd` is given. */
  readonly url?: string | URL | Redacted.Redacted | undefined
  /** The secret for `--auth-http-address`. Default: the password of the URL. */
  readonly authSecret?: string | Redacted.Redacted | undefined
  /** `true` for TLS with the system's authorities. Default: no TLS. */
  readonly tls?: boolean | Tls | undefined
}

/** Decoded options with their defaults. Limits that are `undefined` are asked of nsqd. */
export interface Settings extends Omit<
  Fields,
  "nsqd" | "nsqdHttp" | "lookupd" | "http" | "messageTimeout" | "maxReqTimeout" | "maxMsgSize" | "maxBodySize"
> {
  /** The nsqd of the URL and of the option. */
  readonly nsqd: ReadonlyArray<Address.Address>
  /** Addresses of nsqlookupd's HTTP interface. */
  readonly lookupd: ReadonlyArray<string>
  /** Whether the HTTP interface of nsqd is used. */
  readonly http: boolean
  readonly secret: Redacted.Redacted | undefined
  readonly tls: Tls | undefined
  readonly messageTimeout: number | undefined
  readonly maxReqTimeout: number | undefined
  readonly maxMsgSize: number | undefined
  readonly maxBodySize: number | undefined
}

const defaults = {
  lookupdInterval: 15_000,
  channel: "requeue",
  compression: "none",
  userAgent: "requeue-nsq",
  heartbeat: 10_000,
  connectTimeout: 10_000,
  requestTimeout: 10_000,
  publishTimeout: 10_000,
  reconnectFirst: 100,
  reconnectMax: 5000,
  outputBufferTimeout: 25,
  maxUnconfirmed: 1000,
  retry: "native",
  envelope: "always",
  publishTo: 1,
  create: true,
  http: true
} as const satisfies Partial<Fields>

const decodeFields = AdapterOptions.decoder("nsq", fields)

const refuse = (field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "nsq" })

/** A secret of digits only may be a number in a config file. */
const isText = (given: unknown): boolean =>
  given === undefined || typeof given === "string" || Redacted.isRedacted(given)

const isTls = (given: unknown): boolean =>
  given === undefined || typeof given === "boolean" || Predicate.isObject(given)

/** Decodes options. No error shows a secret. */
export const decode = (options: Options = {}): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { authSecret, tls, url, ...rest } = options
  if (!isText(authSecret)) return Result.fail(refuse("authSecret", "must be text", "Write it in quotes"))
  if (!isTls(tls)) return Result.fail(refuse("tls", "must be true, false or certificates", "Give ca, cert and key"))
  const parsed = url === undefined ? nowhere : Address.parse(url)
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  const { parameters, secret } = parsed.success
  const { tls: inQuery, ...query } = parameters
  if (inQuery !== undefined && typeof inQuery !== "boolean") {
    return Result.fail(refuse("tls", "in a URL it is true or false", "Give certificates in code"))
  }
  const decoded = decodeFields(query, rest)
  if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
  const { lookupd = [], nsqd: listed = [], nsqdHttp, ...values } = decoded.success
  const nsqd = parsed.success.nsqd === undefined ? listed : [parsed.success.nsqd, ...listed]
  const some = nsqd.length === 0 && lookupd.length === 0 ? ["127.0.0.1:4150"] : nsqd
  const usesHttp = values.http ?? true
  const password = authSecret ?? (secret === "" ? undefined : secret)
  const settings: Settings = {
    ...defaults,
    messageTimeout: undefined,
    maxReqTimeout: undefined,
    maxMsgSize: undefined,
    maxBodySize: undefined,
    ...values,
    nsqd: some.map((text, index) => Address.toAddress(text, nsqdHttp?.[index], usesHttp)),
    lookupd: lookupd.map((text) => Address.toHttp(text, 4161)),
    secret: typeof password === "string" ? Redacted.make(password) : password,
    tls: toTls(tls ?? inQuery)
  }
  const conflict = contradiction(settings, nsqdHttp)
  return conflict === undefined ? Result.succeed(settings) : Result.fail(conflict)
}

const nowhere: ReturnType<typeof Address.parse> = Result.succeed({ nsqd: undefined, secret: "", parameters: {} })

const toTls = (tls: boolean | Tls | undefined): Tls | undefined => (tls === true ? {} : tls === false ? undefined : tls)

const contradiction = (
  settings: Settings,
  nsqdHttp: ReadonlyArray<string> | undefined
): ConfigurationError.ConfigurationError | undefined => {
  if (settings.reconnectMax < settings.reconnectFirst) {
    return refuse("reconnectMax", "it is less than reconnectFirst", "Set it to reconnectFirst or more")
  }
  if (nsqdHttp !== undefined && nsqdHttp.length !== settings.nsqd.length) {
    const detail = `${nsqdHttp.length} addresses for ${settings.nsqd.length} nsqd`
    return refuse("nsqdHttp", detail, "Give one for each nsqd, in the same order")
  }
  if (settings.publishTo === 2 && settings.lookupd.length === 0 && settings.nsqd.length < 2) {
    return refuse("publishTo", "there is one nsqd only", "Give a second one in nsqd, or lookupd")
  }
  return undefined
}
