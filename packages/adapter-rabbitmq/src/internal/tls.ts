/** The options of TLS. They are decoded as strictly as all others: one that is misspelt leaves a connection less secure. */
import { ConfigurationError } from "@requeue/core/adapter-kit"
import { AdapterOptions } from "@requeue/core/schema"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

/** TLS options, as `node:tls` takes them. https://nodejs.org/api/tls.html#tlscreatesecurecontextoptions */
export interface Tls {
  readonly ca?: string | Buffer | Array<string | Buffer> | undefined
  readonly cert?: string | Buffer | undefined
  readonly key?: string | Buffer | undefined
  readonly pfx?: Buffer | undefined
  readonly passphrase?: Redacted.Redacted | undefined
  readonly servername?: string | undefined
  readonly rejectUnauthorized?: boolean | undefined
}

const Pem = Schema.Union([Schema.String, Schema.Uint8Array])

const fields = {
  ca: Schema.Union([Pem, Schema.mutable(Schema.Array(Pem))]),
  cert: Pem,
  key: Pem,
  pfx: Schema.Uint8Array,
  passphrase: Schema.Redacted(Schema.String),
  servername: Schema.NonEmptyString,
  rejectUnauthorized: Schema.Boolean
}

const decodeFields = AdapterOptions.decoder("rabbitmq", fields)

const refuse = (field: string, detail: string, remedy: string): ConfigurationError.ConfigurationError =>
  new ConfigurationError.ConfigurationError({ field, detail, remedy, broker: "rabbitmq" })

/** The error of TLS options: one that is unknown or of the wrong kind, or all of them where there is no TLS. */
export const refusal = (tls: unknown, secure: boolean): ConfigurationError.ConfigurationError | undefined => {
  if (tls === undefined) return undefined
  if (typeof tls !== "object" || tls === null) return refuse("tls", "must be an object", "Give ca, cert and key")
  const decoded = decodeFields(tls)
  if (Result.isFailure(decoded)) {
    const { detail, field, remedy } = decoded.failure
    return refuse(`tls.${field}`, detail, detail === "unknown option" ? remedy : "See the TLS options of node:tls")
  }
  return secure || Object.keys(tls).length === 0
    ? undefined
    : refuse("tls", "the URL is amqp:, which has no TLS", "Write amqps: in the URL")
}
