/** Carries out settlements: deletes, hides and copies messages in batches, each delivery once. */
import { type BoundedMap, Broker, BrokerError, type Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Results } from "../batchCall.ts"
import { isExpired, nameOf, receiptOf } from "../consume/receipt.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { ReceiptCalls } from "./receiptCalls.ts"
import type { Command } from "./toCommand.ts"

interface Dependencies {
  readonly queue: string
  readonly calls: Pick<ReceiptCalls, "changeVisibility" | "deleteMessages">
  readonly publisher: Publisher
  readonly command: (request: Broker.SettleRequest) => Command
  /**
   * Messages whose copy is stored, keyed by id. They are deleted if SQS redelivers them. The core cannot do this:
   * repeating the settlement would store another copy.
   */
  readonly settled: Pick<BoundedMap.BoundedMap<true>, "has" | "set">
  /** Called when a message has left the queue or was returned to it. */
  readonly onEnd: (delivery: Delivery.Delivery, how: "gone" | "returned") => void
  /** Called when a settlement has failed, and the delivery is still held. */
  readonly onHeld: (delivery: Delivery.Delivery) => void
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}

interface Settling<C extends Command = Command> extends Broker.SettleRequest {
  readonly command: C
}

type Tagged<T extends Command["_tag"]> = Settling<Extract<Command, { readonly _tag: T }>>

const lost = (queue: string, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "sqs", operation: "settle", queue, reason: "LeaseLost", detail })

const handleOf = ({ delivery }: Broker.SettleRequest): string => receiptOf(delivery).handle

/** Carries out each kind of command. */
const executor = ({ calls, publisher, settled }: Dependencies) => {
  const remove = (requests: ReadonlyArray<Broker.SettleRequest>) => calls.deleteMessages(requests.map(handleOf))
  return {
    remove,
    hide: (requests: ReadonlyArray<Tagged<"Hide">>) =>
      calls.changeVisibility(
        requests.map((request) => ({ handle: handleOf(request), seconds: request.command.seconds }))
      ),
    /**
     * A stored copy settles its original. If the original is not deleted now, its redelivery will be. If SQS refuses
     * deletes, it would be redelivered forever.
     */
    copy: (requests: ReadonlyArray<Tagged<"Copy">>) =>
      Effect.gen(function* () {
        const items = requests.map(({ command, delivery }) => ({
          message: command.outgoing,
          original: receiptOf(delivery).attributes,
          source: nameOf(receiptOf(delivery))
        }))
        const results = [...(yield* publisher.publish(items))]
        const stored = [...requests.keys()].filter((index) => results[index] === undefined)
        for (const index of stored) settled.set(receiptOf(requests[index]!.delivery).messageId, true)
        const removed = yield* remove(stored.map((index) => requests[index]!))
        for (const [position, index] of stored.entries()) {
          const error = removed[position]
          if (error !== undefined && Broker.fateOf(error) === "rejected") results[index] = error
        }
        return results
      }),
    leave: (requests: ReadonlyArray<Tagged<"Leave">>) => Effect.succeed(requests.map(() => undefined)),
    refuse: (requests: ReadonlyArray<Tagged<"Refuse">>) => Effect.succeed(requests.map(({ command }) => command.error))
  }
}

/**
 * Makes the `settle` of a subscription.
 *
 * Long, because all outcomes of a settlement meet here.
 */
export const make = (env: Dependencies): Broker.Subscription["settle"] => {
  const { calls, onEnd, onHeld, queue, settled } = env
  const { copy, hide, leave, refuse, remove } = executor(env)

  /** Concludes one request. A delivery that is not lost is still held, and can be settled again. */
  const conclude = (
    { command, delivery, settlement }: Settling,
    error: BrokerError.BrokerError | undefined
  ): ReadonlyArray<Broker.SettleFailure> => {
    if (error === undefined) {
      onEnd(delivery, command._tag === "Hide" || command._tag === "Leave" ? "returned" : "gone")
      return []
    }
    const fate = Broker.fateOf(error)
    if (fate === "lost") onEnd(delivery, "returned")
    else {
      const receipt = receiptOf(delivery)
      receipt.isSettling = false
      if (settlement._tag === "Retry") receipt.heldUntil = env.now() + settlement.delay
      else if (settlement._tag === "DeadLetter") receipt.heldUntil ??= 0
      if (command._tag === "Hide") {
        receipt.leaseError = error
        receipt.isLeft ||= fate === "unknown"
      }
      onHeld(delivery)
    }
    return [{ delivery, error, fate, smaller: error.reason === "BodyTooLarge" }]
  }

  const run = <S extends Settling>(
    requests: ReadonlyArray<S>,
    execute: (requests: ReadonlyArray<S>) => Effect.Effect<Results>
  ): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> => {
    if (requests.length === 0) return Effect.succeed([])
    return Effect.map(execute(requests), (results) =>
      requests.flatMap((request, index) => conclude(request, results[index]))
    )
  }

  /** Returns why a delivery cannot be settled. */
  const refusal = ({ delivery, settlement }: Broker.SettleRequest): BrokerError.BrokerError | undefined => {
    const receipt = receiptOf(delivery)
    if (receipt.isSettling) return lost(queue, "the delivery was already settled")
    if (!isExpired(receipt, env.now())) return undefined
    receipt.isSettling = true
    onEnd(delivery, "returned")
    // The message may still be in the queue, so the delete is tried, although SQS reports success in any case.
    const isDone = settlement._tag === "Ack" || settlement._tag === "Drop" || settled.has(receipt.messageId)
    if (isDone) env.fork(calls.deleteMessages([receipt.handle]))
    return lost(queue, "its visibility timeout had ended; SQS redelivers the message")
  }

  return (requests) =>
    Effect.suspend(() => {
      const refused: Array<Broker.SettleFailure> = []
      const accepted: Array<Settling> = []
      for (const request of requests) {
        const error = refusal(request)
        if (error !== undefined) {
          refused.push({ delivery: request.delivery, error, fate: "lost" })
          continue
        }
        receiptOf(request.delivery).isSettling = true
        accepted.push({ ...request, command: env.command(request) })
      }
      const tagged = <T extends Command["_tag"]>(tag: T) =>
        accepted.filter((request): request is Tagged<T> => request.command._tag === tag)
      const deleted = tagged("Delete")
      // The usual case: one call, without a fiber for each kind of command.
      if (deleted.length === requests.length) return run(deleted, remove)
      const failures = Effect.all(
        [
          run(deleted, remove),
          run(tagged("Hide"), hide),
          run(tagged("Copy"), copy),
          run(tagged("Refuse"), refuse),
          run(tagged("Leave"), leave)
        ],
        { concurrency: "unbounded" }
      )
      return Effect.map(failures, (failed) => [...refused, ...failed.flat()])
    })
}
