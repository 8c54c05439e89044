/** Converts an error of the driver or the server to a `BrokerError` with a remedy. Pure. */
import { BrokerError, Failure } from "@requeue/core/port"
import { TlsOptions } from "@requeue/kit"

/** The operation that failed. */
export interface ErrorContext {
  readonly operation: string
  readonly queue?: string | undefined
  readonly vhost?: string | undefined
  /** `host:port` of the server, for an attempt to connect. */
  readonly node?: string | undefined
}

/** The part of a `BrokerError` that follows from the text of the failure. */
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
    'Enable the mechanism on the server (auth_mechanisms), or set auth to "plain" or "external", whichever the server has',
  vhost: "Create the virtual host and give the user permissions in it, or name another one in the URL",
  unopened:
    "Create the virtual host and give the user permissions in it. If both exist, raise max-connections of the virtual " +
    "host or the user, or end programs that have connections open",
  limit: "Raise that limit on the server, or end programs that have connections and channels open",
  full: "Raise that limit, such as max-queues by rabbitmqctl set_vhost_limits, or delete objects that you do not need",
  permission: "Grant configure, write and read on the names involved: rabbitmqctl set_permissions",
  reserved: "Use another name: only the server makes queues and exchanges whose names begin with amq.",
  reply:
    'Answer a request without declaring its queue: send(queue, body, { native: RabbitMqNative.make({ exchange: "", ' +
    "routingKey: replyTo }) })",
  alone: "Another consumer has the queue exclusively: end that consumer, or consume another queue",
  mismatch: "The object exists with other arguments: delete it, or set another prefix",
  missing: `Create the queue or exchange, or let a consumer or a send with assert: "declare" create it`,
  reach: "Check host, port and TLS; is the server running?",
  protocol:
    "Write the port of AMQP 0-9-1, 5672 by default: another protocol answers on this port. Port 15672 is for HTTP",
  size: "Send a smaller body, or raise max_message_size of the server",
  user: "Leave userId out, or set it to the user that logs in, or give that user the tag impersonator",
  headers: "Send fewer or shorter headers, or raise frame_max of the server",
  channels: "Raise channel_max of the server, or start some of the consumers on another broker",
  encoding: "Send headers as text, and properties of at most 255 bytes",
  plain: "The server does not support TLS on this port: write the port for amqps:, 5671 by default",
  reset: "Check that the server runs, and that this is its port for AMQP 0-9-1. If the port requires TLS, write amqps:",
  secure:
    "Write the port of AMQP 0-9-1, 5672 by default: port 15672 is for HTTP. If the port requires TLS, write amqps:",
  bundle:
    // In two parts, because the check of imports would find an import.
    "Give the bundle a require: begin it with import { createRequire as toRequire } from " +
    '"node:module"; const require = toRequire(import.meta.url), as esbuild does with --banner:js',
  driver: "The driver failed before it reached the server: check the bundle and the package amqplib",
  tls: "Check the certificate authority, the host name and the client certificate in tls"
} as const

/** The remedy of an operation whose channel or connection was lost. */
export const lostRemedy = "Try again, and repeat a send with the same id: the connection is reopened automatically"

/** The remedy for a handler that exceeded the server's time limit. */
export const timeoutRemedy =
  "Set handlerTimeout below the server's consumer_timeout and the queue's x-consumer-timeout, or raise them"

/**
 * Returns the remedy for a rejected declaration. Users' own exchanges and queues can be used as they are, but not delay
 * queues.
 */
const ofMismatch = (text: string): string => {
  const exchange = /inequivalent arg .* for exchange '([^']+)' in vhost/s.exec(text)?.[1]
  if (exchange !== undefined && !/\.v1\./.test(exchange))
    return `Set exchanges["${exchange}"].assert: "passive" to use the exchange as it is, or delete it`
  const queue = /inequivalent arg .* for queue '([^']+)' in vhost/s.exec(text)?.[1]
  return queue === undefined || /\.v1\.[qc]\./.test(queue)
    ? remedies.mismatch
    : `Set queues["${queue}"].assert: "passive" to use the queue as it is, or delete it and start again; ` +
        "a delay queue is deleted, or gets another name by names"
}

/** Returns the remedy for a missing object. Users' own exchanges can be declared. */
const ofMissing = (text: string): string => {
  const exchange = /no exchange '([^']+)' in vhost/s.exec(text)?.[1]
  return exchange === undefined || /\.v1\./.test(exchange)
    ? remedies.missing
    : `Create it, or have it declared: exchanges["${exchange}"]: { type: "topic", assert: "declare" }`
}

/** Rejected declarations and rejected publications have the same code. */
const byPrecondition = (text: string): Diagnosis => {
  if (/message size \d+ is larger than/.test(text)) return { reason: "BodyTooLarge", remedy: remedies.size }
  if (/delivery acknowledgement .*timed out/.test(text)) return { reason: "LeaseLost", remedy: timeoutRemedy }
  if (/invalid (message|expiration)/.test(text)) return { reason: "Unsupported" }
  if (/\b(queue|exchange) limit\b.* is reached/s.test(text)) return { reason: "AccessRefused", remedy: remedies.full }
  if (/user_id property/.test(text)) return { reason: "Unsupported", remedy: remedies.user }
  return { reason: "QueueMismatch", remedy: ofMismatch(text) }
}

/** A login by certificate has no user name and no password. */
const ofLogin = (text: string): Diagnosis => ({
  reason: "AccessRefused",
  remedy: /mechanism EXTERNAL/.test(text) ? remedies.certificate : remedies.login
})

/** Diagnoses a failed login, a missing permission, or a queue in exclusive use. */
const byAccess = (text: string): Diagnosis => {
  const isLogin = /login was refused|authentication/i.test(text)
  if (isLogin) return ofLogin(text)
  if (/reserved prefix/.test(text)) return { reason: "AccessRefused", remedy: remedies.reserved }
  return { reason: "AccessRefused", remedy: /in exclusive use/.test(text) ? remedies.alone : remedies.permission }
}

/** Diagnoses reply codes of AMQP 0-9-1. https://www.rabbitmq.com/amqp-0-9-1-reference#constants */
const byCode = (code: number, text: string): Diagnosis | undefined => {
  switch (code) {
    case 403:
      return byAccess(text)
    case 404:
      return { reason: "QueueMissing", remedy: ofMissing(text) }
    case 405:
      if (/single active consumer/.test(text)) return { reason: "AccessRefused", remedy: remedies.alone }
      return {
        reason: "QueueMismatch",
        remedy: "The queue belongs to another connection alone: use another queue name"
      }
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
  // The driver parses an HTTP server's answer as a frame.
  [/^(Frame size|Invalid frame|Unknown frame)/, { reason: "ConnectionFailed", remedy: remedies.protocol }],
  [/message nacked/, { reason: "QueueFull", remedy: "Make room in the queue, or raise its limit" }],
  [
    /Channel clos|channel closed|Channel ended|Connection clos|socket clos|Heartbeat/i,
    { reason: "ConnectionLost", remedy: lostRemedy }
  ]
]

/**
 * Network failures, and the driver's errors for a server that ends or does not finish the handshake: another attempt
 * may succeed. Any other failure to connect is a fault of the program, such as a bundle without a module.
 */
const isPassing =
  /\b(E[A-Z]{4,}|ERR_(TLS|SSL|OSSL|STREAM|SOCKET)\w*)\b|^(Socket|Unexpected|Handshake|Expected|Frame|Heartbeat|Server|SASL|Wasn't|Client network)\b/

/** The driver's only text when the server closes a connection after the login and before it is open. */
const unopened = /Expected ConnectionOpenOk; got <ConnectionClose/

/** Returns the text of an error, with its code and the texts of its inner errors. */
export const textOf = (cause: unknown): string => {
  const { message } = Failure.summarize(cause)
  if (!(cause instanceof Error)) return message
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : ""
  // When several addresses were tried, the outer error has no text.
  const inner = cause instanceof AggregateError ? cause.errors.map(textOf).join("; ") : ""
  const text = `${message}${inner}`
  return code === "" || text.includes(code) ? text : `${code} ${text}`
}

/**
 * Returns the server's own text if the error quotes it, without a full stop, because a sentence follows. The server's
 * text names queues, users and virtual hosts, but never a password.
 */
const detailOf = (text: string): string => (/"([A-Z_-]+ - .*)"/s.exec(text)?.[1] ?? text.trim()).replace(/\.$/, "")

/** Returns the remedy if connecting failed because the program lacks a module; `undefined` for other failures. */
const ofModule = (text: string): string | undefined => {
  if (text.startsWith("Dynamic require of ")) return remedies.bundle
  return /MODULE_NOT_FOUND/.test(text) ? remedies.driver : undefined
}

/**
 * Makes the error, with reason and remedy from the text of the cause. `otherwise` is the reason for an unknown text. An
 * unknown failure to connect is a fault of the program, so `connect` does not retry it.
 */
export const toBrokerError = (
  cause: unknown,
  { node, operation, queue, vhost }: ErrorContext,
  otherwise: BrokerError.Reason = "ConnectionLost"
): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  const text = unopened.test(textOf(cause))
    ? `NOT_ALLOWED - vhost ${vhost}: it does not exist, the user may not enter it, or a limit of connections is reached`
    : textOf(cause)
  const code = /\b(311|320|403|404|405|406|530|540) \(/.exec(text)?.[1]
  const isReply = /'amq\.rabbitmq\.reply-to/.test(text)
  const ofTls = operation === "connect" ? TlsOptions.remedy(text, "tls") : undefined
  const module = operation === "connect" ? ofModule(text) : undefined
  const known: Diagnosis | undefined =
    ofTls === undefined && module === undefined
      ? ((code === undefined ? undefined : byCode(Number(code), text)) ??
        patterns.find(([pattern]) => pattern.test(text))?.[1])
      : { reason: "ConnectionFailed", remedy: module ?? ofTls }
  const isUnknown = known === undefined && operation === "connect" && !isPassing.test(text)
  const program = module ?? (isUnknown ? remedies.driver : undefined)
  const { reason, remedy: usual } = known ?? {
    reason: otherwise,
    remedy: program ?? (otherwise === "ConnectionLost" ? lostRemedy : remedies.reach)
  }
  const remedy = isReply ? remedies.reply : usual
  const isMisconfigured =
    operation === "connect" && (program !== undefined || TlsOptions.isMistake(text) || usual === remedies.protocol)
  const isNowhere = node === undefined || reason !== "ConnectionFailed" || program !== undefined || text.includes(node)
  const detail = isNowhere ? detailOf(text) : `${node}: ${detailOf(text)}`
  return new BrokerError.BrokerError({ broker: "rabbitmq", operation, queue, reason, detail, remedy, isMisconfigured })
}

/** The start of the driver's error for headers that are too large. */
const overflow = "Encoded field table"

/** Returns the error text for headers and properties that exceed a frame of the connection. */
export const tooLarge = (size: number, frameMax: number): string =>
  `${overflow}: headers and properties need a frame of ${size} bytes, and frame_max of this connection is ${frameMax}`

/** Whether the server may accept a copy with shorter headers. */
export const isOfHeaders = ({ detail, reason }: BrokerError.BrokerError): boolean =>
  reason === "BodyTooLarge" && detail.startsWith(overflow)

/**
 * Makes the error for a message that could not be encoded, so nothing was written. The reason ignores the text, which
 * may contain foreign headers.
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
