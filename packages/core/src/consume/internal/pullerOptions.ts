/** Options of pullers, their kinds, and their errors: what a program needs of a puller before it makes one. */
import * as Data from "effect/Data"
import * as Delay from "../../message/Delay.ts"
import * as OptionKind from "../../options/OptionKind.ts"
import type * as OptionNames from "../../options/OptionNames.ts"
import * as ConsumerOptions from "../ConsumerOptions.ts"

/** Options of a puller: those of a consumer, except for the time and the number of its handlers. */
export interface Options extends ConsumerOptions.Policies, Pulling {}

/** Options of a puller, but for its policies. */
export interface Pulling extends ConsumerOptions.Intake {
  /** How long a pulled batch may stay unsettled, 1 ms to 12 hours; a number counts milliseconds. Default 30 seconds. */
  readonly lease?: Delay.Input | undefined
  /** Number of batches that may be pulled and unsettled at a time, 1 to 1,000; further pulls wait. Default 10. */
  readonly maxOpen?: number | undefined
}

/** Options of one pull. */
export interface PullOptions {
  /** How long to wait for a first message, 0 to 24 hours; a number counts milliseconds. Default 5 seconds. */
  readonly wait?: Delay.Input | undefined
}

/** The error of a pull that comes after the puller was drained, or has stopped itself. */
export class PullerDrained extends Data.TaggedError("PullerDrained")<{ readonly queue: string }> {
  override get message() {
    return `pull: the puller of ${this.queue} was drained. Make another one`
  }
}

/** The error that a pulled batch fails with when it has not ended within its lease. `lease` is in milliseconds. */
export class LeaseExpired extends Data.TaggedError("LeaseExpired")<{ readonly lease: number }> {
  override get message() {
    return `lease: the pulled batch was not settled within ${Delay.format(this.lease)}`
  }
}

const {
  concurrency: _concurrency,
  handlerTimeout: _handlerTimeout,
  prefetch: _prefetch,
  ...shared
} = ConsumerOptions.kinds

/** All options and their kinds, by which wrong ones are found. */
export const kinds: OptionNames.Of<Options> = {
  ...shared,
  lease: Delay.kind(1, 12 * 60 * 60_000),
  maxOpen: OptionKind.whole(1, 1000)
}

/** The options of one pull and their kinds. */
export const pullKinds: OptionNames.Of<PullOptions> = { wait: Delay.kind(0, Delay.max) }
