/** Sends messages on the way that their plan names, declaring what the way needs. */
import { BrokerError, type Outgoing } from "@requeue/core/adapter-kit"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Settings } from "../../RabbitMqOptions.ts"
import * as Plan from "../../RabbitMqPlan.ts"
import type { Properties } from "../client.ts"
import type { Declarer } from "../declare/declare.ts"
import * as Names from "../names.ts"
import type { Object } from "../declare/objects.ts"
import type { Answer } from "./confirms.ts"
import type { Publisher, Submission } from "./publisher.ts"
import { direct, toPublication } from "./toPublication.ts"

/** A message, the plan of its queue, and the delivery that it is a copy of. */
export interface Item {
  readonly message: Outgoing.Outgoing
  readonly plan: Plan.Plan
  readonly original?: Properties | undefined
}

/** What became of each item, in order; `undefined` is well. */
type Answers = ReadonlyArray<BrokerError.BrokerError | undefined>

export interface Sender {
  /** Succeeds when all are confirmed; else fails with the first error. Sends none when one cannot be sent. */
  readonly send: (items: ReadonlyArray<Item>) => Effect.Effect<void, BrokerError.BrokerError>
  /** Sends each on its own account; `confirmed` hears at once of each that is well, by its index. */
  readonly sendEach: (items: ReadonlyArray<Item>, confirmed?: (index: number) => void) => Effect.Effect<Answers>
}

/** One that is to be sent, from the call to its answer. */
interface Sending {
  readonly item: Item
  readonly started: number
  readonly answer: Answer
  /** A defect is the whole call's. */
  readonly die: (cause: Cause.Cause<never>) => void
  submission: Submission | undefined
  isWithdrawn: boolean
}

const tooLong = (queue: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
    broker: "rabbitmq",
    operation: "publish",
    queue,
    reason: "Unsupported",
    detail: `the name has ${Buffer.byteLength(queue)} bytes, AMQP carries at most ${Names.limit}`,
    remedy: "Use a shorter name"
  })

const tooLarge = ({ body, queue }: Outgoing.Outgoing, limit: number): BrokerError.BrokerError =>
  new BrokerError.BrokerError({
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
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}): Sender => {
  const { declarer, maxBodySize, publisher, settings } = env
  const own = Names.own(settings)
  const homes = new Map<string, ReadonlyArray<Object>>()

  const refusal = ({ message, original }: Item): BrokerError.BrokerError | undefined => {
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

  /** What declaring took is not waited for once more. */
  const rest = (delay: number, started: number): number => {
    const spent = Math.floor(env.elapsed() - started)
    return spent < settings.resolution ? delay : Math.max(1, delay - spent)
  }

  const publication = ({ message, original, plan }: Item, started: number) => {
    const way = message.delay > 0 ? plan.route(rest(message.delay, started)) : direct(message.queue)
    return toPublication(message, way, { copy: env.uniqueName(), own }, original)
  }

  const publish = (sending: Sending, hear: Answer): void => {
    if (!sending.isWithdrawn) sending.submission = publisher.submit(publication(sending.item, sending.started), hear)
  }

  /** Declares what it needs. If that is refused, the others do not suffer. */
  const declare = ({ answer, die, item }: Sending, then: () => void): void => {
    const declared = Effect.forEach(needs(item), (objects) => declarer.ensure(objects, item.message.queue), {
      discard: true
    })
    const done = Effect.match(declared, { onFailure: answer, onSuccess: then })
    env.fork(Effect.catchCause(done, (cause) => Effect.sync(() => die(cause))))
  }

  /** What is unroutable, although it has been declared: somebody has deleted it. It is declared again, once. */
  const insist = (sending: Sending, error: BrokerError.BrokerError | undefined): void => {
    if (error?.reason !== "Unroutable") return sending.answer(error)
    for (const objects of needs(sending.item)) declarer.doubt(objects)
    declare(sending, () => publish(sending, sending.answer))
  }

  const start = (sending: Sending): void => {
    const refused = refusal(sending.item)
    if (refused !== undefined) return sending.answer(refused)
    const first = () => publish(sending, (error) => insist(sending, error))
    if (needs(sending.item).every(declarer.knows)) first()
    else declare(sending, first)
  }

  const withdraw = (sending: Sending): void => {
    sending.isWithdrawn = true
    if (sending.submission !== undefined) publisher.withdraw(sending.submission)
  }

  const sendEach: Sender["sendEach"] = (items, confirmed = () => {}) =>
    items.length === 0
      ? Effect.succeed([])
      : Effect.callback((resume) => {
          const started = env.elapsed()
          const answers: Array<BrokerError.BrokerError | undefined> = []
          const die = (cause: Cause.Cause<never>): void => resume(Effect.failCause(cause))
          let open = items.length
          const sendings = items.map((item, index): Sending => {
            const answer = (error: BrokerError.BrokerError | undefined): void => {
              answers[index] = error
              if (error === undefined) confirmed(index)
              if (--open === 0) resume(Effect.succeed(answers))
            }
            return { item, started, answer, die, submission: undefined, isWithdrawn: false }
          })
          sendings.forEach(start)
          return Effect.sync(() => sendings.forEach(withdraw))
        })

  return {
    sendEach,
    send: (items) =>
      Effect.suspend(() => {
        for (const item of items) {
          const error = refusal(item)
          if (error !== undefined) return Effect.fail(error)
        }
        return Effect.flatMap(sendEach(items), (answers) => {
          const failed = answers.find((error) => error !== undefined)
          return failed === undefined ? Effect.void : Effect.fail(failed)
        })
      })
  }
}
