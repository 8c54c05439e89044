/** Converts an error of PostgreSQL, the driver or the system to a `BrokerError` with a reason and a remedy. Pure. */
import { BrokerError } from "@requeue/core/port"
import { SqlErrors, TlsOptions } from "@requeue/kit"
import * as Predicate from "effect/Predicate"

export const errors: SqlErrors.Errors = SqlErrors.make("postgres")

/** The operation of the port that failed, and its queue. */
export interface Context extends SqlErrors.Context {
  /** Whether the attempt to connect failed. Default: a statement failed. */
  readonly isConnecting?: boolean | undefined
}

type Meaning = Pick<BrokerError.BrokerError, "reason" | "remedy" | "isMisconfigured">

const throttled = (remedy?: string): Meaning => ({ reason: "Throttled", remedy })
const misconfigured = (remedy: string): Meaning => ({ reason: "ConnectionFailed", remedy, isMisconfigured: true })
const refused = (remedy: string): Meaning => ({ reason: "AccessRefused", remedy })

const tables = "Run requeue create with a role that may create tables, or run the SQL of PostgresSchema.sql()"
const space = "Free space on the server: the adapter continues without a restart"

/**
 * SQLSTATEs, or classes of them: https://www.postgresql.org/docs/current/errcodes-appendix.html. A statement that the server refuses
 * changes nothing: its transaction is rolled back.
 */
const meanings: Readonly<Record<string, Meaning>> = {
  "08": { reason: "ConnectionLost" },
  "22": { reason: "Unsupported" },
  "23": refused("Remove the constraint of the table that refuses the row"),
  "25": { reason: "Unsupported" },
  "28": refused(
    "Correct the user, the password, or pg_hba.conf. If the server requires TLS, set tls: true or ?sslmode=require"
  ),
  "40": throttled(),
  "53": throttled("Give the server more resources, or lower the load"),
  "54": { reason: "BodyTooLarge", remedy: "Send a smaller body" },
  "57": throttled(),
  "58": throttled(space),
  "3D": misconfigured("Create the database, or correct its name in the URL"),
  "3F": misconfigured(tables),
  "42": misconfigured("Requeue's tables were changed: restore them, or drop the schema with its messages, and restart"),
  P0: refused("Remove the trigger of the table that refuses the row"),
  XX: misconfigured("The server reports damaged data: see its log, and restore a backup"),
  // A standby, or a primary that has become one. The next connection may find the new primary.
  "25006": { reason: "ConnectionFailed", remedy: "Connect to the primary server, which accepts writes" },
  "42501": refused("Grant the role the permissions that PostgresSchema.sql(schema, role) lists"),
  "42P01": misconfigured(tables),
  "53100": throttled(space),
  "53300": throttled("Raise max_connections, or use a pooler such as pgbouncer. A broker uses up to five connections"),
  "55P03": throttled(),
  "57014": throttled("Raise the statement_timeout of the role, or find out what slows the server down"),
  // The server shuts down or restarts. It may have committed before.
  "57P01": { reason: "ConnectionLost" },
  "57P02": { reason: "ConnectionLost" },
  "57P03": { reason: "ConnectionFailed" },
  "57P05": { reason: "ConnectionLost" }
}

/** The members in which Effect's SqlClient, Drizzle and Prisma keep the server's error. */
const wrappers = ["reason", "cause", "meta", "driverAdapterError"]

/**
 * Returns the SQLSTATE, also of an error that a library has wrapped; `undefined` for any other error, such as those of sockets, whose
 * codes are longer words.
 */
export const stateOf = (cause: unknown): string | undefined => {
  if (!Predicate.isObject(cause)) return undefined
  if ("severity" in cause && "code" in cause && typeof cause.code === "string") return cause.code
  return wrappers.map((name) => stateOf(Reflect.get(cause, name))).find((state) => state !== undefined)
}

/** The outcome of an attempt to connect is never unknown. */
const ofConnecting = ({ isMisconfigured, reason, remedy }: Meaning): Meaning =>
  ["ConnectionLost", "Throttled"].includes(reason)
    ? { reason: "ConnectionFailed", remedy, isMisconfigured }
    : { reason, remedy, isMisconfigured }

const withoutState = (text: string, isConnecting: boolean): Meaning => {
  if (!isConnecting) return { reason: "ConnectionLost" }
  const remedy = TlsOptions.remedy(text, "tls")
  if (/does not support SSL/.test(text)) return misconfigured("Turn on ssl at the server, or remove tls and sslmode")
  if (/password must be a/.test(text)) return refused("Set a password in the URL or the option password")
  return TlsOptions.isMistake(text)
    ? misconfigured(remedy ?? "Set tls.ca or tls.caFile to the certificate of the server's authority")
    : { reason: "ConnectionFailed" }
}

/** Node reports the errors of several addresses as one without a message. */
const textOf = (cause: unknown): string => {
  if (cause instanceof AggregateError) return cause.errors.map(textOf).join(", ")
  return cause instanceof Error ? cause.message : String(cause)
}

/** An error without a SQLSTATE counts as a lost connection: the outcome is unknown. */
export const toBrokerError = (
  cause: unknown,
  { isConnecting = false, operation, queue }: Context
): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) {
    const { broker, detail, isMisconfigured, reason, remedy } = cause
    return new BrokerError.BrokerError({
      broker,
      operation,
      queue,
      reason,
      detail,
      remedy,
      isMisconfigured,
      cause: cause.cause
    })
  }
  const state = stateOf(cause)
  const detail = textOf(cause)
  const meaning =
    state === undefined
      ? withoutState(detail, isConnecting)
      : (meanings[state] ?? meanings[state.slice(0, 2)] ?? throttled())
  const { isMisconfigured, reason, remedy } = isConnecting ? ofConnecting(meaning) : meaning
  return new BrokerError.BrokerError({
    broker: "postgres",
    operation,
    queue,
    reason,
    detail,
    remedy,
    isMisconfigured,
    cause
  })
}

/** Another transaction has locked the message: one that acks it, and has not ended. */
export const locked = (context: SqlErrors.Context): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "postgres",
    reason: "Throttled",
    detail: "another transaction has locked the message",
    remedy: "Await the end of the transaction that acks the message before the handler returns",
    ...context
  })
