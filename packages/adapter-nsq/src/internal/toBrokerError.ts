/** Converts an error of nsqd, the driver or the network to a `BrokerError` with a remedy. Pure. */
import { Failure } from "@requeue/core"
import { BrokerError, Delay } from "@requeue/core/port"
import { TlsOptions } from "@requeue/kit"
import { refusals, remedyInClear } from "./handshake.ts"

/** The circumstances of an error. */
export interface ErrorContext {
  readonly operation: string
  readonly queue?: string | undefined
  /** `host:port` of the nsqd. */
  readonly node?: string | undefined
}

/** The meaning of an error's text. */
interface Meaning {
  readonly reason: BrokerError.Reason
  readonly remedy?: string
}

const remedies = {
  secret: "Check authSecret, and that nsqd reaches its authentication server",
  permission:
    "Let the authentication server grant this secret publish and subscribe on the queue's topics and channels",
  name: "Use a name of at most 64 letters, digits, dots, underscores and dashes",
  protocol: "Check host and port: they must be those of nsqd's TCP address, 4150 by default; port 4151 is for HTTP",
  reach: "Check host, port and TLS; is nsqd running there?",
  tls: "Check the certificate authority, servername and the client certificate in tls, or in httpTls",
  tlsRequired: "This nsqd accepts TLS connections only: set tls",
  noTls:
    "Start this nsqd with --tls-cert and --tls-key, or leave tls out. If nsqd has these options, a machine in between changes its answers",
  tampered: "Find the machine between this process and nsqd that changes what nsqd sends",
  clear: remedyInClear,
  noSecret: "Set authSecret to a secret that nsqd's authentication server accepts",
  lease: "Raise messageTimeout, unless the channel was emptied",
  identify: "Keep heartbeat, messageTimeout and outputBufferTimeout within the limits of nsqd's configuration"
} as const

/** The error text when the connection was closed without an error. Servers other than nsqd do this too. */
export const closedText = "nsqd closed the connection"

/** Errors of https://nsq.io/clients/tcp_protocol_spec.html, then of TLS and the network; the first match counts. */
const patterns: ReadonlyArray<readonly [RegExp, Meaning]> = [
  [new RegExp(`^${refusals.noTls}`), { reason: "AccessRefused", remedy: remedies.noTls }],
  [new RegExp(`^${refusals.early}`), { reason: "AccessRefused", remedy: remedies.tampered }],
  [new RegExp(`^${refusals.clear}`), { reason: "AccessRefused", remedy: remedies.clear }],
  [new RegExp(`^${refusals.noSecret}`), { reason: "AccessRefused", remedy: remedies.noSecret }],
  [/^E_AUTH_(FAILED|FIRST|ERROR|DISABLED)/, { reason: "AccessRefused", remedy: remedies.secret }],
  [/^E_UNAUTHORIZED/, { reason: "AccessRefused", remedy: remedies.permission }],
  [/^E_BAD_(TOPIC|CHANNEL)/, { reason: "Unsupported", remedy: remedies.name }],
  [/too big/, { reason: "BodyTooLarge", remedy: "Send a smaller body, or raise --max-msg-size of nsqd" }],
  [/TLS required/, { reason: "AccessRefused", remedy: remedies.tlsRequired }],
  [/^E_BAD_BODY IDENTIFY/, { reason: "Unsupported", remedy: remedies.identify }],
  [/consumers for .* exceeds limit/, { reason: "AccessRefused", remedy: "Raise --max-channel-consumers of nsqd" }],
  [/^E_(FIN|REQ|TOUCH)_FAILED/, { reason: "LeaseLost", remedy: remedies.lease }],
  [
    /^E_(PUB|MPUB|DPUB|SUB)_FAILED/,
    { reason: "Throttled", remedy: "Check nsqd's log: its disk may be full, or it may be shutting down" }
  ],
  [/^E_/, { reason: "Unsupported" }],
  [new RegExp(`^${refusals.notNsq}`), { reason: "ConnectionFailed", remedy: remedies.protocol }],
  [/certificate|self.signed|SSL|TLS|altnames|EPROTO/i, { reason: "ConnectionFailed", remedy: remedies.tls }],
  [
    /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/,
    { reason: "ConnectionFailed", remedy: remedies.reach }
  ]
]

const textOf = (cause: unknown): string => {
  // The driver read bytes of another protocol as the size of a frame.
  if (cause instanceof Error && "code" in cause && cause.code === "ERR_BUFFER_OUT_OF_BOUNDS")
    return `${refusals.notNsq}: ${cause.message}`
  if (!(cause instanceof Error)) return Failure.summarize(cause).message
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : ""
  // If several addresses were tried, the outer error has no text.
  const inner = cause instanceof AggregateError ? cause.errors.map(textOf).join("; ") : ""
  const below = cause.cause instanceof Error ? `: ${textOf(cause.cause)}` : ""
  const text = `${cause.message}${inner}${below}`
  return code === "" || text.includes(code) ? text : `${code} ${text}`
}

/** Makes the error with its remedy. `otherwise` is the reason for an unknown text. */
export const toBrokerError = (
  cause: unknown,
  { node, operation, queue }: ErrorContext,
  otherwise: BrokerError.Reason = "ConnectionLost"
): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  const text = textOf(cause)
  const ofTls = otherwise === "ConnectionFailed" ? TlsOptions.remedy(text, "tls") : undefined
  const meaning: Meaning =
    ofTls !== undefined
      ? { reason: "ConnectionFailed", remedy: `${ofTls}; an HTTP interface takes httpTls first` }
      : (patterns.find(([pattern]) => pattern.test(text))?.[1] ??
        (otherwise === "ConnectionFailed" && text === closedText
          ? { reason: otherwise, remedy: remedies.protocol }
          : { reason: otherwise }))
  return new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    queue,
    reason: meaning.reason,
    isMisconfigured:
      otherwise === "ConnectionFailed" && (TlsOptions.isMistake(text) || meaning.remedy === remedies.protocol),
    detail: node === undefined ? text : `nsqd ${node}: ${text}`,
    remedy: meaning.remedy ?? (meaning.reason === "ConnectionFailed" ? remedies.reach : undefined)
  })
}

/** Returns the id of the message whose `FIN`, `REQ` or `TOUCH` nsqd refused; `undefined` for other texts. */
export const refusedId = (text: string): string | undefined =>
  /^E_(?:FIN|REQ|TOUCH)_FAILED (?:FIN|REQ|TOUCH) (\S{16}) /.exec(text)?.[1]

/** Makes the error of an operation that got no answer within `millis` milliseconds. */
export const timedOut = ({ node, operation, queue }: ErrorContext, millis: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "nsq",
    operation,
    queue,
    reason: "Timeout",
    detail: `no answer within ${Delay.format(millis)}${node === undefined ? "" : ` from nsqd ${node}`}${operation === "counts" ? "" : "; the outcome is unknown"}`,
    remedy:
      operation === "publish"
        ? "Check the load of nsqd and send it again with the same id, or raise publishTimeout"
        : "Check the load of nsqd and try again, or raise requestTimeout"
  })
