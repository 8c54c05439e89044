/** Channels for consumers. The last channel of a connection is reserved for declarations. */
import type { Channel, DriverConnection } from "../client.ts"

/** A connection of the driver that opens channels for consumers. */
export interface Connection extends DriverConnection {
  /** Opens a channel for a consumer. Fails for the last channel. */
  readonly consumerChannel: () => Promise<Channel>
}

const noneLeft = (channelMax: number): string =>
  `No channels left for a consumer: the connection allows ${channelMax} channels (channel_max), each consumer has one, ` +
  "and declarations need the last"

/** Has no channel at first. */
export const make = (driver: DriverConnection): Connection => {
  const { channelMax } = driver
  /** Open channels of consumers. */
  let consumers = 0
  const left = () => void consumers--
  return {
    ...driver,
    consumerChannel: async () => {
      if (consumers >= channelMax - 1) throw new Error(noneLeft(channelMax))
      consumers++
      try {
        const channel = await driver.channel()
        channel.once("close", left)
        return channel
      } catch (error) {
        left()
        throw error
      }
    }
  }
}
