/**
 * The deliveries of a channel, from their delivery tag to their settlement.
 *
 * | rule | source |
 * | --- | --- |
 * | a settlement of an unknown delivery tag closes the channel | https://www.rabbitmq.com/docs/confirms#consumer-acks-double-acking |
 * | one command to a quorum queue settles the deliveries of one consumer | `rabbit_fifo_client.erl` |
 * | `x-delivery-count` and `x-acquired-count` by version | see `countsOf` |
 * | a message that was got has an `x-delivery-count` of 0 before 3.12 | seen on 3.10.8 |
 */
import type { Host } from "../Host.ts"
import * as Commands from "./Commands.ts"
import type { Entry } from "./Entry.ts"
import * as Fields from "./Fields.ts"
import * as Message from "./Message.ts"
import type { Queue } from "./Queue.ts"
import type { Receiver } from "./Receivers.ts"
import { Refusal } from "./Refusal.ts"
import * as Version from "./Version.ts"

/** A message that the server sends. */
export interface Delivery {
  readonly deliveryTag: number
  readonly redelivered: boolean
  readonly exchange: string
  readonly routingKey: string
  readonly properties: Message.Properties
  readonly table: Buffer | undefined
  readonly content: Buffer
  /** The server's number of it. */
  readonly number: number
}

/** A consumer of a channel. */
export interface Consumer extends Receiver {
  readonly queue: Queue
  unsettled: number
}

/** A delivery that is not settled. One that was got has no consumer. */
export interface Unsettled {
  readonly entry: Entry
  readonly queue: Queue
  readonly consumer: Consumer | undefined
}

/** The server's counts of a delivery, as headers. */
const countsOf = ({ failures, returns }: Entry, queue: Queue, version: string, isGet: boolean): Fields.Table => {
  if (!queue.isQuorum) return {}
  const long = (value: number) => ({ "!": "int64", value })
  if (!Version.isAtLeast(version, "4.3.0"))
    return returns > 0 || (isGet && !Version.isAtLeast(version, "3.12.0")) ? { "x-delivery-count": long(returns) } : {}
  return {
    ...(returns > 0 ? { "x-acquired-count": long(returns) } : {}),
    ...(failures > 0 ? { "x-delivery-count": long(failures) } : {})
  }
}

/** Adds to the group of a key. */
const addTo = <K, A>(groups: Map<K, Array<A>>, key: K, one: A): void => {
  const group = groups.get(key)
  if (group === undefined) groups.set(key, [one])
  else group.push(one)
}

/** The deliveries of a channel. */
export class Deliveries {
  readonly #host: Host
  readonly #version: string
  readonly #unsettled = new Map<number, Unsettled>()
  /** Deliveries whose settlements their queue has not carried out. */
  readonly #underWay = new Set<Unsettled>()
  readonly #commands = new Map<Queue, Commands.Commands>()
  #tags = 0

  constructor(host: Host, version: string) {
    this.#host = host
    this.#version = version
  }

  /** Gives a delivery its tag. */
  add(unsettled: Unsettled): Delivery {
    const { consumer, entry, queue } = unsettled
    const { message } = entry
    const deliveryTag = ++this.#tags
    this.#unsettled.set(deliveryTag, unsettled)
    const added = {
      ...Message.deathHeaders(message, this.#version),
      ...countsOf(entry, queue, this.#version, consumer === undefined)
    }
    return {
      deliveryTag,
      redelivered: entry.isRedelivered,
      exchange: message.exchange,
      routingKey: message.routingKeys[0],
      properties: message.properties,
      table: Object.keys(added).length === 0 ? message.table : Fields.merge(message.table, added),
      content: message.content,
      number: entry.delivery
    }
  }

  /** Settles one delivery, or all up to it; tag 0 stands for the last. */
  settle(
    deliveryTag: number,
    isMultiple: boolean,
    carryOut: (queue: Queue, entries: ReadonlyArray<Entry>) => void
  ): void {
    const last = deliveryTag === 0 && isMultiple ? this.#tags : deliveryTag
    if (deliveryTag !== 0 && !this.#unsettled.has(deliveryTag))
      throw new Refusal(406, `unknown delivery tag ${deliveryTag}`)
    const groups = new Map<Consumer | Queue, Array<Unsettled>>()
    const tags = isMultiple ? [...this.#unsettled.keys()].filter((tag) => tag <= last) : [deliveryTag]
    for (const tag of tags) {
      const one = this.#unsettled.get(tag)!
      this.#unsettled.delete(tag)
      addTo(groups, one.consumer ?? one.queue, one)
    }
    for (const group of groups.values()) {
      const { consumer, queue } = group[0]!
      const entries = group.map(({ entry }) => entry)
      this.#command(queue, group, () => {
        if (consumer !== undefined) consumer.unsettled -= group.length
        carryOut(queue, entries)
        queue.serve()
      })
    }
  }

  /** Carries out the commands that are under way to a queue. */
  sync(queue: Queue): void {
    this.#commands.get(queue)?.sync()
  }

  /** Carries out the commands that are under way, and forgets those that wait. */
  flush(): void {
    for (const commands of this.#commands.values()) commands.end()
  }

  /** Returns all deliveries to their queues as failed. */
  returnAll(): void {
    const groups = new Map<Queue, Array<Entry>>()
    for (const { entry, queue } of [...this.#underWay, ...this.#unsettled.values()]) addTo(groups, queue, entry)
    this.#unsettled.clear()
    for (const [queue, entries] of groups)
      queue.requeue(
        entries.toSorted((one, other) => one.place - other.place),
        "ended"
      )
  }

  #command(queue: Queue, group: ReadonlyArray<Unsettled>, run: () => void): void {
    if (!queue.isQuorum) return run()
    const commands = this.#commands.get(queue) ?? Commands.make(this.#host)
    this.#commands.set(queue, commands)
    for (const one of group) this.#underWay.add(one)
    commands.send(() => {
      for (const one of group) this.#underWay.delete(one)
      run()
    })
  }
}
