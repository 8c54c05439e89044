/**
 * The options of an NSQ broker: from code, from a config object, or from a URL.
 *
 * They are validated before a connection is opened. The secret is then `Redacted`: no error, log or printed option
 * shows it.
 */
import { AsyncContext, ConfigurationError, type Delay, OptionKind } from "@requeue/core/port"
import { AdapterOptions, TlsOptions } from "@requeue/kit"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Address from "./internal/address.ts"
import { fields } from "./internal/fields.ts"
import * as Handshake from "./internal/handshake.ts"

type Fields = AdapterOptions.Values<typeof fields>

/** TLS options, as in `node:tls`. */
export type Tls = TlsOptions.Tls

/** The address of an nsqd to which the adapter connects. */
export interface Location {
  readonly host: string
  readonly port: number
  /** The port of nsqd's HTTP interface; 0 if nsqd has none. */
  readonly httpPort: number
}

/** An nsqd as nsqlookupd reports it: `host` is its `--broadcast-address`. */
export interface Discovered extends Location {
  /** The name of the machine on which nsqd runs. */
  readonly hostname: string
  /** The version of nsqd, such as `1.3.0`. */
  readonly version: string
}

/** The options of a broker, all optional. A URL's query accepts all of them except certificates and functions. */
export interface Options {
  /** Further nsqd, each as `host` or `host:port`. Default: none. */
  readonly nsqd?: Fields["nsqd"] | undefined
  /** HTTP interfaces of all nsqd, in the same order, each as `host:port` or a URL. Default: the port after the TCP port. */
  readonly nsqdHttp?: Fields["nsqdHttp"] | undefined
  /** HTTP interfaces of nsqlookupd, each as `host:port` or a URL. Default: none. */
  readonly lookupd?: Fields["lookupd"] | undefined
  /**
   * Time between requests to nsqlookupd, plus or minus 20 %. Range: 100 ms to 1 hour; a number means milliseconds.
   * Default: 15 seconds.
   */
  readonly lookupdInterval?: Delay.DurationInput | undefined
  /**
   * Channel of queues whose name has no channel. Range: 1 to 64 letters, digits, `.`, `_` and `-`, and `#ephemeral`. Default:
   * `requeue`.
   */
  readonly channel?: Fields["channel"] | undefined
  /** Whether `authSecret` may be sent to other machines without TLS. Default: `false`. */
  readonly authInClear?: Fields["authInClear"] | undefined
  /** Compression of connections, if nsqd offers it. Default: `none`. */
  readonly compression?: Fields["compression"] | undefined
  /** Name of this program in nsqd's statistics. Default: `requeue-nsq`. */
  readonly userAgent?: Fields["userAgent"] | undefined
  /**
   * Time between heartbeats. After 2.5 missing heartbeats, the adapter reconnects. Range: 1 second to 1 minute; a number means
   * milliseconds. Default: 10 seconds.
   */
  readonly heartbeat?: Delay.DurationInput | undefined
  /** Time limit of an attempt to connect. Range: 100 ms to 2 minutes; a number means milliseconds. Default: 10 seconds. */
  readonly connectTimeout?: Delay.DurationInput | undefined
  /**
   * Time limit of an HTTP request, and of writing a settlement to the connection. Range: 100 ms to 2 minutes; a number
   * means milliseconds. Default: 10 seconds.
   */
  readonly requestTimeout?: Delay.DurationInput | undefined
  /**
   * Time limit of a publish, including the wait for a connection. Range: 100 ms to 2 minutes; a number means milliseconds.
   * Default: 10 seconds.
   */
  readonly publishTimeout?: Delay.DurationInput | undefined
  /**
   * Pause before the second attempt to reconnect. The first has no pause. Range: 1 ms to 1 minute; a number means
   * milliseconds. Default: 100 ms.
   */
  readonly reconnectFirst?: Delay.DurationInput | undefined
  /** Longest pause between attempts to reconnect. Range: 1 ms to 2 minutes; a number means milliseconds. Default: 5 seconds. */
  readonly reconnectMax?: Delay.DurationInput | undefined
  /**
   * Time until nsqd redelivers an unsettled message, unless extended. Range: 1
   * second to 1 day; a number means milliseconds. Default: nsqd's.
   */
  readonly messageTimeout?: Delay.DurationInput | undefined
  /**
   * How long nsqd may hold back a message to send several together. Range: 1 ms to 1 minute; a number means milliseconds.
   * Default: 25 ms.
   */
  readonly outputBufferTimeout?: Delay.DurationInput | undefined
  /** Largest number of unconfirmed messages; further messages wait. Range: 1 to 65,535. Default: 1,000. */
  readonly maxUnconfirmed?: Fields["maxUnconfirmed"] | undefined
  /**
   * `native`: short retries use `REQ`. `exact`: each retry is
   * a copy with history and due time. Default: `native`.
   */
  readonly retry?: Fields["retry"] | undefined
  /**
   * Whether sends have an envelope; without it, ids and headers are lost. Default:
   * `always`.
   */
  readonly envelope?: Fields["envelope"] | undefined
  /** Which nsqd gets a message: the `first` that is up, or `all` in turn. Default: `first`. */
  readonly publishOver?: Fields["publishOver"] | undefined
  /** Number of nsqd that store each message. Default: 1. */
  readonly publishTo?: Fields["publishTo"] | undefined
  /** Whether the adapter creates topics and channels before use. Default: `true`. */
  readonly create?: Fields["create"] | undefined
  /** Whether the adapter uses nsqd's HTTP interface. Default: `true`. */
  readonly http?: Fields["http"] | undefined
  /**
   * Longest delay that nsqd accepts. Range: 1 ms to 1 day; a number means milliseconds. Default: what nsqd reports, which is also the upper limit.
   */
  readonly maxReqTimeout?: Delay.DurationInput | undefined
  /**
   * Largest message that nsqd accepts, in bytes. Range: 512 to 1,073,741,824. Default: what nsqd reports, which
   * is also the upper limit.
   */
  readonly maxMsgSize?: Fields["maxMsgSize"] | undefined
  /**
   * Largest `MPUB` that nsqd accepts, in bytes. Range: 1,024 to 1,073,741,824. Default: what nsqd reports, which is also the upper limit.
   */
  readonly maxBodySize?: Fields["maxBodySize"] | undefined
  /**
   * `nsq://:secret@host:port?lookupd=host:port`. Default: `nsq://127.0.0.1:4150`, unless `nsqd` or `lookupd` is given.
   */
  readonly url?: string | URL | Redacted.Redacted | undefined
  /** Secret for nsqd's `--auth-http-address`. Default: the URL's password. */
  readonly authSecret?: string | Redacted.Redacted | undefined
  /** `true`, or certificates and keys. With `tls`, the adapter refuses nsqd without TLS. Default: no TLS. */
  readonly tls?: boolean | Tls | undefined
  /** Certificates and keys for HTTP interfaces with `https:`. Default: those of `tls`. */
  readonly httpTls?: Tls | undefined
  /**
   * Function that corrects the address of an nsqd from nsqlookupd, or returns `undefined` to skip that nsqd. Default: the
   * reported address.
   */
  readonly resolveAddress?: ((found: Discovered) => Location | undefined) | undefined
}

/** Decoded options with their defaults. A limit that is `undefined` is reported by nsqd. */
export interface Settings extends Omit<
  Fields,
  "nsqd" | "nsqdHttp" | "lookupd" | "http" | "messageTimeout" | "maxReqTimeout" | "maxMsgSize" | "maxBodySize"
> {
  /** The nsqd of the URL and of the option. */
  readonly nsqd: ReadonlyArray<Address.Address>
  readonly lookupd: ReadonlyArray<Address.HttpInterface>
  /** Whether the HTTP interface of nsqd is used. */
  readonly http: boolean
  readonly secret: Redacted.Redacted | undefined
  readonly tls: Tls | undefined
  /** The TLS options of the HTTP interfaces of nsqd. */
  readonly httpTls: Tls
  readonly resolveAddress: Options["resolveAddress"]
  readonly messageTimeout: number | undefined
  readonly maxReqTimeout: number | undefined
  readonly maxMsgSize: number | undefined
  readonly maxBodySize: number | undefined
}

const defaults = {
  lookupdInterval: 15_000,
  channel: "requeue",
  authInClear: false,
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
  publishOver: "first",
  publishTo: 1,
  create: true,
  http: true
} as const satisfies Partial<Fields>

const decodeFields = AdapterOptions.decoder("nsq", fields, ["url", "authSecret", "tls", "httpTls", "resolveAddress"])

const refuse = (field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "nsq" })

/** Decodes the TLS options; returns `undefined` for no TLS. */
const decodeTls = (
  tls: unknown,
  option: "tls" | "httpTls"
): Result.Result<Tls | undefined, ConfigurationError.ConfigurationError> => {
  if (tls === undefined || (option === "tls" && tls === false)) return Result.succeed(undefined)
  return TlsOptions.decode("nsq", option, option === "tls" && tls === true ? {} : tls)
}

/** Decodes options. No error shows a secret. */
export const decode = (options: Options = {}): Result.Result<Settings, ConfigurationError.ConfigurationError> => {
  const { authSecret, httpTls: ofHttp, resolveAddress, tls: given, url, ...rest } = AsyncContext.bound(options)
  const notText = AdapterOptions.secretProblem("nsq", { authSecret })
  if (notText !== undefined) return Result.fail(notText)
  if (authSecret !== undefined && AdapterOptions.textOf(authSecret) === "") {
    return Result.fail(refuse("authSecret", "is empty", "Give the secret, or leave authSecret out"))
  }
  if (resolveAddress !== undefined && typeof resolveAddress !== "function") {
    const remedy = "Write resolveAddress: (found) => ({ ...found, host }) in code"
    return Result.fail(refuse("resolveAddress", "must be a function", remedy))
  }
  const parsed = url === undefined ? nowhere : Address.parse(url, ["tls", ...Object.keys(fields)])
  if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
  const { parameters, secret } = parsed.success
  const { tls: written, ...query } = parameters
  const inQuery = OptionKind.flag.read?.(written)
  if (inQuery !== undefined && typeof inQuery !== "boolean") {
    return Result.fail(refuse("tls", "in a URL it is true or false", "Give certificates in code"))
  }
  const decoded = decodeFields(query, rest)
  if (Result.isFailure(decoded)) return Result.fail(decoded.failure)
  const decodedTls = decodeTls(given ?? inQuery, "tls")
  if (Result.isFailure(decodedTls)) return Result.fail(decodedTls.failure)
  const tls = decodedTls.success
  const decodedHttpTls = decodeTls(ofHttp, "httpTls")
  if (Result.isFailure(decodedHttpTls)) return Result.fail(decodedHttpTls.failure)
  const { servername: _, ...shared } = tls ?? {}
  const httpTls = decodedHttpTls.success
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
    nsqd: some.map((text, index) =>
      Address.toAddress(text, nsqdHttp?.[index], usesHttp ? (httpTls ?? tls ?? {}) : undefined)
    ),
    lookupd: lookupd.map((text) => ({ url: Address.toHttp(text, 4161), tls: httpTls ?? shared })),
    secret: typeof password === "string" ? Redacted.make(password) : password,
    tls,
    httpTls: httpTls ?? tls ?? {},
    resolveAddress
  }
  const conflict = contradiction(settings, nsqdHttp)
  return conflict === undefined ? Result.succeed(settings) : Result.fail(conflict)
}

const nowhere: ReturnType<typeof Address.parse> = Result.succeed({ nsqd: undefined, secret: "", parameters: {} })

const contradiction = (
  settings: Settings,
  nsqdHttp: ReadonlyArray<string> | undefined
): ConfigurationError.ConfigurationError | undefined => {
  if (settings.reconnectMax < settings.reconnectFirst) {
    return refuse("reconnectMax", "the value is less than reconnectFirst", "Set reconnectMax to reconnectFirst or more")
  }
  if (nsqdHttp !== undefined && nsqdHttp.length !== settings.nsqd.length) {
    const detail = `${nsqdHttp.length} addresses for ${settings.nsqd.length} nsqd`
    return refuse("nsqdHttp", detail, "Give one address for each nsqd, in the same order")
  }
  if (settings.resolveAddress !== undefined && settings.lookupd.length === 0) {
    return refuse(
      "resolveAddress",
      "there is no nsqlookupd whose answers it could change",
      "Give lookupd, or leave it out"
    )
  }
  for (const { host } of settings.nsqd) {
    const detail = Handshake.refusalOf(settings, host)
    if (detail !== undefined) return refuse("authSecret", detail, Handshake.remedyInClear)
  }
  if (settings.publishTo === 2 && settings.lookupd.length === 0 && settings.nsqd.length < 2) {
    return refuse("publishTo", "there is one nsqd only", "Add a second nsqd to the option nsqd, or set lookupd")
  }
  return undefined
}
