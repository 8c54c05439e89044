/** Homes: the queues of messages, as programs know them. All other queues only delay messages on their way home. */
import * as Fields from "../servers/rabbitmq/Fields.ts"
import type { Message, Publication } from "../servers/rabbitmq/Message.ts"
import type { Vhost } from "../servers/rabbitmq/Vhost.ts"

/** The way of a message to its home. */
export interface Way {
  readonly home: string
  /** Milliseconds that it takes at least. */
  readonly delay: number
}

/** The queue that programs use, and that of its dead letters. */
const homes: ReadonlySet<string> = new Set(["work", "work.dlq"])

/** The queue in which the adapter keeps messages that have no way home. */
export const undelivered = "requeue.v1.q.undelivered"

/** Whether a queue is the home of messages. */
const isHome = (queue: string): boolean => homes.has(queue)

type Routed = Pick<Message, "properties" | "routingKeys" | "table">

/** The way of a message that a queue stores; one that never gets home stays there. */
export const wayFrom = (vhost: Vhost, queue: string, { properties, routingKeys, table }: Routed): Way => {
  const headers = Fields.headersOf({ table })
  let own = properties.expiration === undefined ? Infinity : Number(properties.expiration)
  let at = queue
  let delay = 0
  for (const seen = new Set<string>(); !isHome(at) && !seen.has(at); ) {
    seen.add(at)
    const { deadLetterExchange, deadLetterRoutingKey, ttl } = vhost.settingsOf(vhost.queues.get(at)!.declaration)
    // It passes nothing on.
    if (deadLetterExchange === undefined) break
    const wait = Math.min(ttl, own)
    // A consumer takes messages from a queue without a TTL.
    if (wait < Infinity) delay += wait
    own = Infinity
    const keys = deadLetterRoutingKey === undefined ? routingKeys : [deadLetterRoutingKey]
    const [next] = vhost.route(deadLetterExchange, keys, headers)
    // Its queue keeps what it cannot pass on until the exchange is there again, and a consumer may bind its queue until then.
    if (next === undefined || next.declaration.name === undelivered) return { home: keys.find(isHome) ?? at, delay }
    at = next.declaration.name
  }
  return { home: at, delay }
}

/** The home of a publication; the name of a missing queue if it has none. */
export const homeOf = (vhost: Vhost, publication: Publication): string => {
  const { exchange, properties, routingKey, table } = publication
  const [first] = vhost.route(exchange, [routingKey], Fields.headersOf(publication))
  if (first === undefined) return routingKey
  return wayFrom(vhost, first.declaration.name, { properties, routingKeys: [routingKey], table }).home
}
