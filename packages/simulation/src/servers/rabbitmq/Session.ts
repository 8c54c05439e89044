/**
 * A channel, as the server sees it.
 *
 * | rule | source |
 * | --- | --- |
 * | the prefetch applies to consumers that are added after it | https://www.rabbitmq.com/docs/consumer-prefetch |
 * | a mandatory message without a queue is returned, then confirmed | https://www.rabbitmq.com/docs/confirms#when-publishes-are-confirmed |
 * | a message that one of its queues has rejected is nacked | https://www.rabbitmq.com/docs/maxlength |
 * | closing a channel returns its messages as failed | https://www.rabbitmq.com/docs/quorum-queues#poison-message-handling |
 * | `reject` with requeue is a failure, `nack` with requeue is none from 4.3 on | same page |
 * | a consumer of a deleted queue gets a cancel | https://www.rabbitmq.com/docs/consumer-cancel |
 * | a quorum queue cannot be deleted only if it is empty or unused; the connection is closed | seen on 3.10.8, 4.0.5 and 4.3.6 |
 */
import type { Host } from "../Host.ts"
import { type Consumer, Deliveries, type Delivery } from "./Deliveries.ts"
import type { Return } from "./Fact.ts"
import type { Queue } from "./Queue.ts"
import { stripped } from "./Exchanges.ts"
import { Refusal } from "./Refusal.ts"
import type { Binding } from "./Routing.ts"
import type { Publication } from "./Message.ts"
import type { Flags, Vhost } from "./Vhost.ts"

/** The frames that the server sends on a channel without a request. */
export interface Ends {
  readonly delivered: (consumerTag: string, delivery: Delivery) => void
  readonly returned: (publication: Publication) => void
  readonly confirmed: (sequence: number, isStored: boolean) => void
  readonly cancelled: (consumerTag: string) => void
  readonly closed: (refusal: Refusal) => void
}

/** The end of a publication before the rules apply: a refusal, no queue for it, or a queue that rejects it. */
export type Verdict = Refusal | "unrouted" | "rejected"

interface Env {
  readonly host: Host
  readonly version: string
  readonly vhost: Vhost
  /** The connection. */
  readonly owner: object
  readonly user: string
  /** The name of the client. */
  readonly client: string
  readonly maxMessageSize: number
  readonly verdict: (publication: Publication) => Verdict | undefined
  readonly ends: Ends
}

/** A channel. */
export class Session {
  readonly #env: Env
  readonly #consumers = new Map<string, Consumer>()
  readonly #deliveries: Deliveries
  #prefetch = 0
  #published = 0
  #confirms = false
  #generated = 0
  isOpen = true
  /** Its connection ends: it receives nothing more. */
  isEnding = false

  constructor(env: Env) {
    this.#env = env
    this.#deliveries = new Deliveries(env.host, env.version)
  }

  bind(binding: Binding): void {
    this.#env.vhost.bind(binding, this.#env.owner)
  }

  unbind(binding: Binding): void {
    this.#env.vhost.exchanges.unbind(binding)
  }

  declareExchange(name: string, type: string, flags: Flags): void {
    this.#env.vhost.exchanges.declare(name, type, flags.durable, flags.arguments)
  }

  checkExchange(name: string): void {
    this.#env.vhost.exchanges.check(name)
  }

  deleteExchange(name: string): void {
    this.#env.vhost.exchanges.delete(name)
  }

  declareQueue(name: string, flags: Flags) {
    return this.#declared(this.#env.vhost.declareQueue(name, flags, this.#env.owner))
  }

  checkQueue(name: string) {
    return this.#declared(this.#env.vhost.queue(stripped(name), this.#env.owner))
  }

  #declared({ counts: { consumers, ready }, declaration: { name } }: Queue) {
    return { queue: name, messageCount: ready, consumerCount: consumers }
  }

  deleteQueue(name: string, { isEmpty = false, isUnused = false } = {}) {
    const { owner, vhost } = this.#env
    if (!vhost.queues.has(name)) return { messageCount: 0 }
    const queue = vhost.queue(name, owner)
    const object = vhost.nameOf("queue", name)
    if (queue.isQuorum && (isEmpty || isUnused))
      throw new Refusal(
        540,
        `cannot delete ${object}. queue.delete operations with ${isUnused ? "if-unused" : "if-empty"} flag set are not supported by quorum queues`
      )
    if (isUnused && queue.counts.consumers > 0) throw new Refusal(406, `${object} in use`)
    if (isEmpty && queue.counts.ready > 0) throw new Refusal(406, `${object} not empty`)
    return { messageCount: vhost.deleteQueue(name) }
  }

  purgeQueue(name: string) {
    return { messageCount: this.#env.vhost.queue(name, this.#env.owner).purge() }
  }

  prefetch(count: number): void {
    this.#prefetch = count
  }

  selectConfirms(): void {
    this.#confirms = true
  }

  consume(
    name: string,
    {
      consumerTag = "",
      exclusive = false,
      priority = 0
    }: { consumerTag?: string | undefined; exclusive?: boolean | undefined; priority?: number | undefined }
  ) {
    const { client, ends, owner, vhost } = this.#env
    const queue = vhost.queue(name, owner)
    const tag = consumerTag === "" ? `amq.ctag-${++this.#generated}` : consumerTag
    if (this.#consumers.has(tag)) throw new Refusal(530, `attempt to reuse consumer tag '${tag}'`)
    if (exclusive && queue.counts.consumers > 0)
      throw new Refusal(403, `${vhost.nameOf("queue", name)} in exclusive use`)
    this.#deliveries.sync(queue)
    const limit = this.#prefetch
    const consumer: Consumer = {
      queue,
      client,
      priority,
      unsettled: 0,
      hasRoom: () => this.isOpen && !this.isEnding && (limit === 0 || consumer.unsettled < limit),
      deliver: (entry) => {
        consumer.unsettled++
        ends.delivered(tag, this.#deliveries.add({ entry, queue, consumer }))
      },
      cancelled: () => {
        this.#consumers.delete(tag)
        ends.cancelled(tag)
      }
    }
    this.#consumers.set(tag, consumer)
    return { consumerTag: tag, begin: () => this.#consumers.get(tag) === consumer && queue.add(consumer) }
  }

  cancel(consumerTag: string) {
    const consumer = this.#consumers.get(consumerTag)
    if (consumer !== undefined) {
      this.#deliveries.sync(consumer.queue)
      this.#consumers.delete(consumerTag)
      consumer.queue.remove(consumer)
    }
    return { consumerTag }
  }

  /** Takes one message; `undefined` from an empty queue. */
  get(name: string, noAck: boolean): Delivery | undefined {
    const queue = this.#env.vhost.queue(name, this.#env.owner)
    this.#deliveries.sync(queue)
    const entry = queue.get(this.#env.client)
    if (entry === undefined) return undefined
    const delivery = this.#deliveries.add({ entry, queue, consumer: undefined })
    if (noAck) this.ack(delivery.deliveryTag, false)
    return delivery
  }

  publish(publication: Publication, isMandatory: boolean): void {
    const { ends, maxMessageSize, user, verdict, vhost } = this.#env
    const { content, properties } = publication
    if (content.length > maxMessageSize)
      throw new Refusal(406, `message size ${content.length} is larger than configured max size ${maxMessageSize}`)
    if (properties.userId !== undefined && properties.userId !== user)
      throw new Refusal(
        406,
        `user_id property set to '${String(properties.userId)}' but authenticated user was '${user}'`
      )
    const found = verdict(publication)
    if (found instanceof Refusal) throw found
    const { isStored, targets } =
      found === undefined
        ? vhost.publish(publication)
        : { isStored: found !== "rejected", targets: found === "rejected" ? 1 : 0 }
    if (targets === 0 && isMandatory) ends.returned(publication)
    if (this.#confirms) ends.confirmed(++this.#published, isStored)
  }

  ack(deliveryTag: number, isMultiple: boolean): void {
    this.#deliveries.settle(deliveryTag, isMultiple, (queue, entries) => {
      for (const entry of entries) queue.ack(entry)
    })
  }

  nack(deliveryTag: number, isMultiple: boolean, isRequeued: boolean): void {
    this.#return(deliveryTag, isMultiple, isRequeued, "released")
  }

  reject(deliveryTag: number, isRequeued: boolean): void {
    this.#return(deliveryTag, false, isRequeued, "failed")
  }

  #return(deliveryTag: number, isMultiple: boolean, isRequeued: boolean, how: Return): void {
    this.#deliveries.settle(deliveryTag, isMultiple, (queue, entries) => {
      if (isRequeued) queue.requeue(entries, how)
      else for (const entry of entries) queue.reject(entry)
    })
  }

  /** Carries out the settlements that are under way. A message that they return may go to a consumer of this channel again. */
  flush(): void {
    this.#deliveries.flush()
  }

  /** Closes the channel: consumers end, and unsettled messages are returned. */
  close(): void {
    if (!this.isOpen) return
    this.flush()
    this.isOpen = false
    for (const consumer of this.#consumers.values()) consumer.queue.remove(consumer)
    this.#consumers.clear()
    this.#deliveries.returnAll()
  }
}
