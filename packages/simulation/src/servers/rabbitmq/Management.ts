/**
 * The management interface of a simulated server: the pages that the adapter reads.
 * https://www.rabbitmq.com/docs/http-api-reference
 *
 * | rule | source |
 * | --- | --- |
 * | counts are up to 5 s old, and missing until they were counted once | https://www.rabbitmq.com/docs/management#statistics-interval, seen on 3.10.8 |
 * | the policies of a queue are missing until then as well | seen on 4.3.6 |
 */
import type { Queue } from "./Queue.ts"
import type { Server } from "./Server.ts"

type Json = Readonly<Record<string, unknown>>

/** Milliseconds between two counts of a queue. */
const interval = 5000

/** Pages by path, such as `queues/%2F/orders`; `undefined` for one that does not exist. */
export type Management = (path: string) => unknown

/** Makes the interface of a server. */
export const make = ({ host, vhost }: Server): Management => {
  const counted = new WeakMap<Queue, { readonly at: number; readonly json: Json }>()

  const countsOf = (queue: Queue): Json => {
    const now = host.now()
    if (now - queue.createdAt < interval) return {}
    const last = counted.get(queue)
    if (last !== undefined && now - last.at < interval) return last.json
    const { consumers, delayed, held, lastDue, ready, unsettled } = queue.counts
    const json = {
      messages: ready + unsettled + delayed,
      messages_ready: ready,
      messages_unacknowledged: unsettled,
      messages_dlx: held,
      messages_delayed: delayed,
      ...(lastDue === undefined ? {} : { last_delayed_at: lastDue }),
      consumers,
      effective_policy_definition: vhost.policyOf(queue.declaration)
    }
    counted.set(queue, { at: now, json })
    return json
  }

  const ofQueue = (queue: Queue): Json => {
    const { arguments: args, name, type } = queue.declaration
    return { name, type, arguments: args, ...countsOf(queue) }
  }

  const policies = (kind: "user" | "operator") =>
    [...vhost.policies[kind].values()].map(({ applyTo = "all", definition, name, pattern, priority = 0 }) => ({
      name,
      pattern,
      definition,
      priority,
      "apply-to": applyTo
    }))

  return (path) => {
    const [kind, , name] = path.split("?")[0]!.split("/").map(decodeURIComponent)
    switch (kind) {
      case "queues": {
        if (name === undefined) return [...vhost.queues.values()].map(ofQueue)
        const queue = vhost.queues.get(name)
        return queue && ofQueue(queue)
      }
      case "exchanges":
        return vhost.exchanges.all.map(({ arguments: args, name: exchange, type }) => ({
          name: exchange,
          type,
          arguments: args
        }))
      case "bindings":
        return [
          ...[...vhost.queues.keys()].map((queue) => ({ source: "", queue, key: queue, arguments: {} })),
          ...vhost.exchanges.bindings
        ].map(({ arguments: args, key, queue, source }) => ({
          source,
          destination: queue,
          destination_type: "queue",
          routing_key: key,
          arguments: args
        }))
      case "policies":
        return policies("user")
      case "operator-policies":
        return policies("operator")
      default:
        return undefined
    }
  }
}
