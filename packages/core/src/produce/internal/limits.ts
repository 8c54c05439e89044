/** The limits of sends, and the errors of sends that exceed them. */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Deadlines from "../../runtime/Deadlines.ts"
import * as Timers from "../../runtime/Timers.ts"
import * as Delay from "../../message/Delay.ts"
import * as OptionKind from "../../options/OptionKind.ts"
import type * as OptionNames from "../../options/OptionNames.ts"
import type { Service } from "../../port/Broker.ts"
import { BrokerError } from "../../port/BrokerError.ts"
import * as Sends from "./sends.ts"

/** The options of `Producer.make`. */
export interface Options {
  /**
   * Time limit of a send, from its call to the broker's confirmation. Range: 1 ms to 24 hours; a number means
   * milliseconds. Default: 30 seconds.
   */
  readonly publishTimeout?: Delay.DurationInput | undefined
  /** Largest number of unconfirmed messages of the connection; further sends wait. Range: 1 or more. Default: 1,000. */
  readonly maxPending?: number | undefined
}

export const kinds: OptionNames.Of<Options> = {
  publishTimeout: Delay.kind(1, Delay.max),
  maxPending: OptionKind.whole(1)
}

export const open = (
  broker: Service,
  { maxPending = 1000, publishTimeout = 30_000 }: Options
): Effect.Effect<Sends.Sends & { readonly timeout: Delay.Delay }> =>
  Effect.gen(function* () {
    const timeout = Delay.parse("publishTimeout", publishTimeout)
    // A producer has no end, so its scope never closes. Without sends in flight, nothing sleeps.
    const timers = yield* Effect.provideService(Timers.make, Scope.Scope, yield* Scope.make())
    const sends = Sends.make({
      broker,
      fork: Effect.runForkWith(yield* Effect.context()),
      deadlines: Deadlines.make(timers, timeout, true),
      maxPending,
      cutShort: ([message], cut, isHandedOver) =>
        new BrokerError({
          broker: broker.capabilities.broker,
          operation: "publish",
          queue: message?.queue,
          ...whyCut(cut, isHandedOver, maxPending, Delay.format(timeout))
        })
    })
    return { ...sends, timeout }
  })

/** The outcome of the message, and the remedy. */
const whyCut = (cut: Sends.Cut, isHandedOver: boolean, maxPending: number, waited: string) => {
  if (isHandedOver) {
    const what =
      cut === "late" ? `no confirmation within ${waited}` : "the connection was closed before the confirmation"
    return {
      reason: cut === "late" ? "Timeout" : "ConnectionLost",
      detail: `${what}; the message may or may not have been stored`,
      remedy: "Send the message again with the same id; make handlers idempotent"
    } as const
  }
  if (cut === "closed") {
    return {
      reason: "ConnectionFailed",
      detail: "the connection was closed while the message waited for earlier ones; nothing was sent",
      remedy: "Send the message again"
    } as const
  }
  return {
    reason: "Throttled",
    detail: `${maxPending} messages wait for a confirmation, and none arrived within ${waited}; nothing was sent`,
    remedy: "Send the message again later, or raise maxPending"
  } as const
}
