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

/** The channel's requests, names and timer. */
export interface Dependencies {
  /** Resolves with the server's answer. */
  readonly consume: (consumer: Consumer) => Promise<unknown>
  /** Resolves with the server's answer. */
  readonly cancel: (consumer: Consumer) => Promise<unknown>
  readonly uniqueName: () => string
  /**
   * Whether the server delivers to one consumer only. Then a new consumer replaces it to raise credit. Default: false.
   */
  readonly isSingle?: boolean
  /** Runs a function after this many milliseconds. */
  readonly after: (millis: number, run: () => void) => void
}

/** Milliseconds after which even a few settled deliveries of cancelled consumers are replaced. */
const moment = 100

/** Consumers per channel. Instead of one more, a single consumer replaces all of them. */
const maxConsumers = 8

/** A request under way. The next one waits for its answer. */
interface Running {
  readonly answered: Promise<void>
  /** Whether it is written. The driver writes the second of two cancels after the first is answered. */
  readonly isWritten: boolean
}

class ChannelCredit implements Credit {
  readonly #env: Dependencies
  readonly #waiters: Array<() => void> = []
  #consumers: ReadonlyArray<Consumer> = []
  /** Unsettled deliveries of cancelled consumers. */
  #orphans = 0
  #limit = 0
  #running: Running | undefined = undefined
  /** Whether filling the gap is postponed. */
  #isWaiting = false
  #hasEnded = false

  constructor(env: Dependencies) {
    this.#env = env
  }

  set(limit: number): void {
    this.#limit = limit
    this.#pump()
  }

  arrived(consumer: Consumer): void {
    consumer.unsettled++
    if (consumer.isCancelled) this.#orphans++
  }

  settled(consumer: Consumer): void {
    consumer.unsettled--
    if (!consumer.isCancelled) return
    this.#orphans--
    this.#pump()
  }

  // A field, because the settler passes it on.
  readonly barrier = (): Promise<void> | undefined =>
    this.#isWritten() ? undefined : new Promise((resume) => this.#waiters.push(resume))

  async stop(): Promise<void> {
    this.set(0)
    // A consumer that is being started is cancelled once it has started.
    while (this.#running !== undefined && !this.#hasEnded) await this.#running.answered
  }

  end(): void {
    this.#hasEnded = true
    this.#release()
  }

  /** The credit that the server has: what live consumers may hold, and the orphans. */
  #given(): number {
    return this.#consumers.reduce((sum, { prefetch }) => sum + prefetch, this.#orphans)
  }

  #isTooMuch(): boolean {
    return this.#consumers.length > 0 && this.#given() > this.#limit
  }

  #isWritten(): boolean {
    return this.#hasEnded || (this.#running?.isWritten !== false && !this.#isTooMuch())
  }

  #release(): void {
    if (this.#isWritten()) for (const resume of this.#waiters.splice(0)) resume()
  }

  #pump(isDue = false): void {
    if (this.#running !== undefined || this.#hasEnded) return
    const gap = Math.min(this.#limit, maxPrefetch) - this.#given()
    if (this.#isTooMuch()) this.#cancelAll()
    else if (gap > 0) this.#fill(gap, isDue)
    this.#release()
  }

  /**
   * Adds a consumer. It waits until the gap is half of the credit, or for a moment because orphans may be held for hours. A
   * consumer for each settled orphan would be too many.
   */
  #fill(prefetch: number, isDue: boolean): void {
    const { consume, isSingle = false, uniqueName } = this.#env
    const live = this.#consumers.length
    if (!isDue && live > 0 && this.#orphans > 0 && prefetch * 2 < this.#limit) return this.#wait()
    if (live >= (isSingle ? 1 : maxConsumers)) return this.#cancelAll()
    const consumer: Consumer = { name: uniqueName(), prefetch, unsettled: 0, isCancelled: false }
    this.#consumers = [...this.#consumers, consumer]
    this.#run(consume(consumer), true)
  }

  #wait(): void {
    if (this.#isWaiting) return
    this.#isWaiting = true
    this.#env.after(moment, () => {
      this.#isWaiting = false
      this.#pump(true)
    })
  }

  #cancelAll(): void {
    const cancelled = this.#consumers
    this.#consumers = []
    for (const consumer of cancelled) {
      consumer.isCancelled = true
      this.#orphans += consumer.unsettled
    }
    this.#run(Promise.all(cancelled.map(this.#env.cancel)), cancelled.length === 1)
  }

  #run(operation: Promise<unknown>, isWritten: boolean): void {
    // A rejected request closes the channel, and the subscription reacts to that.
    const advance = (): void => {
      this.#running = undefined
      this.#pump()
    }
    this.#running = { answered: operation.then(advance, advance), isWritten }
  }
}

/** Starts without credit. */
export const make = (env: Dependencies): Credit => new ChannelCredit(env)
