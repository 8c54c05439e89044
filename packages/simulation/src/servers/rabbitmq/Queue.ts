/**
 * A queue of RabbitMQ, classic or quorum.
 *
 * | rule | source |
 * | --- | --- |
 * | only the head of a queue expires | https://www.rabbitmq.com/docs/ttl#per-message-ttl-caveats, seen on 3.10.8 |
 * | a message with a TTL of 0 expires unless it is delivered at once | https://www.rabbitmq.com/docs/ttl |
 * | the smaller one of the queue's and the message's TTL applies | same page |
 * | a classic queue returns a message to its place | seen on 3.10.8 |
 * | a quorum queue delivers returned messages first, in the order of their returns; before 4.0 and without a delivery limit it appends them | `return_one` and `requeue` in `rabbit_fifo.erl` |
 * | the TTL of a returned message starts again on quorum queues before 4.0 | seen on 3.10.8 |
 * | quorum queues count returns; from 4.3 on, releases by nack are no failures | https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling |
 * | more failures than the delivery limit make a dead letter | same page |
 * | from 4.3 on, a quorum queue can delay returned messages | https://www.rabbitmq.com/docs/quorum-queues#delayed-retry |
 * | a full queue drops its head, or rejects publications | https://www.rabbitmq.com/docs/maxlength |
 * | the consumers of a quorum queue are counted until their deliveries are settled; a message that was got is a consumer | `query_consumer_count` in `rabbit_fifo.erl` |
 * | consumers take turns; those of a higher priority come first | https://www.rabbitmq.com/docs/consumer-priority |
 * | a single active consumer gets all messages | https://www.rabbitmq.com/docs/consumers#single-active-consumer |
 * | an unused queue with `x-expires` is deleted, without dead letters | https://www.rabbitmq.com/docs/ttl#queue-ttl |
 */
import type { Host } from "../Host.ts"
import * as DeadLetters from "./DeadLetters.ts"
import type { Declaration, Fact, Origin, Return } from "./Fact.ts"
import type { Entry } from "./Entry.ts"
import type { Message, Reason } from "./Message.ts"
import { type Receiver, Receivers } from "./Receivers.ts"
import type { Settings } from "./Settings.ts"
import * as Version from "./Version.ts"
import { Waiting } from "./Waiting.ts"
import * as WakeUp from "./WakeUp.ts"

interface Env {
  readonly host: Host
  readonly version: string
  readonly nextId: () => number
  readonly settings: () => Settings
  /** Sends a dead letter; returns whether all of its queues have it. */
  readonly send: (entry: Entry, reason: Reason, settings: Settings) => boolean
  /** Deletes this queue. */
  readonly expire: () => void
  readonly onFact: (fact: Fact) => void
}

/** A queue. */
export class Queue {
  readonly declaration: Declaration
  readonly createdAt: number
  readonly #env: Env
  readonly #waiting: Waiting
  /** Deliveries, and their consumers; a message that was got has none. */
  readonly #unsettled = new Map<Entry, Receiver | undefined>()
  readonly #consumers = new Receivers()
  readonly #letters: DeadLetters.DeadLetters<readonly [Entry, Reason]>
  #isServing = false
  readonly #timer: WakeUp.WakeUp
  readonly #unused: WakeUp.WakeUp
  isDeleted = false

  constructor(declaration: Declaration, env: Env) {
    this.declaration = declaration
    this.#env = env
    this.createdAt = env.host.now()
    this.#waiting = new Waiting(({ message }) => Math.min(message.properties.priority ?? 0, env.settings().maxPriority))
    this.#letters = DeadLetters.make(env.host, ([entry, reason]) => env.send(entry, reason, env.settings()))
    this.#timer = WakeUp.make(env.host, () => this.serve())
    this.#unused = WakeUp.make(env.host, env.expire)
    this.touch()
  }

  get isQuorum(): boolean {
    return this.declaration.type === "quorum"
  }

  get counts() {
    const { dueTimes, size } = this.#waiting
    return {
      ready: size,
      unsettled: this.#unsettled.size,
      delayed: dueTimes.length,
      held: this.#letters.size(),
      consumers: this.#consumers.size + (this.isQuorum ? this.#former() : 0),
      lastDue: dueTimes.length === 0 ? undefined : Math.max(...dueTimes)
    }
  }

  /** Consumers that are cancelled and have deliveries; each message that was got counts as one. */
  #former(): number {
    const receivers = [...this.#unsettled.values()]
    const gets = receivers.filter((each) => each === undefined).length
    return gets + new Set(receivers.filter((each) => each !== undefined && !this.#consumers.has(each))).size
  }

  /** The messages that wait for a consumer, in the order of their delivery. */
  get waiting(): ReadonlyArray<Entry> {
    this.#dropExpired()
    return this.#waiting.ready
  }

  /** The queue is used: the time until it expires starts again. */
  touch(): void {
    const { host, settings } = this.#env
    const isUsed = this.#consumers.size > 0 || this.isDeleted
    this.#unused.at(isUsed ? Infinity : host.now() + settings().expires)
  }

  /** Stores a message; false if the queue is full. */
  publish(message: Message, origin: Origin): boolean {
    const { host, nextId, onFact, settings } = this.#env
    const { maxLength, maxLengthBytes, overflow, ttl } = settings()
    const own = message.properties.expiration
    const entry: Entry = {
      id: nextId(),
      message,
      place: 0,
      delivery: 0,
      expiresAt: host.now() + Math.min(ttl, own === undefined ? Infinity : Number(own)),
      returns: 0,
      failures: 0,
      isRedelivered: false
    }
    const { size } = this.#waiting
    const isFull = size >= maxLength || (maxLengthBytes < Infinity && this.#waiting.bytes >= maxLengthBytes)
    if (overflow !== "drop-head" && isFull) {
      if (overflow === "reject-publish-dlx") this.#giveUp(entry, "maxlen")
      return false
    }
    onFact({ _tag: "Stored", queue: this.declaration.name, entry, origin })
    entry.place = entry.id
    const consumer = size === 0 ? this.#next() : undefined
    if (consumer === undefined) {
      this.#waiting.insert(entry)
      this.#trim()
      this.serve()
    } else this.#handTo(consumer, entry)
    return true
  }

  /** Takes the first message; `undefined` if there is none. */
  get(client: string): Entry | undefined {
    this.touch()
    this.#dropExpired()
    const entry = this.#waiting.shift()
    this.#arm()
    if (entry === undefined) return undefined
    this.#handOut(entry, undefined, client)
    return entry
  }

  add(consumer: Receiver): void {
    this.#consumers.add(consumer, this.#env.settings().isSingleActive)
    this.touch()
    this.serve()
  }

  remove(consumer: Receiver): void {
    this.#consumers.remove(consumer)
    this.touch()
    if (this.declaration.isAutoDelete && this.#consumers.size === 0) this.#env.expire()
    else this.serve()
  }

  ack(entry: Entry): void {
    if (this.#unsettled.delete(entry)) this.#gone(entry, "settled")
  }

  reject(entry: Entry): void {
    if (this.#unsettled.delete(entry)) this.#giveUp(entry, "rejected")
  }

  requeue(entries: ReadonlyArray<Entry>, how: Return): void {
    const { host, settings, version } = this.#env
    const { deliveryLimit, retry } = settings()
    const isFailure = how !== "released" || !Version.isAtLeast(version, "4.3.0")
    for (const entry of entries) {
      if (!this.#unsettled.delete(entry)) continue
      entry.returns++
      if (isFailure) entry.failures++
      entry.isRedelivered = true
      if (this.isQuorum && entry.failures > deliveryLimit) {
        this.#giveUp(entry, "delivery_limit")
        continue
      }
      const isDelayed = isFailure ? retry.failed : retry.returned
      const due = host.now() + (isDelayed ? retry.delay(entry.failures) : 0)
      this.#env.onFact({ _tag: "Back", queue: this.declaration.name, entry, how, due })
      if (isDelayed) this.#waiting.delay(entry, due)
      else this.#takeBack(entry, deliveryLimit)
    }
    this.#trim()
    this.serve()
  }

  purge(): number {
    const removed = this.#waiting.removeReady()
    for (const entry of removed) this.#gone(entry, "purged")
    return removed.length
  }

  delete(): void {
    this.isDeleted = true
    for (const entry of [...this.#waiting.all, ...this.#unsettled.keys()]) this.#gone(entry, "deleted")
    this.#unsettled.clear()
    this.#letters.end()
    this.#arm()
    this.touch()
    this.#consumers.cancel()
  }

  /** Forgets messages that are not on disk, because the server ends. */
  forget(isKept: (entry: Entry) => boolean): void {
    for (const entry of this.#waiting.keepOnly(isKept)) this.#gone(entry, "deleted")
  }

  /** Delivers what consumers have room for. */
  serve(): void {
    if (this.#isServing || this.isDeleted) return
    this.#isServing = true
    this.#waiting.takeDue(this.#env.host.now())
    for (;;) {
      this.#dropExpired()
      if (this.#waiting.head === undefined) break
      const consumer = this.#next()
      if (consumer === undefined) break
      this.#handTo(consumer, this.#waiting.shift()!)
    }
    this.#isServing = false
    this.#arm()
  }

  #next(): Receiver | undefined {
    return this.#consumers.next(this.#env.settings().isSingleActive)
  }

  #handTo(consumer: Receiver, entry: Entry): void {
    this.#handOut(entry, consumer, consumer.client)
    consumer.deliver(entry)
  }

  #handOut(entry: Entry, consumer: Receiver | undefined, client: string): void {
    entry.delivery = this.#env.nextId()
    this.#unsettled.set(entry, consumer)
    this.#env.onFact({ _tag: "HandedOut", queue: this.declaration.name, entry, client })
  }

  #takeBack(entry: Entry, deliveryLimit: number): void {
    const { host, nextId, settings, version } = this.#env
    if (!this.isQuorum) return this.#waiting.insert(entry)
    if (Version.isAtLeast(version, "4.0.0")) return this.#waiting.return(entry)
    const own = entry.message.properties.expiration
    entry.expiresAt = host.now() + Math.min(settings().ttl, own === undefined ? Infinity : Number(own))
    if (deliveryLimit !== Infinity) return this.#waiting.return(entry)
    entry.place = nextId()
    this.#waiting.insert(entry)
  }

  #dropExpired(): void {
    const now = this.#env.host.now()
    while ((this.#waiting.head?.expiresAt ?? Infinity) <= now) this.#giveUp(this.#waiting.shift()!, "expired")
  }

  /** Drops the oldest messages of a queue that is too long. */
  #trim(): void {
    const { maxLength, maxLengthBytes, overflow } = this.#env.settings()
    if (overflow !== "drop-head") return
    while (this.#waiting.size > maxLength || (maxLengthBytes < Infinity && this.#waiting.bytes > maxLengthBytes))
      this.#giveUp(this.#waiting.shift()!, "maxlen")
  }

  #giveUp(entry: Entry, reason: Reason): void {
    const { send, settings } = this.#env
    const { deadLetterExchange, isAtLeastOnce } = settings()
    this.#gone(entry, reason)
    if (deadLetterExchange === undefined) return
    if (isAtLeastOnce) this.#letters.add([entry, reason])
    else send(entry, reason, settings())
  }

  #gone(entry: Entry, why: (Fact & { readonly _tag: "Gone" })["why"]): void {
    this.#env.onFact({ _tag: "Gone", queue: this.declaration.name, entry, why })
  }

  /** Wakes up when the head expires, or a delayed message is due. */
  #arm(): void {
    const at = Math.min(this.#waiting.head?.expiresAt ?? Infinity, ...this.#waiting.dueTimes)
    this.#timer.at(this.isDeleted ? Infinity : at)
  }
}
