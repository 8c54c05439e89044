/** The delays that the broker can keep. */
import { BrokerError, type Capabilities, Delay } from "@requeue/core/port"

/** Delays are in milliseconds. */
export interface Delays {
  /** Rounds a delay up to the resolution, because it must never end early. */
  readonly round: (delay: Delay.Delay) => Delay.Delay
  /** Returns the error of a delay that is too long; `undefined` if the broker can keep it. */
  readonly refusal: (
    operation: "publish" | "settle",
    queue: string,
    delay: Delay.Delay
  ) => BrokerError.BrokerError | undefined
  /** Returns the delay of a release: shortened, not refused, because `metadata.notBefore` still protects the message. */
  readonly release: (delay: Delay.Delay) => Delay.Delay
}

const reaches = ({ beyond, native }: Capabilities.DelayReach, delay: Delay.Delay): boolean =>
  delay <= native || beyond !== undefined

export const make = (capabilities: Capabilities.Capabilities): Delays => {
  const { delayResolution, retryDelay, sendDelay } = capabilities
  const round = (delay: Delay.Delay) => Math.ceil(delay / delayResolution) * delayResolution
  return {
    round,
    refusal: (operation, queue, delay) => {
      const reach = operation === "publish" ? sendDelay : retryDelay
      if (reaches(reach, delay)) return undefined
      return new BrokerError.BrokerError({
        broker: "memory",
        operation,
        queue,
        reason: "Unsupported",
        detail: `the delay is ${Delay.format(delay)}, the broker keeps at most ${Delay.format(reach.native)}`
      })
    },
    release: (delay) => round(reaches(retryDelay, delay) ? delay : retryDelay.native)
  }
}
