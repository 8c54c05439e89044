/** From what nsqd, the driver or the network said to a `BrokerError` with a remedy. Pure. */
import { BrokerError, Delay } from "@requeue/core/adapter-kit"

export interface Context {
  readonly operation: string
  readonly queue?: string | undefined
  /** `host:port` of the nsqd. */
  readonly node?: string | undefined
}

interface Answer {
  readonly reason: BrokerError.Reason
  readonly remedy?: string
}

const remedies = {
  secret: "Check authSecret, and that nsqd reaches its authentication server",
  permission:
    "Let the authentication server grant this secret publish and subscribe on the queue's topics and channels",
  name: "Use letters, digits, dots, underscores and dashes, at most 64",
  reach: "Check host, port and TLS; is nsqd running there?",
  tls: "Check the certificate authority, servername and the client certificate in tls",
  tlsRequired: "This nsqd takes TLS connections only: set tls",
  identify: "Keep heartbeat, messageTimeout and outputBufferTimeout within the limits of nsqd's configuration"
} as const

/** https://nsq.io/clients/tcp_protocol_spec.html, and what is thrown on the way there. */
const patterns: ReadonlyArray<readonly [RegExp, Answer]> = [
  [/^E_AUTH_(FAILED|FIRST|ERROR|DISABLED)/, { reason: "AccessRefused", remedy: remedies.secret }],
  [/^E_UNAUTHORIZED/, { reason: "AccessRefused", remedy: remedies.permission }],
  [/^E_BAD_(TOPIC|CHANNEL)/, { reason: "Unsupported", remedy: remedies.name }],
  [/too big/, { reason: "BodyTooLarge", remedy: "Send a smaller body, or raise --max-msg-size of nsqd" }],
  [/TLS required/, { reason: "AccessRefused", remedy: remedies.tlsRequired }],
  [/^E_BAD_BODY IDENTIFY/, { reason: "Unsupported", remedy: remedies.identify }],
  [/consumers for .* exceeds limit/, { reason: "AccessRefused", remedy: "Raise --max-channel-consumers of nsqd" }],
  [/^E_(FIN|REQ|TOUCH)_FAILED/, { reason: "LeaseLost" }],
  [
    /^E_(PUB|MPUB|DPUB|SUB)_FAILED/,
    { reason: "Throttled", remedy: "Look at nsqd's log: is its disk full, does it end?" }
  ],
  [/^E_/, { reason: "Unsupported" }],
  [/certificate|self.signed|SSL|TLS|altnames|EPROTO/i, { reason: "ConnectionFailed", remedy: remedies.tls }],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/,
    { reason: "ConnectionFailed", remedy: remedies.reach }
  ]
]

const textOf = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const code = "code" in cause && typeof cause.code === "string" ? `${cause.code} ` : ""
  // Several addresses may have been tried: the outer error then says nothing.
  const inner = cause instanceof AggregateError ? cause.errors.map(textOf).join("; ") : ""
  const below = cause.cause instanceof Error ? `: ${textOf(cause.cause)}` : ""
  return `${cause.message.startsWith(code.trim()) ? "" : code}${cause.message}${inner}${below}`
}

export const toBrokerError = (
  cause: unknown,
  { node, operation, queue }: Context,
  otherwise: BrokerError.Reason = "ConnectionLost"
): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  const text = textOf(cause)
  const answer = patterns.find(([pattern]) => pattern.test(text))?.[1] ?? { reason: otherwise }
  return new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    queue,
    reason: answer.reason,
    detail: node === undefined ? text : `nsqd ${node}: ${text}`,
    remedy: answer.remedy ?? (answer.reason === "ConnectionFailed" ? remedies.reach : undefined)
  })
}

/** The message that a refused `FIN`, `REQ` or `TOUCH` was about. */
export const refusedId = (text: string): string | undefined =>
  /^E_(?:FIN|REQ|TOUCH)_FAILED (?:FIN|REQ|TOUCH) (\S{16}) /.exec(text)?.[1]

export const timedOut = ({ node, operation, queue }: Context, millis: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    queue,
    reason: "Timeout",
    detail: `no answer within ${Delay.format(millis)}${node === undefined ? "" : ` from nsqd ${node}`}; the outcome is unknown`
  })
