/**
 * The account that a connection logs in with: the URL's, or the result of a function that is called for every
 * connection. The adapter renews credentials that expire, such as an OAuth 2 token, before they expire and sends the
 * new ones to the server, which closes the connection of an expired token.
 * https://www.rabbitmq.com/docs/oauth2#token-expiration
 */
import { BrokerError, Delay, Failure, Log } from "@requeue/core/port"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { Address } from "../address.ts"

/** A user and a password to log in with. */
export interface Credentials {
  /** The user. Default: the URL's. Servers with OAuth 2 read the user from the token. */
  readonly username?: string | undefined
  /** The password or the token. */
  readonly password: string | Redacted.Redacted
  /** When the credentials expire, in milliseconds since the epoch; a time in seconds is rejected. Default: never. */
  readonly expiresAt?: number | undefined
}

/** Returns credentials each time it is called. */
export type Provider = () => Credentials | PromiseLike<Credentials>

/** Credentials that were checked. */
export interface Account {
  readonly username: string
  readonly password: Redacted.Redacted
  readonly expiresAt: number
}

/** `isMisconfigured`: calling the function again would return the same. */
const failed = (detail: string, isMisconfigured = false): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "connect",
    reason: "ConnectionFailed",
    isMisconfigured,
    detail: `credentials: ${detail}`,
    remedy: "Return { password } from the function, with username and expiresAt if they are needed"
  })

/** A smaller number is a time in seconds: in milliseconds it would be before 1973. */
const [minMillis, example] = [1e11, "Date.now() + 3_600_000"]

/** Checks the function's result. An error shows none of it except a time, because it may be a secret. */
const check = (answer: unknown, address: Address): Account | BrokerError.BrokerError => {
  if (typeof answer !== "object" || answer === null) return failed("the function did not return an object", true)
  const { expiresAt = Number.POSITIVE_INFINITY, password, username = address.username } = answer as Partial<Credentials> // Each field is checked.
  const secret = Redacted.isRedacted(password) ? Redacted.value(password) : password
  if (typeof secret !== "string" || secret === "") return failed("the password is not a string", true)
  if (typeof username !== "string") return failed("the username is not a string", true)
  if (typeof expiresAt !== "number" || Number.isNaN(expiresAt)) return failed("expiresAt is not a number", true)
  if (expiresAt < minMillis)
    return failed(`expiresAt is ${expiresAt}, not a time in milliseconds since the epoch, such as ${example}`, true)
  return { username, password: Redacted.make(secret), expiresAt }
}

/** Returns the account for an address. Waits at most `connectTimeout` for the function. */
export const ask = (
  { connectTimeout, credentials }: { readonly connectTimeout: number; readonly credentials: Provider | undefined },
  address: Address
): Effect.Effect<Account, BrokerError.BrokerError> => {
  if (credentials === undefined) return Effect.succeed({ ...address, expiresAt: Number.POSITIVE_INFINITY })
  return Effect.tryPromise({
    try: async () => credentials(),
    catch: (cause) => failed(Failure.withoutText("the function", cause).message)
  }).pipe(
    Effect.timeoutOrElse({
      duration: Duration.millis(connectTimeout),
      orElse: () => Effect.fail(failed(`the function did not return within ${Delay.format(connectTimeout)}`))
    }),
    Effect.flatMap((answer) => {
      const account = check(answer, address)
      return account instanceof BrokerError.BrokerError ? Effect.fail(account) : Effect.succeed(account)
    })
  )
}

const tell = ({ message }: BrokerError.BrokerError) =>
  Log.warning("renewing a connection's credentials failed", { errorMessage: message })

/**
 * The fraction of the credentials' lifetime after which they are renewed, and the shortest and longest pause before
 * that.
 */
const [part, shortest, longest] = [4 / 5, 1000, 24 * 60 * 60 * 1000]

/** The longest pause after the credentials have expired. */
const longestEnded = 60_000

const ended = (expiresAt: number, now: number) =>
  Log.warning("a connection's credentials have expired", {
    errorMessage:
      `credentials: expiresAt is ${new Date(expiresAt).toISOString()}, ${Delay.format(now - expiresAt)} ago. ` +
      "Return credentials that have not expired, and check this machine's clock"
  })

/**
 * Keeps a connection logged in: requests new credentials after four fifths of their lifetime and passes them to
 * `update`. A failure is logged, and the renewal is tried again after four fifths of the remaining time. Once the
 * credentials have expired, that is logged once and the pauses grow. Never ends, except at once for an account that
 * does not expire.
 */
export const renew = (
  account: Account,
  again: Effect.Effect<Account, BrokerError.BrokerError>,
  update: (password: Redacted.Redacted) => Effect.Effect<void, BrokerError.BrokerError>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    let { expiresAt } = account
    /** The pause after the credentials have expired; `undefined` before. */
    let pause: number | undefined
    while (expiresAt !== Number.POSITIVE_INFINITY) {
      const now = yield* Clock.currentTimeMillis
      const rest = expiresAt - now
      if (rest <= 0 && pause === undefined) yield* ended(expiresAt, now)
      pause = rest > 0 ? undefined : Math.min(2 * (pause ?? shortest / 2), longestEnded)
      yield* Effect.sleep(Duration.millis(pause ?? Math.min(Math.max(rest * part, shortest), longest)))
      const renewed = yield* Effect.result(Effect.tap(again, ({ password }) => update(password)))
      if (Result.isSuccess(renewed)) expiresAt = renewed.success.expiresAt
      else yield* tell(renewed.failure)
    }
  })
