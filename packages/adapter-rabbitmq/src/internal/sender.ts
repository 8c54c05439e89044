/** Sends messages on the way that their plan names, declaring what the way needs. */
import type { BrokerError } from "@requeue/core/BrokerError"
import { BrokerError as Refusal } from "@requeue/core/BrokerError"
import type { Outgoing } from "@requeue/core/Outgoing"
import * as Effect from "effect/Effect"
import type { Settings } from "../RabbitMqOptions.ts"
import * as Plan from "../RabbitMqPlan.ts"
import type { Properties } from "./client.ts"
import type { Declarer } from "./declarer.ts"
import * as Names from "./names.ts"
import type { Object } from "./objects.ts"
import type { Answers, Publisher } from "./publisher.ts"
import { direct, toPublication } from "./toPublication.ts"

/** A message, the plan of its queue, and the delivery that it is a copy of. */
export interface Item {
  readonly message: Outgoing
  readonly plan: Plan.Plan
  readonly original?: Properties | undefined
}

export interface Sender {
  /** Succeeds when all are confirmed; else fails with the first error. Sends none when one cannot be sent. */
  readonly send: (items: ReadonlyArray<Item>) => Effect.Effect<void, BrokerError>
  /** Sends each on its own account; `confirmed` hears at once of those that are well. */
  readonly sendEach: (items: ReadonlyArray<Item>, confirmed: (index: number) => void) => Effect.Effect<Answers>
}

const tooLong = (queue: string): BrokerError =>
  new Refusal({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unsupported",
    detail: `the name has ${Buffer.byteLength(queue)} bytes, AMQP carries at most ${Names.limit}`,
    remedy: "Use a shorter name"
  })

const tooLarge = ({ body, queue }: Outgoing, limit: number): BrokerError =>
  new Refusal({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "BodyTooLarge",
    detail: `the body has ${body.length} bytes, the limit is ${limit}`,
    remedy: "Send a smaller body, or raise max_message_size of the server and maxBodySize here"
  })

export const make = (env: {
  readonly settings: Settings
  readonly declarer: Declarer
  readonly publisher: Publisher
  readonly maxBodySize: number
  readonly uniqueName: () => string
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}): Sender => {
  const { declarer, maxBodySize, publisher, settings } = env
  const own = Names.own(settings)
  const homes = new Map<string, ReadonlyArray<Object>>()

  const refusal = ({ message, original }: Item): BrokerError | undefined => {
    if (Buffer.byteLength(message.queue) > Names.limit) return tooLong(message.queue)
    // What came from the server may go back to it.
    return original === undefined && message.body.length > maxBodySize ? tooLarge(message, maxBodySize) : undefined
  }

  /** The same list for the same queue: the declarer knows lists again. */
  const homeOf = (queue: string): ReadonlyArray<Object> => {
    const known = homes.get(queue) ?? Plan.home(queue, settings)
    homes.set(queue, known)
    return known
  }

  const needs = ({ message, plan }: Item): ReadonlyArray<ReadonlyArray<Object>> =>
    message.delay > 0 ? [homeOf(message.queue), plan.route(message.delay).objects] : [homeOf(message.queue)]

  /** What is still to be declared for these. */
  const missing = (items: ReadonlyArray<Item>) =>
    items.flatMap((item) =>
      needs(item).flatMap((objects) => (declarer.knows(objects) ? [] : [{ objects, queue: item.message.queue }]))
    )

  /** What declaring took is not waited for once more. */
  const rest = (delay: number, started: number): number => {
    const spent = Math.floor(env.elapsed() - started)
    return spent < settings.resolution ? delay : Math.max(1, delay - spent)
  }

  const publication = ({ message, original, plan }: Item, started: number) => {
    const way = message.delay > 0 ? plan.route(rest(message.delay, started)) : direct(message.queue)
    return toPublication(message, way, { copy: env.uniqueName(), own }, original)
  }

  const publish = (items: ReadonlyArray<Item>, started: number, confirmed?: (index: number) => void) =>
    publisher.send(
      items.map((item) => publication(item, started)),
      confirmed
    )

  const attempt = (
    items: ReadonlyArray<Item>,
    started: number,
    confirmed?: (index: number) => void
  ): Effect.Effect<Answers, BrokerError> => {
    const needed = missing(items)
    if (needed.length === 0) return publish(items, started, confirmed)
    const declared = Effect.forEach(needed, ({ objects, queue }) => declarer.ensure(objects, queue), { discard: true })
    return Effect.flatMap(declared, () => publish(items, started, confirmed))
  }

  /** What is unroutable, although it has been declared: somebody has deleted it. It is declared again, once. */
  const insist = (items: ReadonlyArray<Item>, confirmed?: (index: number) => void) => {
    const started = env.elapsed()
    return Effect.flatMap(attempt(items, started, confirmed), (answers): Effect.Effect<Answers, BrokerError> => {
      const lost = answers.flatMap((error, index) => (error?.reason === "Unroutable" ? [index] : []))
      if (lost.length === 0) return Effect.succeed(answers)
      const again = lost.map((index) => items[index]!)
      for (const objects of again.flatMap(needs)) declarer.doubt(objects)
      const second = attempt(again, started, (place) => confirmed?.(lost[place]!))
      return Effect.map(second, (found) => merge(answers, lost, found))
    })
  }

  const failIfAny = (answers: Answers): Effect.Effect<void, BrokerError> => {
    const failed = answers.find((error) => error !== undefined)
    return failed === undefined ? Effect.void : Effect.fail(failed)
  }

  return {
    send: (items) =>
      Effect.suspend(() => {
        for (const item of items) {
          const error = refusal(item)
          if (error !== undefined) return Effect.fail(error)
        }
        return Effect.flatMap(insist(items), failIfAny)
      }),
    sendEach: (items, confirmed) =>
      Effect.suspend(() => {
        const answers = items.map(refusal)
        const places = answers.flatMap((error, index) => (error === undefined ? [index] : []))
        // What needs something declared goes alone: if that is refused, the others must not suffer.
        const isReady = (index: number) => missing([items[index]!]).length === 0
        const groups = [places.filter(isReady), ...places.filter((index) => !isReady(index)).map((index) => [index])]
        const sendGroup = (group: ReadonlyArray<number>) => {
          const well = new Set<number>()
          const sent = insist(
            group.map((index) => items[index]!),
            (place) => {
              well.add(place)
              confirmed(group[place]!)
            }
          )
          const failed = (error: BrokerError) => group.map((_, place) => (well.has(place) ? undefined : error))
          return Effect.match(sent, {
            onSuccess: (found) => [group, found] as const,
            onFailure: (error) => [group, failed(error)] as const
          })
        }
        const open = groups.filter((group) => group.length > 0)
        return Effect.map(Effect.forEach(open, sendGroup, { concurrency: "unbounded" }), (sent) =>
          sent.reduce<Answers>((all, [group, found]) => merge(all, group, found), answers)
        )
      })
  }
}

/** The answers, with those at `places` replaced. */
const merge = (answers: Answers, places: ReadonlyArray<number>, found: Answers): Answers => {
  const merged = [...answers]
  places.forEach((place, index) => (merged[place] = found[index]))
  return merged
}
