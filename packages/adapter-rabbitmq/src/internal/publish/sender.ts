/** Sends messages on the routes of their plans. Declares the objects of a route first. */
import { BrokerError, Direct, Log } from "@requeue/core/port"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { afterDeletion } from "../declare/afterDeletion.ts"
import type { Declarer } from "../declare/declare.ts"
import { toBrokerError } from "../toBrokerError.ts"
import type { OnOutcome } from "./confirms.ts"
import { Call, givenUp, isWritten, type Outcomes, type Sending } from "./call.ts"
import type { Publisher } from "./publisher.ts"
import * as Refusals from "./refusals.ts"
import type { Item, Routes } from "./routes.ts"

type Begin = Direct.Begin<void, BrokerError.BrokerError>

/** Sends messages with confirmation. */
export interface Sender {
  /** Succeeds when all are confirmed, else fails with the first error. Sends no message if one cannot be sent. */
  readonly send: (items: ReadonlyArray<Item>) => Direct.Direct<void, BrokerError.BrokerError>
  /** The same, started at once. */
  readonly begin: (items: ReadonlyArray<Item>, ...then: Parameters<Begin>) => ReturnType<Begin>
  /** Sends each message independently. Calls `confirmed` with the index of each message when the server has confirmed it. */
  readonly sendEach: (items: ReadonlyArray<Item>, confirmed?: (index: number) => void) => Effect.Effect<Outcomes>
}

/** Whether the queue or its exchange is missing. */
const isNowhere = (error: BrokerError.BrokerError | undefined): boolean =>
  error?.reason === "Unroutable" || error?.reason === "QueueMissing"

/** Makes the error of an item whose objects could not be declared. */
const undeclared = ({ message, plan }: Item, cause: Cause.Cause<unknown>): BrokerError.BrokerError => {
  const { queue } = message
  const error = toBrokerError(Cause.squash(cause), { operation: "declare", queue }, "Unsupported")
  const { broker, detail, operation, reason, remedy } = error
  // The declaration is a step of the send, and nothing was sent.
  if (reason === "ConnectionFailed")
    return new BrokerError.BrokerError({ broker, operation: "publish", queue, reason, detail, remedy })
  return reason === "QueueMissing" && plan.absent !== undefined
    ? new BrokerError.BrokerError({ broker, operation, queue, reason, detail, remedy: plan.absent })
    : error
}

/** The parts of the broker that all messages share. */
interface Dependencies {
  readonly routes: Routes
  readonly declarer: Pick<Declarer, "ensure" | "knows" | "renew">
  readonly publisher: Publisher
  /** Runs an effect until the broker is closed. */
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Monotonic milliseconds. */
  readonly elapsed: () => number
}

/** Logs once that a route's messages are refused, and once that they are accepted again. */
const telling =
  ({ fork, routes }: Dependencies, refusals: Refusals.Refusals) =>
  (item: Item, error: BrokerError.BrokerError | undefined): void => {
    if (error === undefined && refusals.isEmpty()) return
    const { queue } = item.message
    const parts = routes.parts(item)
    if (error === undefined) {
      if (refusals.taken(parts)) fork(Log.info("the server accepts messages again", { queue }))
    } else if (refusals.failed(parts, routes.refused(item, error), error)) {
      fork(Log.warning("the server refuses messages", { queue, errorMessage: error.message }))
    }
  }

type Done = (error: BrokerError.BrokerError | undefined) => void

/** Runs an effect once for all items that arrive with the same name while it runs. */
const sharing = (fork: Dependencies["fork"]) => {
  const running = new Map<string, Array<Done>>()
  return (item: Item, name: string, effect: Effect.Effect<void, BrokerError.BrokerError>, done: Done): void => {
    const others = running.get(name)
    if (others !== undefined) return void others.push(done)
    const waiting = [done]
    running.set(name, waiting)
    const finish: Done = (error) => {
      running.delete(name)
      for (const each of waiting) each(error)
    }
    fork(
      Effect.matchCause(effect, {
        onFailure: (cause) => finish(undeclared(item, cause)),
        onSuccess: () => finish(undefined)
      })
    )
  }
}

/** Declares what an item needs and publishes it, a second time if that may help. */
const starter = (dependencies: Dependencies) => {
  const { declarer, elapsed, fork, publisher, routes } = dependencies
  const refusals = Refusals.make(elapsed)
  const tell = telling(dependencies, refusals)
  const declaring = sharing(fork)

  const end = (sending: Sending, error: BrokerError.BrokerError | undefined): void => {
    tell(sending.item, error)
    sending.end(error)
  }

  const publish = (sending: Sending, onOutcome: OnOutcome): void => {
    const { call, isWithdrawn, item } = sending
    if (isWithdrawn) return
    sending.wasWritten = isWritten(sending)
    const publication = routes.publication(item, call.started)
    if (publication instanceof BrokerError.BrokerError) onOutcome(publication)
    else sending.submission = publisher.submit(publication, onOutcome)
  }

  /** Declares the objects of an item. A refusal affects no other route. */
  const declare = (sending: Sending, one: Declarer["renew"], then: () => void): void => {
    const { item } = sending
    const { queue } = item.message
    const declared = Effect.forEach(routes.needs(item), (objects) => one(objects, queue), { discard: true })
    declaring(item, routes.name(item), declared, (error) => (error === undefined ? then() : end(sending, error)))
  }

  /**
   * Declares the objects of an item once more, after they were deleted. A deleted queue nacks messages on their way into it, as a
   * full one does, and may exist again by now: only a full one nacks twice.
   * https://www.rabbitmq.com/docs/confirms#server-sent-nacks
   */
  const redeclare = (sending: Sending): void => {
    const again: Declarer["renew"] = (objects, queue) => Effect.andThen(afterDeletion, declarer.renew(objects, queue))
    declare(sending, again, () => publish(sending, (error) => end(sending, error)))
  }

  /** Publishes for the first time. */
  const first = (sending: Sending): void =>
    publish(sending, (error, isBystander) => {
      if (isBystander === true) {
        publish(sending, (second) => {
          tell(sending.item, second)
          // The server may have stored what it has not confirmed.
          sending.end(BrokerError.ofRepetition(error, second))
        })
      } else if (sending.item.message.create === false) end(sending, error)
      else if (isNowhere(error)) redeclare(sending)
      else if (error?.reason === "QueueFull" && routes.isStraight(sending.item)) redeclare(sending)
      else end(sending, error)
    })

  return (sending: Sending): void => {
    const { item } = sending
    const refused = routes.refusal(item) ?? (refusals.isEmpty() ? undefined : refusals.held(routes.parts(item)))
    if (refused !== undefined) return sending.end(refused)
    if (item.message.create === false || routes.needs(item).every(declarer.knows)) first(sending)
    else declare(sending, declarer.ensure, () => first(sending))
  }
}

/** A sender on a publisher. */
export const make = (env: Dependencies): Sender => {
  const { publisher, routes } = env
  const start = starter(env)

  /** The clock matters to delays alone. */
  const startOf = (items: ReadonlyArray<Item>): number =>
    items.some(({ message }) => message.delay > 0) ? env.elapsed() : 0

  const withdraw = ({ sendings }: Call): void => {
    for (const each of sendings) {
      each.isWithdrawn = true
      if (!each.hasEnded) each.error = givenUp(each, publisher.unwritten)
      if (each.submission !== undefined) publisher.withdraw(each.submission)
    }
  }

  const begin: Sender["begin"] = (items, onExit) => {
    for (const item of items) {
      const error = routes.refusal(item)
      if (error !== undefined) return Direct.ended(onExit, Exit.fail(error))
    }
    if (items.length === 0) return Direct.ended(onExit, Exit.void)
    const onEnded = (ended: Call): void => {
      const failed = ended.hasFailed ? BrokerError.ofBatch(ended.outcomes()) : undefined
      onExit(failed === undefined ? Exit.void : Exit.fail(failed))
    }
    const call = new Call(items, startOf(items), onEnded)
    call.sendings.forEach(start)
    return () => {
      withdraw(call)
      return BrokerError.ofBatch(call.outcomes())
    }
  }

  return {
    sendEach: (items, confirmed) =>
      items.length === 0
        ? Effect.succeed([])
        : Effect.callback<Outcomes>((resume) => {
            const onEnded = (ended: Call) => resume(Effect.succeed(ended.outcomes()))
            const call = new Call(items, startOf(items), onEnded, confirmed)
            call.sendings.forEach(start)
            return Effect.sync(() => withdraw(call))
          }),
    send: (items) => Direct.make((onExit) => begin(items, onExit)),
    begin
  }
}
