/** From an error of the driver to a `BrokerError` with a reason and a remedy. */
import { BrokerError, type Deadlines, Delay } from "@requeue/core/port"
import * as Effect from "effect/Effect"

/** The operation of the port that failed, and its queue. */
export interface Context {
  readonly operation: string
  readonly queue?: string | undefined
}

interface Meaning {
  readonly reason: BrokerError.Reason
  readonly remedy?: string
}

/** The first match counts. Cite the page of the broker's documentation that lists its errors. */
const meanings: ReadonlyArray<readonly [RegExp, Meaning]> = [
  [/auth|denied|forbidden/i, { reason: "AccessRefused", remedy: "Check the user, the password and the permissions" }],
  [/too (big|large)/i, { reason: "BodyTooLarge", remedy: "Send a smaller body" }],
  [/no such queue|not found/i, { reason: "QueueMissing", remedy: "Create the queue, or set create: true" }],
  [
    /ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ETIMEDOUT/,
    { reason: "ConnectionFailed", remedy: "Check host and port, and that Acme runs there" }
  ]
]

/** An unknown error counts as a lost connection: the operation may be tried again. Pure. */
export const toBrokerError = (cause: unknown, { operation, queue }: Context): BrokerError.BrokerError => {
  if (cause instanceof BrokerError.BrokerError) return cause
  const detail = cause instanceof Error ? cause.message : String(cause)
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : ""
  const [, meaning = { reason: "ConnectionLost" as const }] =
    meanings.find(([pattern]) => pattern.test(`${code} ${detail}`)) ?? []
  return new BrokerError.BrokerError({ broker: "acme", operation, queue, detail, cause, ...meaning })
}

/** A call of the driver that ends in bounded time. MUST 7. */
export const call = <A>(
  { operation, queue }: Context,
  deadlines: Deadlines.Deadlines,
  run: () => Promise<A>
): Effect.Effect<A, BrokerError.BrokerError> =>
  deadlines.within(Effect.tryPromise({ try: run, catch: (cause) => toBrokerError(cause, { operation, queue }) }), () =>
    Effect.fail(
      new BrokerError.BrokerError({
        broker: "acme",
        operation,
        queue,
        reason: "Timeout",
        detail: `no answer within ${Delay.format(deadlines.timeout)}; the outcome is unknown`
      })
    )
  )
