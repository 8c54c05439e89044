/**
 * The account that a connection logs in with: that of the URL, or the answer of a function, which is asked for every
 * connection. One that ends, such as an OAuth 2 token, is asked for again before it does, and the server is told the new
 * one: it closes the connection of a token that has ended. https://www.rabbitmq.com/docs/oauth2#token-expiration
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
  /** The user. Default: the URL's. Servers with OAuth 2 read it from the token. */
  readonly username?: string | undefined
  /** The password, or the token. */
  readonly password: string | Redacted.Redacted
  /** When they end, in milliseconds since the epoch; a time in seconds is refused. Default: they do not. */
  readonly expiresAt?: number | undefined
}

/** Answers them, each time that it is asked. */
export type Provider = () => Credentials | PromiseLike<Credentials>

/** Credentials that were checked. */
export interface Account {
  readonly username: string
  readonly password: Redacted.Redacted
  readonly expiresAt: number
}

/** `isMisconfigured`: another call of the function answers the same. */
const failed = (detail: string, isMisconfigured = false): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "connect",
    reason: "ConnectionFailed",
    isMisconfigured,
    detail: `credentials: ${detail}`,
    remedy: "Let the function answer { password }, and username and expiresAt where they are needed"
  })

/** Times before 1973 in milliseconds, and until 5138 in seconds: nobody means the former. */
const [minMillis, example] = [1e11, "Date.now() + 3_600_000"]

/** Nothing of what the function has answered is shown, except a time: it may be a secret. */
const check = (answer: unknown, address: Address): Account | BrokerError.BrokerError => {
  if (typeof answer !== "object" || answer === null) return failed("the function has answered no object", true)
  const { expiresAt = Number.POSITIVE_INFINITY, password, username = address.username } = answer as Partial<Credentials> // Each field is checked.
  const secret = Redacted.isRedacted(password) ? Redacted.value(password) : password
  if (typeof secret !== "string" || secret === "") return failed("the password is no text", true)
  if (typeof username !== "string") return failed("the username is no text", true)
  if (typeof expiresAt !== "number" || Number.isNaN(expiresAt)) return failed("expiresAt is no number", true)
  if (expiresAt < minMillis)
    return failed(
      `expiresAt is ${expiresAt}, which is no time in milliseconds since the epoch, such as ${example}`,
      true
    )
  return { username, password: Redacted.make(secret), expiresAt }
}

/** The account for an address. Asking for it takes `connectTimeout` at most. */
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
      orElse: () => Effect.fail(failed(`the function has not answered within ${Delay.format(connectTimeout)}`))
    }),
    Effect.flatMap((answer) => {
      const account = check(answer, address)
      return account instanceof BrokerError.BrokerError ? Effect.fail(account) : Effect.succeed(account)
    })
  )
}

const tell = ({ message }: BrokerError.BrokerError) =>
  Log.warning("a connection's credentials were not renewed", { errorMessage: message })

/** The part of its life after which an account is asked for again, and the shortest and the longest pause before that. */
const [part, shortest, longest] = [4 / 5, 1000, 24 * 60 * 60 * 1000]

/** The longest pause after an account that has ended. */
const longestEnded = 60_000

const ended = (expiresAt: number, now: number) =>
  Log.warning("a connection's credentials have ended", {
    errorMessage:
      `credentials: expiresAt is ${new Date(expiresAt).toISOString()}, ${Delay.format(now - expiresAt)} ago. ` +
      "Let the function return credentials that have not ended, and check the clock of this machine"
  })

/**
 * Keeps a connection logged in: asks again when four fifths of an account's life are over, and hands it to `update`. What
 * fails is logged, and tried again when four fifths of the rest are over. Where the account has ended, that is logged once, and the
 * pauses grow. Never ends; succeeds at once for an account that
 * does not end.
 */
export const renew = (
  account: Account,
  again: Effect.Effect<Account, BrokerError.BrokerError>,
  update: (password: Redacted.Redacted) => Effect.Effect<void, BrokerError.BrokerError>
): Effect.Effect<void> =>
  Effect.gen(function* () {
    let { expiresAt } = account
    /** The pause after an account that has ended; `undefined` while one has not. */
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
