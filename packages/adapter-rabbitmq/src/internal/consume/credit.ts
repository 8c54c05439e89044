/**
 * Credit on a channel: consumers with a prefetch each. The sum of their prefetches and of the unsettled deliveries of
 * cancelled consumers never exceeds the credit.
 *
 * The prefetch of a consumer cannot be changed, and quorum queues have none per channel. So less credit cancels the
 * consumers, and more credit adds one with the difference. A cancel is written before any settlement that is given
 * later, on the same channel, so that the server acts in this order. https://www.rabbitmq.com/docs/consumer-prefetch
 */

/** The credit of one channel. */
export interface Credit {
  /** How many deliveries may be unsettled from now on. */
  readonly set: (limit: number) => void
  /** A delivery of this consumer has come. */
  readonly arrived: (consumer: Consumer) => void
  /** A delivery of this consumer is settled. */
  readonly settled: (consumer: Consumer) => void
  /** Resolves when lowered credit has been written; `undefined` when it has been already. */
  readonly barrier: () => Promise<void> | undefined
  /** Takes all credit away. Resolves when the server has ended all consumers: whatever it has sent to them has arrived. */
  readonly stop: () => Promise<void>
  /** The channel is gone. */
  readonly end: () => void
}

/** A consumer of the server. */
export interface Consumer {
  /** Its tag, chosen here: its deliveries may come before the server has answered. */
  readonly name: string
  readonly prefetch: number
  /** Only this module changes it. */
  unsettled: number
  /** Only this module changes it. */
  isCancelled: boolean
}

/** The largest prefetch of AMQP. */
const maxPrefetch = 65_535

/** The requests that credit makes on its channel. Each resolves with the server's answer. */
export interface Requests {
  readonly consume: (consumer: Consumer) => Promise<unknown>
  readonly cancel: (consumer: Consumer) => Promise<unknown>
}

/** Milliseconds after which settled deliveries of cancelled consumers are replaced, however few they are. */
const moment = 100

/** Consumers of one channel. When more are wanted, one takes the place of all. */
const maxConsumers = 8

/**
 * No credit, at first.
 *
 * Long, because everything in it is one state, and the order in which it changes is what matters.
 */
export const make = ({
  after,
  cancel,
  consume,
  isSingle = false,
  uniqueName
}: Requests & {
  readonly uniqueName: () => string
  /** Whether the server may deliver to one consumer only: more credit takes its place then. Default: no. */
  readonly isSingle?: boolean
  /** Runs a function so many milliseconds later. */
  readonly after: (millis: number, run: () => void) => void
}): Credit => {
  let consumers: Array<Consumer> = []
  /** The sum of their prefetches. */
  let granted = 0
  /** Unsettled deliveries of cancelled consumers. */
  let orphans = 0
  let limit = 0
  let isBusy = false
  /** The request of the moment, or the last one. */
  let running: Promise<void> = Promise.resolve()
  let hasEnded = false
  /** Whether a gap waits to grow. */
  let isWaiting = false
  /** Whether cancels wait in the driver's queue for the answer to another one. */
  let isUnwritten = false
  const waiters: Array<() => void> = []

  const gapOf = (): number => Math.min(limit, maxPrefetch) - granted - orphans
  const isTooMuch = (): boolean => consumers.length > 0 && granted + orphans > limit
  const isWritten = (): boolean => hasEnded || !(isUnwritten || isTooMuch())

  const run = (operation: Promise<unknown>): void => {
    isBusy = true
    // A refused operation closes the channel, and the subscription acts on that.
    const after = () => {
      isBusy = false
      isUnwritten = false
      pump()
    }
    running = operation.then(after, after)
  }

  const release = (): void => {
    if (isWritten()) for (const resume of waiters.splice(0)) resume()
  }

  const cancelAll = (): void => {
    const cancelled = consumers
    consumers = []
    granted = 0
    for (const consumer of cancelled) {
      consumer.isCancelled = true
      orphans += consumer.unsettled
    }
    // The driver writes a request when the one before it is answered.
    isUnwritten = cancelled.length > 1
    run(Promise.all(cancelled.map(cancel)))
    release()
  }

  const pump = (): void => {
    if (isBusy || hasEnded) return
    if (isTooMuch()) return cancelAll()
    release()
    const gap = gapOf()
    if (gap <= 0) return
    if (consumers.length > 0 && orphans > 0 && gap * 2 < limit) return wait()
    fill(gap)
  }

  const fill = (gap: number): void => {
    if (consumers.length >= (isSingle ? 1 : maxConsumers)) return cancelAll()
    const consumer: Consumer = { name: uniqueName(), prefetch: gap, unsettled: 0, isCancelled: false }
    consumers.push(consumer)
    granted += gap
    run(consume(consumer))
  }

  /**
   * One consumer for every settled orphan would be many: the gap waits until it is half of the credit, or a moment, since
   * orphans may be held for hours.
   */
  const wait = (): void => {
    if (isWaiting) return
    isWaiting = true
    after(moment, () => {
      isWaiting = false
      if (isBusy || hasEnded || isTooMuch()) return pump()
      if (gapOf() > 0) fill(gapOf())
    })
  }

  const set = (wanted: number): void => {
    limit = wanted
    pump()
  }

  return {
    set,
    arrived: (consumer) => {
      consumer.unsettled++
      if (consumer.isCancelled) orphans++
    },
    settled: (consumer) => {
      consumer.unsettled--
      if (!consumer.isCancelled) return
      orphans--
      pump()
    },
    barrier: () => (isWritten() ? undefined : new Promise((resume) => waiters.push(resume))),
    stop: async () => {
      set(0)
      // A consumer that the server is about to begin is cancelled after that.
      while (isBusy && !hasEnded) await running
    },
    end: () => {
      hasEnded = true
      release()
    }
  }
}
