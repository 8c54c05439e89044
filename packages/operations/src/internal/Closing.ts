/** Calls that report their progress if their connection is closed meanwhile. */
import { type Broker, BrokerError } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/**
 * Whether an interruption is the end of the connection, so the call fails with a report of its progress. Default: false,
 * because a program that interrupts a fiber expects no error.
 */
export const isClosing = Context.Reference<boolean>("@requeue/operations/isClosing", { defaultValue: () => false })

/** Runs work. If the connection is closed meanwhile, fails with `stopped`. */
export const told = <A, E, R, F>(
  work: Effect.Effect<A, E, R>,
  { capabilities: { broker } }: Broker.Service,
  queue: string,
  stopped: (cause: BrokerError.BrokerError) => F
): Effect.Effect<A, E | F, R> =>
  Effect.gen(function* () {
    if (!(yield* isClosing)) return yield* work
    const detail = "the connection was closed while it worked"
    const remedy = "Call connect again"
    const error = { broker, operation: "dead letters", queue, reason: "ConnectionLost", detail, remedy } as const
    return yield* Effect.onInterrupt(work, () => Effect.fail(stopped(new BrokerError.BrokerError(error))))
  })
