/** From an error of the driver or the server to a `BrokerError` with a remedy. Pure. */
import { BrokerError } from "@requeue/core/adapter-kit"

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
  vhost: "Create the virtual host and give the user permissions in it, or name another one in the URL",
  permission: "Grant configure, write and read on the names involved: rabbitmqctl set_permissions",
  mismatch:
    `The object exists with other arguments: delete it, give the queue its own arguments, ` +
    `or set assert: "never" to use it as it is`,
  missing: `Create it, or set assert: "declare"`,
  reach: "Check host, port and TLS; is the server running?",
  tls: "Check the certificate authority, the host name and the client certificate in tls"
} as const

/** By the reply codes of AMQP 0-9-1. https://www.rabbitmq.com/amqp-0-9-1-reference#constants */
const byCode = (code: number, text: string): Diagnosis | undefined => {
  switch (code) {
    case 403:
      return /login was refused|authentication/i.test(text)
        ? { reason: "AccessRefused", remedy: remedies.login }
        : { reason: "AccessRefused", remedy: remedies.permission }
    case 404:
      return { reason: "QueueMissing", remedy: remedies.missing }
    case 405:
      return { reason: "QueueMismatch", remedy: "The queue belongs to another connection alone: use another name" }
    case 406:
      return { reason: "QueueMismatch", remedy: remedies.mismatch }
    case 311:
      return { reason: "BodyTooLarge" }
    case 320:
      return { reason: "ConnectionLost" }
    case 530:
      return { reason: "AccessRefused", remedy: remedies.vhost }
    case 540:
      return { reason: "Unsupported" }
    default:
      return undefined
  }
}

const patterns: ReadonlyArray<readonly [RegExp, Diagnosis]> = [
  [/ACCESS[_-]REFUSED.*(login|authentication)/i, { reason: "AccessRefused", remedy: remedies.login }],
  [/ACCESS[_-]REFUSED/i, { reason: "AccessRefused", remedy: remedies.permission }],
  [/NOT[_-]ALLOWED.*vhost|vhost .*not found/i, { reason: "AccessRefused", remedy: remedies.vhost }],
  [/inequivalent arg|PRECONDITION[_-]FAILED/i, { reason: "QueueMismatch", remedy: remedies.mismatch }],
  [/NOT[_-]FOUND/i, { reason: "QueueMissing", remedy: remedies.missing }],
  [/certificate|self.signed|SSL|TLS|altnames/i, { reason: "ConnectionFailed", remedy: remedies.tls }],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ETIMEDOUT|ECONNRESET/,
    { reason: "ConnectionFailed", remedy: remedies.reach }
  ],
  [/larger than configured max size/i, { reason: "BodyTooLarge" }],
  [/message nacked/, { reason: "QueueFull", remedy: "Make room in the queue, or raise its limit" }],
  [
    /frame size|header.*(too large|exceeds)|up to 64 ?KiB|exceeds .*frame/i,
    { reason: "BodyTooLarge", remedy: "Send fewer or shorter headers" }
  ],
  [/Channel clos|channel closed|Channel ended|Connection clos|socket clos|Heartbeat/i, { reason: "ConnectionLost" }]
]

/** The driver's only words when the server closes a connection that has logged in and is not open yet. */
const unopened = /Expected ConnectionOpenOk; got <ConnectionClose/

const textOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const code = "code" in cause && typeof cause.code === "string" ? `${cause.code} ` : ""
  // Several addresses may have been tried: the outer error then says nothing.
  const inner = cause instanceof AggregateError ? cause.errors.map(textOf).join("; ") : ""
  return `${code}${cause.message}${inner}`
}

/** The server's own words, where the text quotes them. They name queues, users and virtual hosts, never a password. */
const detailOf = (text: string): string => /"([A-Z_-]+ - .*)"/s.exec(text)?.[1] ?? text

/** The reason and the remedy follow from the text of the cause; `otherwise` is the reason where the text is unknown. */
export const toBrokerError = (
  cause: unknown,
  { operation, queue, vhost }: ErrorContext,
  otherwise: BrokerError.Reason = "ConnectionLost"
): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  const text = unopened.test(textOf(cause))
    ? `NOT_ALLOWED - vhost ${vhost}: it does not exist, or the user may not enter it`
    : textOf(cause)
  const code = /\b(311|320|403|404|405|406|530|540) \(/.exec(text)?.[1]
  const { reason, remedy } = (code === undefined ? undefined : byCode(Number(code), text)) ??
    patterns.find(([pattern]) => pattern.test(text))?.[1] ?? { reason: otherwise, remedy: undefined }
  return new BrokerError.BrokerError({ broker: "rabbitmq", operation, queue, reason, detail: detailOf(text), remedy })
}
