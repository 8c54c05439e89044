/**
 * Guards the calls that move or remove letters. They refuse a queue that nothing shows to be a dead-letter queue: a purge
 * of `orders` instead of `orders.dlq` would empty the live queue. They also refuse a dead-letter queue that was found for
 * `orders`, and also has letters of another queue.
 */
import { type Broker, BrokerError, type Delivery } from "@requeue/core"
import { KnownQueues } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Reading from "./reading.ts"

/** The most messages that are checked: one that is not a dead letter is enough. */
const sample = 100

/** A call on a queue without `force`. */
export interface Call {
  readonly operation: string
  /** The queues whose policies name this dead-letter queue; `undefined` if the caller gave its name. */
  readonly of: ReadonlyArray<string> | undefined
  /** Whether the call acts on letters of one origin only. */
  readonly isOfOrigin: boolean
}

const refusal = (
  { capabilities: { broker } }: Broker.Service,
  queue: string,
  operation: string,
  why: string,
  remedy: string
) =>
  new BrokerError.BrokerError({
    broker,
    operation,
    queue,
    reason: "QueueMismatch",
    detail: `nothing was done: ${why}`,
    remedy
  })

const notDeadLetters = (broker: Broker.Service, queue: string, operation: string, seen: string) =>
  refusal(
    broker,
    queue,
    operation,
    `no policy known here names ${queue} as a dead-letter queue, and it has ${seen}`,
    `For the dead letters of ${queue}, use deadLettersOf or --queue; to act on this queue itself, confirm its name: { force: ${JSON.stringify(queue)} } or --force ${queue}`
  )

const shared = (broker: Broker.Service, queue: string, { of = [], operation }: Call, others: Iterable<string>) => {
  const each = of.map(
    (name) => `for the letters of ${name} alone, use { origin: ${JSON.stringify(name)} } or --origin ${name}`
  )
  const all = `for all letters, use { force: ${JSON.stringify(queue)} } or --force ${queue}`
  const remedy = [...each, all].join("; ")
  const why = `${queue} also has dead letters of ${[...others].join(", ")}`
  return refusal(broker, queue, operation, why, `F${remedy.slice(1)}`)
}

/**
 * Fails if no policy, no naming convention and no metadata show that the queue is a dead-letter queue. It also fails if the
 * queue was found by the policy of another queue, has letters of a third one, and the call does not choose among them.
 * `watched` is the broker as the call uses it; the policies are those of the broker itself.
 */
export const check = (
  broker: Broker.Service,
  watched: Broker.Service,
  queue: string,
  call: Call
): Effect.Effect<void, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const { isOfOrigin, of, operation } = call
    const isKnown = KnownQueues.isDeadLetterQueue(broker, queue)
    const mustBeAlone = of !== undefined && !isOfOrigin
    if (isKnown && !mustBeAlone) return
    const own = new Set(of)
    const others = new Set(KnownQueues.origins(broker, queue).filter((name) => !own.has(name)))
    let [letters, strangers] = [0, 0]
    const visit = ({ metadata: { deadLetter } }: Delivery.Delivery) => {
      // Another tool may have moved an unchanged letter back to its own queue: there it is not a dead letter any more.
      if (deadLetter === undefined || deadLetter.queue === queue) return void strangers++
      letters++
      if (!own.has(deadLetter.queue)) others.add(deadLetter.queue)
    }
    const reading = Reading.open(watched, queue, { limit: sample })
    yield* Effect.scoped(Effect.flatMap(reading, (opened) => Reading.each(opened, visit)))
    if (!isKnown && strangers > 0)
      return yield* notDeadLetters(broker, queue, operation, "messages that are not dead letters")
    if (!isKnown && letters === 0 && of === undefined)
      return yield* notDeadLetters(broker, queue, operation, "no dead letters that would show it")
    if (mustBeAlone && others.size > 0) return yield* shared(broker, queue, call, others)
  })
