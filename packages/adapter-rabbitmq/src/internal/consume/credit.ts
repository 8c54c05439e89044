/**
 * Credit on a channel: consumers with a prefetch each, whose sum, with what cancelled consumers left unsettled, never
 * exceeds the credit.
 *
 * A prefetch cannot be changed under a consumer, and quorum queues have none per channel. So less credit cancels the
 * consumers, and more credit adds one with the difference. A cancel is written before any settlement that is given
 * later, on the same channel, so that the server acts in this order.
 */
export interface Credit {
  readonly set: (limit: number) => void
  /** A delivery of this consumer has come. */
  readonly arrived: (consumer: Consumer) => void
  /** A delivery of this consumer is settled. */
  readonly settled: (consumer: Consumer) => void
  /** Done when lowered credit has been written; `undefined` when it has been already. */
  readonly barrier: () => Promise<void> | undefined
  /** The channel is gone. */
  readonly end: () => void
}

export interface Consumer {
  /** Chosen here, so that a delivery can be told apart before the server has answered. */
  readonly name: string
  readonly prefetch: number
  /** Credit's own. */
  unsettled: number
  isCancelled: boolean
}

export interface Operations {
  readonly consume: (consumer: Consumer) => Promise<unknown>
  readonly cancel: (consumer: Consumer) => Promise<unknown>
  readonly name: () => string
}

/** The largest prefetch of AMQP. */
const most = 65_535

export const make = ({ cancel, consume, name }: Operations): Credit => {
  let consumers: Array<Consumer> = []
  /** The sum of their prefetch. */
  let granted = 0
  /** What cancelled consumers left unsettled. */
  let orphans = 0
  let limit = 0
  let isBusy = false
  let hasEnded = false
  /** Cancels stand in the driver's queue behind the answer to another one. */
  let isUnwritten = false
  let waiters: Array<() => void> = []

  const isTooMuch = (): boolean => consumers.length > 0 && granted + orphans > limit

  const run = (operation: Promise<unknown>): void => {
    isBusy = true
    // A refused operation closes the channel, and the channel's end is what the subscription acts on.
    const after = () => {
      isBusy = false
      isUnwritten = false
      pump()
    }
    operation.then(after, after)
  }

  const release = (): void => {
    if (!hasEnded && (isUnwritten || isTooMuch())) return
    const resumed = waiters
    waiters = []
    for (const resume of resumed) resume()
  }

  const cancelAll = (): void => {
    const cancelled = consumers
    consumers = []
    granted = 0
    for (const consumer of cancelled) {
      consumer.isCancelled = true
      orphans += consumer.unsettled
    }
    // The driver writes one request at a time, so with several the last is written after the answers to the others.
    isUnwritten = cancelled.length > 1
    run(Promise.all(cancelled.map(cancel)))
    release()
  }

  const pump = (): void => {
    if (isBusy || hasEnded) return
    if (isTooMuch()) return cancelAll()
    release()
    const gap = Math.min(limit, most) - granted - orphans
    // Few consumers: one at a time for every settled orphan would be many.
    if (gap <= 0 || !(consumers.length === 0 || orphans === 0 || gap * 2 >= limit)) return
    const consumer: Consumer = { name: name(), prefetch: gap, unsettled: 0, isCancelled: false }
    consumers.push(consumer)
    granted += gap
    run(consume(consumer))
  }

  return {
    set: (wanted) => {
      limit = wanted
      pump()
    },
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
    barrier: () =>
      hasEnded || !(isUnwritten || isTooMuch()) ? undefined : new Promise((resume) => waiters.push(resume)),
    end: () => {
      hasEnded = true
      release()
    }
  }
}
