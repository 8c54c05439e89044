/** The delays that this broker keeps, by its capabilities. */
import { BrokerError, type Capabilities, Delay } from "@requeue/core/port"

/** Delays are in milliseconds. */
export interface Delays {
  /** Rounds a delay up to the resolution, so that it ends late and never early. */
  readonly round: (delay: Delay.Delay) => Delay.Delay
  /** The error of a delay that is too long; `undefined` when the broker keeps it. */
  readonly refusal: (
    operation: "publish" | "settle",
    queue: string,
    delay: Delay.Delay
  ) => BrokerError.BrokerError | undefined
  /** The delay of a release: cut rather than refused, since `metadata.notBefore` still guards the message. */
  readonly release: (delay: Delay.Delay) => Delay.Delay
}

const reaches = ({ beyond, native }: Capabilities.DelayReach, delay: Delay.Delay): boolean =>
  delay <= native || beyond !== undefined

/** The delays under these capabilities. */
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
