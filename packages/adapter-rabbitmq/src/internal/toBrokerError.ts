/** From an error of the driver or the server to a `BrokerError` with a remedy. Pure. */
import { BrokerError, Failure } from "@requeue/core/port"
import { TlsOptions } from "@requeue/kit"

/** The operation that failed, as its error names it. */
export interface ErrorContext {
  readonly operation: string
  readonly queue?: string | undefined
  readonly vhost?: string | undefined
}

/** The part of a `BrokerError` that the text of the failure decides. */
interface Diagnosis {
  readonly reason: BrokerError.Reason
  readonly remedy?: string | undefined
}

const remedies = {
  login: "Check user name and password; by default, guest may only log in from localhost",
  certificate:
    "Check the client certificate in tls: the server must trust its authority, read a user's name from it (ssl_cert_login_from), " +
    "and have that user; it must enable rabbitmq_auth_mechanism_ssl",
  mechanism:
    'Enable the mechanism on the server (auth_mechanisms), or set auth: "plain" or "external" to one that it has',
  vhost: "Create the virtual host and give the user permissions in it, or name another one in the URL",
  unopened:
    "Create the virtual host and give the user permissions in it; where both are there, raise max-connections of the virtual " +
    "host or the user, or end programs that have connections open",
  limit: "Raise that limit on the server, or end programs that have connections and channels open",
  full: "Raise that limit, as max-queues by rabbitmqctl set_vhost_limits, or delete what is not needed there",
  permission: "Grant configure, write and read on the names involved: rabbitmqctl set_permissions",
  reserved: "Use another name: only the server makes queues and exchanges whose names begin with amq.",
  reply:
    'Answer a request without declaring its queue: send(queue, body, { native: RabbitMqNative.make({ exchange: "", ' +
    "routingKey: replyTo }) })",
  alone: "Somebody else consumes it exclusively: end that consumer, or consume another queue",
  mismatch: "The object exists with other arguments: delete it, or set another prefix",
  missing: `Create it, or let a consumer or a send with assert: "declare" make it`,
  reach: "Check host, port and TLS; is the server running?",
  protocol: "Check host and port: something answers there that does not speak AMQP 0-9-1",
  size: "Send a smaller body, or raise max_message_size of the server",
  user: "Leave userId out, or set it to the user that logs in, or give that user the tag impersonator",
  headers: "Send fewer or shorter headers, or raise frame_max of the server",
  channels: "Raise channel_max of the server, or start fewer consumers on this broker and the others on another one",
  encoding: "Send headers as text, and properties of at most 255 bytes",
  plain: "The server speaks no TLS on this port: name the one of amqps:, 5671 by default",
  reset: "Check that the server runs, and that this is its port of AMQP 0-9-1; if it wants TLS, write amqps:",
  secure: "Check that the port is one of AMQP 0-9-1; if it wants TLS, write amqps:",
  tls: "Check the certificate authority, the host name and the client certificate in tls"
} as const

/** The remedy of what was under way when its channel or connection was lost. */
export const lostRemedy = "Try again, a send with the same id: the connection is reopened automatically"

/** The remedy of a handler that was longer than the server allows. */
export const timeoutRemedy =
  "Set handlerTimeout below the server's consumer_timeout and the queue's x-consumer-timeout, or raise them"

/**
 * The remedy of a declaration that was refused. An exchange or a queue that people name can be used as it is, unless it
 * keeps delays.
 */
const ofMismatch = (text: string): string => {
  const exchange = /inequivalent arg .* for exchange '([^']+)' in vhost/s.exec(text)?.[1]
  if (exchange !== undefined && !/\.v1\./.test(exchange))
    return `Set exchanges["${exchange}"].assert: "passive" to use the exchange as it is, or delete it`
  const queue = /inequivalent arg .* for queue '([^']+)' in vhost/s.exec(text)?.[1]
  return queue === undefined || /\.v1\.[qc]\./.test(queue)
    ? remedies.mismatch
    : `Set queues["${queue}"].assert: "passive" to use the queue as it is, or delete it and start again; ` +
        `a delay queue is deleted, or named otherwise by names`
}

/** The remedy for something that is not there. Exchanges that people name can be declared. */
const ofMissing = (text: string): string => {
  const exchange = /no exchange '([^']+)' in vhost/s.exec(text)?.[1]
  return exchange === undefined || /\.v1\./.test(exchange)
    ? remedies.missing
    : `Create it, or have it declared: exchanges["${exchange}"]: { type: "topic", assert: "declare" }`
}

/** A refused declaration and a refused publication have the same code. */
const byPrecondition = (text: string): Diagnosis => {
  if (/message size \d+ is larger than/.test(text)) return { reason: "BodyTooLarge", remedy: remedies.size }
  if (/delivery acknowledgement .*timed out/.test(text)) return { reason: "LeaseLost", remedy: timeoutRemedy }
  if (/invalid (message|expiration)/.test(text)) return { reason: "Unsupported" }
  if (/\b(queue|exchange) limit\b.* is reached/s.test(text)) return { reason: "AccessRefused", remedy: remedies.full }
  if (/user_id property/.test(text)) return { reason: "Unsupported", remedy: remedies.user }
  return { reason: "QueueMismatch", remedy: ofMismatch(text) }
}

/** By a certificate there is neither a user name nor a password. */
const ofLogin = (text: string): Diagnosis => ({
  reason: "AccessRefused",
  remedy: /mechanism EXTERNAL/.test(text) ? remedies.certificate : remedies.login
})

/** A login, a permission, or a queue that is read by another consumer alone. */
const byAccess = (text: string): Diagnosis => {
  const isLogin = /login was refused|authentication/i.test(text)
  if (isLogin) return ofLogin(text)
  if (/reserved prefix/.test(text)) return { reason: "AccessRefused", remedy: remedies.reserved }
  return { reason: "AccessRefused", remedy: /in exclusive use/.test(text) ? remedies.alone : remedies.permission }
}

/** By the reply codes of AMQP 0-9-1. https://www.rabbitmq.com/amqp-0-9-1-reference#constants */
const byCode = (code: number, text: string): Diagnosis | undefined => {
  switch (code) {
    case 403:
      return byAccess(text)
    case 404:
      return { reason: "QueueMissing", remedy: ofMissing(text) }
    case 405:
      if (/single active consumer/.test(text)) return { reason: "AccessRefused", remedy: remedies.alone }
      return { reason: "QueueMismatch", remedy: "The queue belongs to another connection alone: use another name" }
    case 406:
      return byPrecondition(text)
    case 311:
      return { reason: "BodyTooLarge", remedy: remedies.size }
    case 320:
      return { reason: "ConnectionLost", remedy: lostRemedy }
    case 530:
      return { reason: "AccessRefused", remedy: /\blimit\b/.test(text) ? remedies.limit : remedies.vhost }
    case 540:
      return { reason: "Unsupported" }
    default:
      return undefined
  }
}

const patterns: ReadonlyArray<readonly [RegExp, Diagnosis]> = [
  [/^NOT_ALLOWED - vhost .* a limit of connections/, { reason: "AccessRefused", remedy: remedies.unopened }],
  [/^SASL mechanism/, { reason: "AccessRefused", remedy: remedies.mechanism }],
  [/^No channels left/, { reason: "AccessRefused", remedy: remedies.channels }],
  [/ACCESS[_-]REFUSED.*mechanism EXTERNAL/i, { reason: "AccessRefused", remedy: remedies.certificate }],
  [/ACCESS[_-]REFUSED.*(login|authentication)/i, { reason: "AccessRefused", remedy: remedies.login }],
  [/ACCESS[_-]REFUSED/i, { reason: "AccessRefused", remedy: remedies.permission }],
  [/NOT[_-]ALLOWED.*vhost|vhost .*not found/i, { reason: "AccessRefused", remedy: remedies.vhost }],
  [/inequivalent arg|PRECONDITION[_-]FAILED/i, { reason: "QueueMismatch", remedy: remedies.mismatch }],
  [/NOT[_-]FOUND/i, { reason: "QueueMissing", remedy: remedies.missing }],
  [/wrong version number/i, { reason: "ConnectionFailed", remedy: remedies.plain }],
  [/closed abruptly during opening handshake/i, { reason: "ConnectionFailed", remedy: remedies.secure }],
  [/certificate|self.signed|SSL|TLS|altnames/i, { reason: "ConnectionFailed", remedy: remedies.tls }],
  [/ECONNRESET/, { reason: "ConnectionFailed", remedy: remedies.reset }],
  [/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ETIMEDOUT/, { reason: "ConnectionFailed", remedy: remedies.reach }],
  // The driver takes an HTTP server's answer for a frame.
  [/^(Frame size|Invalid frame|Unknown frame)/, { reason: "ConnectionFailed", remedy: remedies.protocol }],
  [/message nacked/, { reason: "QueueFull", remedy: "Make room in the queue, or raise its limit" }],
  [
    /Channel clos|channel closed|Channel ended|Connection clos|socket clos|Heartbeat/i,
    { reason: "ConnectionLost", remedy: lostRemedy }
  ]
]

/** The driver's only words when the server closes a connection that has logged in and is not open yet. */
const unopened = /Expected ConnectionOpenOk; got <ConnectionClose/

/** The words of an error, its code and those of its inner errors included. */
export const textOf = (cause: unknown): string => {
  const { message } = Failure.summarize(cause)
  if (!(cause instanceof Error)) return message
  const code = "code" in cause && typeof cause.code === "string" ? `${cause.code} ` : ""
  // Several addresses may have been tried: the outer error then says nothing.
  const inner = cause instanceof AggregateError ? cause.errors.map(textOf).join("; ") : ""
  return `${code}${message}${inner}`
}

/**
 * The server's own words, where the text quotes them, without a full stop: a sentence follows. They name queues, users and
 * virtual hosts, never a password.
 */
const detailOf = (text: string): string => (/"([A-Z_-]+ - .*)"/s.exec(text)?.[1] ?? text.trim()).replace(/\.$/, "")

/** The reason and the remedy follow from the text of the cause; `otherwise` is the reason where the text is unknown. */
export const toBrokerError = (
  cause: unknown,
  { operation, queue, vhost }: ErrorContext,
  otherwise: BrokerError.Reason = "ConnectionLost"
): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  const text = unopened.test(textOf(cause))
    ? `NOT_ALLOWED - vhost ${vhost}: it does not exist, the user may not enter it, or a limit of connections is reached`
    : textOf(cause)
  const code = /\b(311|320|403|404|405|406|530|540) \(/.exec(text)?.[1]
  const isReply = /'amq\.rabbitmq\.reply-to/.test(text)
  const ofTls = operation === "connect" ? TlsOptions.remedy(text, "tls") : undefined
  const { reason, remedy: usual } = (ofTls === undefined
    ? undefined
    : { reason: "ConnectionFailed" as const, remedy: ofTls }) ??
    (code === undefined ? undefined : byCode(Number(code), text)) ??
    patterns.find(([pattern]) => pattern.test(text))?.[1] ?? {
      reason: otherwise,
      remedy: otherwise === "ConnectionLost" ? lostRemedy : undefined
    }
  const remedy = isReply ? remedies.reply : usual
  const isMisconfigured = operation === "connect" && (TlsOptions.isMistake(text) || usual === remedies.protocol)
  const detail = detailOf(text)
  return new BrokerError.BrokerError({ broker: "rabbitmq", operation, queue, reason, detail, remedy, isMisconfigured })
}

/** The start of the driver's error for headers that do not fit. */
const overflow = "Encoded field table"

/** The text of an error for headers and properties that do not fit into a frame of the connection. */
export const tooLarge = (size: number, frameMax: number): string =>
  `${overflow}: headers and properties need a frame of ${size} bytes, and frame_max of this connection is ${frameMax}`

/** Whether a copy with shorter headers may be taken where this one was refused. */
export const isOfHeaders = ({ detail, reason }: BrokerError.BrokerError): boolean =>
  reason === "BodyTooLarge" && detail.startsWith(overflow)

/**
 * The error of a message that could not be encoded: nothing of it was written, and it never will be, unless the channel
 * is closed. Foreign headers may be part of the text, so that the text decides nothing.
 */
export const ofEncoding = (cause: unknown, queue: string): BrokerError.BrokerError => {
  const { message, name } = Failure.summarize(cause)
  const error = (reason: BrokerError.Reason, detail: string, remedy?: string) =>
    new BrokerError.BrokerError({ broker: "rabbitmq", operation: "publish", queue, reason, detail, remedy })
  if (name === "IllegalOperationError") return error("ConnectionLost", message, lostRemedy)
  return name === "RangeError" && message.startsWith(overflow)
    ? error("BodyTooLarge", message, remedies.headers)
    : error("Unsupported", `a header or property cannot be encoded: ${message}`, remedies.encoding)
}
