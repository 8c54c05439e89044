/** Credentials from the program's function, cached until they expire or SQS reports that they have. */

import { Failure } from "@requeue/core/port"
import * as Bounded from "./bounded.ts"

interface Identity {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly expiration?: Date
}

type Provider<P, I> = (properties?: P) => Promise<I>

/** A credential provider for the SDK that can be renewed. */
interface Renewable<P, I> {
  readonly provider: Provider<P, I>
  /** Forgets the credentials: the next call asks for new ones. */
  readonly forget: () => void
}

/** Milliseconds before their expiry at which credentials are renewed, as in the SDK. */
const early = 300_000

/**
 * Calls a function of the program. Hides the text of its errors, which may contain a secret, such as a vault's
 * response. `what` names the function.
 */
export const hiding = async <A>(what: string, call: () => A | PromiseLike<A>): Promise<A> => {
  try {
    return await call()
  } catch (cause) {
    throw Failure.withoutText(what, cause)
  }
}

/** Whether a part of an access key ends with a line break, as file contents do. */
export const endsLine = (value: unknown): boolean => typeof value === "string" && /[\r\n]$/.test(value)

/** Describes this fault. */
export const lineEnd = "with a line break at its end"

const an = (name: string): string => (name === "accessKeyId" ? `an ${name}` : `a ${name}`)

/** Throws an error that names missing or mistyped fields, without their values. */
const checked = <I extends Identity>(identity: I): I => {
  const { expiration = new Date(), sessionToken = "" } = Object(identity)
  const faults = ["accessKeyId", "secretAccessKey"]
    .filter((name) => typeof Object(identity)[name] !== "string")
    .map((name) => `no ${name}`)
  for (const name of ["accessKeyId", "secretAccessKey", "sessionToken"]) {
    if (endsLine(Object(identity)[name])) faults.push(`${an(name)} ${lineEnd}`)
  }
  if (typeof sessionToken !== "string") faults.push("a sessionToken that is not text")
  if (!(expiration instanceof Date && expiration.getTime() > 0)) faults.push("an expiration that is not a Date")
  if (faults.length === 0) return identity
  const error = new Error(`credentials answered ${faults.join(" and ")}`)
  error.name = "CredentialsProviderError"
  throw error
}

/**
 * Calls the function on the first call. Simultaneous calls share its result, for up to `timeout` milliseconds; then it
 * is called again. `now` returns milliseconds since the epoch.
 */
export const make = <P, I extends Identity>(
  provider: Provider<P, I>,
  now: () => number,
  timeout: number
): Renewable<P, I> => {
  let current: Promise<I> | undefined
  const isExpiring = ({ expiration }: I): boolean => expiration !== undefined && expiration.getTime() - now() < early

  const ask = (properties: P | undefined): Promise<I> => {
    const answer = hiding("the function credentials", () => provider(properties)).then(checked)
    const asked = Bounded.within(answer, timeout, "credentials")
    current = asked
    // The callers receive the error; the next call asks again, unless a late result has arrived.
    asked
      .catch(() => {
        if (current === asked) current = undefined
        return answer.then(() => void (current ??= answer))
      })
      .catch(() => {})
    return asked
  }

  const memoized: Provider<P, I> = async (properties) => {
    const identity = await (current ?? ask(properties))
    return isExpiring(identity) ? ask(properties) : identity
  }
  // The SDK would keep credentials without expiration forever.
  return { provider: Object.assign(memoized, { memoized: true }), forget: () => (current = undefined) }
}

/** Whether SQS refuses a call because the credentials have expired. */
export const isExpired = (error: unknown): boolean =>
  error instanceof Error && /^(ExpiredToken|TokenRefreshRequired)/.test(error.name)
