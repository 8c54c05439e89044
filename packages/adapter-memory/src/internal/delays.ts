/** How long this broker keeps a delay, by its own claims. */
import { BrokerError, type Capabilities, Delay } from "@requeue/core/adapter-kit"

export interface Delays {
  /** Rounds up to the resolution: late, never early. */
  readonly round: (delay: Delay.Delay) => Delay.Delay
  /** Why a message cannot be delayed so long; `undefined` when it can. */
  readonly refusal: (
    operation: "publish" | "settle",
    queue: string,
    delay: Delay.Delay
  ) => BrokerError.BrokerError | undefined
  /** What a release can have of its delay: cut rather than refused, since `metadata.notBefore` still guards the message. */
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
        detail: `a delay of ${Delay.format(delay)} was asked, the broker keeps at most ${Delay.format(reach.native)}`
      })
    },
    release: (delay) => round(reaches(retryDelay, delay) ? delay : retryDelay.native)
  }
}
