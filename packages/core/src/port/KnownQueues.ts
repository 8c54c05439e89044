/**
 * Records the dead-letter queues of a connected broker, from the policies of the program's consumers and its config
 * file. Names by convention, such as `orders.dlq` or `orders.dlq.parked`, are always known.
 */
import * as Effect from "effect/Effect"
import * as RetryPolicy from "../policy/RetryPolicy.ts"
import type { Service } from "./Broker.ts"
import type { BrokerError } from "./BrokerError.ts"

const known = new WeakMap<Service, Map<string, ReadonlyArray<string>>>()

/** `orders.dlq`, or `orders-dlq` and `orders-dlq.fifo` where names have no dots. */
const convention = /[^\w]dlq([^\w]parked)?(\.fifo)?$|[^\w]parked(\.fifo)?$/

const of = (broker: Service): Map<string, ReadonlyArray<string>> => {
  const queues = known.get(broker) ?? new Map<string, ReadonlyArray<string>>()
  known.set(broker, queues)
  return queues
}

/** Makes a broker that is made from another one share its records. */
export const share = (broker: Service, made: Service): void => void known.set(made, of(broker))

/** Records the dead-letter queues of a queue's policy. */
export const add = (broker: Service, queue: string, retry: RetryPolicy.RetryPolicy): void => {
  const queues = of(broker)
  const names = RetryPolicy.deadLetterQueues(retry, queue)
  queues.set(queue, [...new Set([...(queues.get(queue) ?? []), ...names])])
}

const running = new WeakMap<Service, Map<string, Set<ReadonlyArray<string>>>>()

/**
 * Records a running consumer until `end` is called. `others` are the dead-letter queues of another consumer of the same
 * queue, if they differ. The queue of a dead letter then depends on which consumer makes it.
 */
export const start = (broker: Service, queue: string, retry: RetryPolicy.RetryPolicy) => {
  add(broker, queue, retry)
  const queues = running.get(broker) ?? new Map<string, Set<ReadonlyArray<string>>>()
  running.set(broker, queues)
  const consumers = queues.get(queue) ?? new Set()
  queues.set(queue, consumers)
  const names = RetryPolicy.deadLetterQueues(retry, queue)
  const others = [...consumers].find((each) => each.toSorted().join("\n") !== names.toSorted().join("\n"))
  consumers.add(names)
  return { others, end: () => void consumers.delete(names) }
}

/** Returns the dead-letter queues of a queue by its known policy, or by the default policy if none is known. */
export const deadLetterQueues = (broker: Service, queue: string): ReadonlyArray<string> =>
  known.get(broker)?.get(queue) ?? RetryPolicy.deadLetterQueues(RetryPolicy.make(), queue)

/** Returns the queues whose known policies name this dead-letter queue. */
export const origins = (broker: Service, name: string): ReadonlyArray<string> =>
  [...(known.get(broker) ?? [])].flatMap(([queue, names]) => (names.includes(name) ? [queue] : []))

/** Whether the broker treats two names as one queue. */
export const isSame = ({ admin }: Service, one: string, other: string): Effect.Effect<boolean, BrokerError> =>
  one === other ? Effect.succeed(true) : (admin.isSame?.(one, other) ?? Effect.succeed(false))

const firstSame = (broker: Service, names: Iterable<string>, name: string) =>
  Effect.gen(function* () {
    for (const each of names) if (yield* isSame(broker, each, name)) return each
    return undefined
  })

/**
 * Whether dead letters in `name` may come from `queue`, by the known policy of `queue` or, if none is known, by the
 * default policy.
 */
export const isOrigin = (broker: Service, name: string, queue: string): Effect.Effect<boolean, BrokerError> =>
  Effect.gen(function* () {
    const queues = known.get(broker) ?? new Map<string, ReadonlyArray<string>>()
    const own = queues.has(queue) ? queue : ((yield* firstSame(broker, queues.keys(), queue)) ?? queue)
    const homes = new Set([name, name.replace(/[.-]parked(?=(\.fifo)?$)/, "")])
    for (const home of homes) {
      if ((yield* firstSame(broker, deadLetterQueues(broker, own), home)) !== undefined) return true
    }
    return false
  })

/** Whether a known policy or the naming convention makes this a dead-letter queue. */
export const isDeadLetterQueue = (broker: Service, name: string): boolean =>
  convention.test(name) || origins(broker, name).length > 0
