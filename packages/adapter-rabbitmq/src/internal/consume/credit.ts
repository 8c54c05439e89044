/**
 * Credit on a channel: consumers with a prefetch each. The sum of their prefetches and of the unsettled deliveries of
 * cancelled consumers never exceeds the credit.
 *
 * A consumer's prefetch cannot be changed, and quorum queues have no prefetch per channel. So less credit cancels the
 * consumers, and more credit adds one with the difference. A cancel is written on the same channel before any later
 * settlement, and the server acts in this order. https://www.rabbitmq.com/docs/consumer-prefetch
 */

/** The credit of one channel. */
export interface Credit {
  /** Sets how many deliveries may be unsettled from now on. */
  readonly set: (limit: number) => void
  /** Must be called for each delivery of this consumer. */
  readonly arrived: (consumer: Consumer) => void
  /** Must be called when a delivery of this consumer is settled. */
  readonly settled: (consumer: Consumer) => void
  /** Resolves when lowered credit has been written; `undefined` if it is written already. */
  readonly barrier: () => Promise<void> | undefined
  /** Removes all credit. Resolves when the server has ended all consumers, so all their deliveries have arrived. */
  readonly stop: () => Promise<void>
  /** Must be called when the channel is closed. */
  readonly end: () => void
}

/** A consumer on the server. */
export interface Consumer {
  /** The consumer tag, chosen here: a delivery may arrive before the server's answer. */
  readonly name: string
  readonly prefetch: number
  /** Only this module changes it. */
  unsettled: number
  /** Only this module changes it. */
  isCancelled: boolean
}

/** The largest prefetch of AMQP. */
const maxPrefetch = 65_535

/** The requests to the server. Each resolves with the server's answer. */
export interface Requests {
  readonly consume: (consumer: Consumer) => Promise<unknown>
  readonly cancel: (consumer: Consumer) => Promise<unknown>
}

/** Milliseconds after which even a few settled deliveries of cancelled consumers are replaced. */
const moment = 100

/** Consumers per channel. Instead of one more, a single consumer replaces all of them. */
const maxConsumers = 8

/**
 * Starts without credit.
 *
 * Long, because all of it is one state, and the order of its changes matters.
 */
export const make = ({
  after,
  cancel,
  consume,
  isSingle = false,
  uniqueName
}: Requests & {
  readonly uniqueName: () => string
  /**
   * Whether the server delivers to one consumer only. Then a new consumer replaces it to raise credit. Default: false.
   */
  readonly isSingle?: boolean
  /** Runs a function after this many milliseconds. */
  readonly after: (millis: number, run: () => void) => void
}): Credit => {
  let consumers: Array<Consumer> = []
  /** The sum of the consumers' prefetches. */
  let granted = 0
  /** Unsettled deliveries of cancelled consumers. */
  let orphans = 0
  let limit = 0
  let isBusy = false
  /** The current request, or the last one. */
  let running: Promise<void> = Promise.resolve()
  let hasEnded = false
  /** Whether filling the gap is postponed. */
  let isWaiting = false
  /** Whether cancels wait in the driver's queue for the answer to another one. */
  let isUnwritten = false
  const waiters: Array<() => void> = []

  const gapOf = (): number => Math.min(limit, maxPrefetch) - granted - orphans
  const isTooMuch = (): boolean => consumers.length > 0 && granted + orphans > limit
  const isWritten = (): boolean => hasEnded || !(isUnwritten || isTooMuch())

  const run = (operation: Promise<unknown>): void => {
    isBusy = true
    // A rejected request closes the channel, and the subscription reacts to that.
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
    // The driver writes a request only after the previous one is answered.
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
   * Postpones filling a gap until it is half of the credit, or for a moment because orphans may be held for hours. A
   * consumer for each settled orphan would be too many.
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
      // A consumer that is being started is cancelled once it has started.
      while (isBusy && !hasEnded) await running
    },
    end: () => {
      hasEnded = true
      release()
    }
  }
}
