/** Credentials that a program's own function answers: they are kept until they expire, or SQS says that they have. */
import type { CredentialProvider } from "./sdkOptions.ts"

type Identity = Awaited<ReturnType<CredentialProvider>>

/** A provider as the SDK takes it, and how it is told to ask again. */
export interface Renewable {
  readonly provider: CredentialProvider
  /** Forgets the credentials. */
  readonly forget: () => void
}

/** Milliseconds before their end at which credentials are asked for again, as the SDK does. */
const early = 300_000

/** Names the fields that are missing; what is there is not shown. */
const checked = (identity: Identity): Identity => {
  const missing = ["accessKeyId", "secretAccessKey"].filter((name) => typeof Object(identity)[name] !== "string")
  if (missing.length === 0) return identity
  const error = new Error(`credentials answered no ${missing.join(" and no ")}`)
  error.name = "CredentialsProviderError"
  throw error
}

const isExpiring = ({ expiration }: Identity): boolean =>
  expiration !== undefined && expiration.getTime() - Date.now() < early

/** Asks the function when the first call is made. Calls that come while it answers wait for the same answer. */
export const make = (provider: CredentialProvider): Renewable => {
  let current: Promise<Identity> | undefined

  const ask = (properties: Parameters<CredentialProvider>[0]): Promise<Identity> => {
    const asked = Promise.resolve(provider(properties)).then(checked)
    current = asked
    // Whoever asked is told; the next call asks anew.
    asked.catch(() => {
      if (current === asked) current = undefined
    })
    return asked
  }

  const memoized: CredentialProvider = async (properties) => {
    const identity = await (current ?? ask(properties))
    return isExpiring(identity) ? ask(properties) : identity
  }
  // The SDK would keep what has no expiration for ever.
  return { provider: Object.assign(memoized, { memoized: true }), forget: () => (current = undefined) }
}

/** Whether SQS refuses a call because the credentials are no longer good. */
export const isExpired = (error: unknown): boolean =>
  error instanceof Error && /^(ExpiredToken|TokenRefreshRequired)/.test(error.name)
