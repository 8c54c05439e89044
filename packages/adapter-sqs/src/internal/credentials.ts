/** Credentials that a program's own function answers: they are kept until they expire, or SQS says that they have. */

import { Failure } from "@requeue/core/port"
import * as Bounded from "./bounded.ts"

interface Identity {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly expiration?: Date
}

type Provider<P, I> = (properties?: P) => Promise<I>

/** A provider as the SDK takes it, and how it is told to ask again. */
interface Renewable<P, I> {
  readonly provider: Provider<P, I>
  /** Forgets the credentials. */
  readonly forget: () => void
}

/** Milliseconds before their end at which credentials are asked for again, as the SDK does. */
const early = 300_000

/**
 * Calls a function of the program. The text of what it throws may hold a secret, such as the answer of a vault, and is not
 * shown. `what` names the function.
 */
export const hiding = async <A>(what: string, call: () => A | PromiseLike<A>): Promise<A> => {
  try {
    return await call()
  } catch (cause) {
    throw Failure.withoutText(what, cause)
  }
}

/** Whether a part of an access key ends with a line break, as the content of a file does. */
export const endsLine = (value: unknown): boolean => typeof value === "string" && /[\r\n]$/.test(value)

/** The fault of such text. */
export const lineEnd = "with a line break at its end"

const an = (name: string): string => (name === "accessKeyId" ? `an ${name}` : `a ${name}`)

/** Names the fields that are missing, or of another type; what is there is not shown. */
const checked = <I extends Identity>(identity: I): I => {
  const { expiration = new Date(), sessionToken = "" } = Object(identity)
  const faults = ["accessKeyId", "secretAccessKey"]
    .filter((name) => typeof Object(identity)[name] !== "string")
    .map((name) => `no ${name}`)
  for (const name of ["accessKeyId", "secretAccessKey", "sessionToken"]) {
    if (endsLine(Object(identity)[name])) faults.push(`${an(name)} ${lineEnd}`)
  }
  if (typeof sessionToken !== "string") faults.push("a sessionToken that is no text")
  if (!(expiration instanceof Date && expiration.getTime() > 0)) faults.push("an expiration that is no Date")
  if (faults.length === 0) return identity
  const error = new Error(`credentials answered ${faults.join(" and ")}`)
  error.name = "CredentialsProviderError"
  throw error
}

/**
 * Asks the function when the first call is made. Calls that come while it answers wait for the same answer, for `timeout`
 * milliseconds; then it is asked anew. `now` returns milliseconds since the epoch.
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
    // Whoever asked is told; the next call asks anew, unless an answer has come late.
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
  // The SDK would keep what has no expiration for ever.
  return { provider: Object.assign(memoized, { memoized: true }), forget: () => (current = undefined) }
}

/** Whether SQS refuses a call because the credentials are no longer good. */
export const isExpired = (error: unknown): boolean =>
  error instanceof Error && /^(ExpiredToken|TokenRefreshRequired)/.test(error.name)
