/** Batch policies: how many messages a handler gets together, and how long the first one waits for others. */
import * as Delay from "../message/Delay.ts"
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"

/** When the handler gets a batch. See {@link Options}. */
export interface BatchPolicy {
  readonly maxBatchSize: number
  /**
   * Longest time that the first message waits for others, in milliseconds. With 0, the handler gets the messages that
   * have arrived.
   */
  readonly maxBatchTimeout: number
}

/** The options of {@link make}. */
export interface Options {
  /** Largest number of messages in a batch. Range: 1 to 100. Default: 10. */
  readonly maxBatchSize?: number | undefined
  /**
   * Longest wait of a batch's first message for others. Range: 0 to 60 seconds; a number means milliseconds. Default: 5
   * seconds.
   */
  readonly maxBatchTimeout?: Delay.DurationInput | undefined
}

const kinds: OptionNames.Of<Options> = {
  maxBatchSize: OptionKind.whole(1, 100),
  maxBatchTimeout: Delay.kind(0, 60_000)
}

/**
 * Builds a batch policy: the handler gets a batch when it is full, or when its first message has waited
 * `maxBatchTimeout`.
 *
 * @throws RangeError when an option is unknown, `maxBatchSize` is not a whole number from 1 to 100, or
 * `maxBatchTimeout` is not 0 to 60 seconds
 */
export const make = (options: Options = {}): BatchPolicy => {
  OptionNames.check("BatchPolicy.make", options, kinds)
  const { maxBatchSize = 10, maxBatchTimeout = 5000 } = options
  return { maxBatchSize, maxBatchTimeout: Delay.parse("maxBatchTimeout", maxBatchTimeout) }
}

/** The policy that passes on each message alone, when it arrives: the default of consumers of single messages. */
export const single: BatchPolicy = make({ maxBatchSize: 1, maxBatchTimeout: 0 })
