/** Carries out settlements: what is deleted, hidden and copied, each in batches, and each delivery once. */
import { type Broker, BrokerError, type Delivery, type Outgoing, type BoundedMap } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Answers } from "../batchCall.ts"
import type { Calls } from "./receiptCalls.ts"
import { isExpired, receiptOf } from "../consume/receipt.ts"
import type { Sender } from "../publish/publisher.ts"
import type { Command } from "./toCommand.ts"

const lost = (queue: string, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "sqs", operation: "settle", queue, reason: "LeaseLost", detail })

/**
 * The core takes a lost connection for lost deliveries. Here a call was lost, and the delivery is ours as long as its
 * lease lasts.
 */
const stillOurs = (error: BrokerError.BrokerError): BrokerError.BrokerError => {
  const { broker, detail, operation, queue, reason } = error
  if (reason !== "ConnectionLost") return error
  return new BrokerError.BrokerError({
    broker,
    operation,
    queue,
    reason: "Timeout",
    detail: `it may have happened or not: ${detail}`
  })
}

interface Settling extends Broker.SettleRequest {
  readonly command: Command
}

export const make = (env: {
  readonly queue: string
  readonly calls: Calls
  readonly sender: Sender
  readonly command: (request: Broker.SettleRequest) => Command
  /** Messages whose copy is stored; their redelivery is deleted. */
  readonly copied: BoundedMap.BoundedMap<true>
  /** The message is gone from the queue, or in it again. */
  readonly onEnd: (delivery: Delivery.Delivery, how: "gone" | "returned") => void
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}): Broker.Subscription["settle"] => {
  const { calls, copied, queue } = env

  const remove = (some: ReadonlyArray<Settling>) => calls.remove(some.map(({ delivery }) => receiptOf(delivery).handle))

  const hide = (some: ReadonlyArray<Settling>) =>
    calls.hide(
      some.map(({ command, delivery }) => ({
        handle: receiptOf(delivery).handle,
        seconds: command._tag === "Hide" ? command.seconds : 0
      }))
    )

  /** A copy that is stored has settled its original; if that cannot be deleted, its redelivery will be. */
  const copy = (some: ReadonlyArray<Settling>): Effect.Effect<Answers> =>
    Effect.gen(function* () {
      const messages = some.map(({ command, delivery }) => ({
        message: (command as { readonly outgoing: Outgoing.Outgoing }).outgoing,
        original: receiptOf(delivery).attributes
      }))
      const answers = yield* env.sender.send(messages)
      const stored = some.filter((_, index) => answers[index] === undefined)
      for (const { delivery } of stored) copied.set(receiptOf(delivery).messageId, true)
      yield* remove(stored)
      return answers
    })

  /** The outcome of one request; a failure that leaves the delivery with us lets it be settled again. */
  const conclude = ({ delivery, settlement, command }: Settling, error: BrokerError.BrokerError | undefined) => {
    if (error === undefined) env.onEnd(delivery, command._tag === "Hide" ? "returned" : "gone")
    // What cannot even be given back will come when its lease ends.
    else if (error.reason === "LeaseLost" || (settlement._tag === "Release" && !error.isRetryable)) {
      env.onEnd(delivery, "returned")
    } else receiptOf(delivery).isTaken = false
  }

  const run = (some: ReadonlyArray<Settling>, how: (some: ReadonlyArray<Settling>) => Effect.Effect<Answers>) =>
    Effect.map(how(some), (answers) =>
      some.flatMap((request, index): ReadonlyArray<Broker.SettleFailure> => {
        const error = answers[index] === undefined ? undefined : stillOurs(answers[index])
        conclude(request, error)
        return error === undefined ? [] : [{ delivery: request.delivery, error }]
      })
    )

  const refuse = (some: ReadonlyArray<Settling>) =>
    Effect.succeed(some.map(({ command }) => (command as { readonly error: BrokerError.BrokerError }).error))

  const how = { Delete: remove, Hide: hide, Copy: copy, Refuse: refuse }

  /** Why a delivery cannot be settled. */
  const refusal = ({ delivery, settlement }: Broker.SettleRequest): BrokerError.BrokerError | undefined => {
    const receipt = receiptOf(delivery)
    if (receipt.isTaken) return lost(queue, "the delivery was settled before")
    if (!isExpired(receipt, env.now())) return undefined
    receipt.isTaken = true
    env.onEnd(delivery, "returned")
    // It may still be there, and then nobody else need do it again. But an answer of success would prove nothing.
    if (settlement._tag === "Ack" || settlement._tag === "Drop") env.fork(calls.remove([receipt.handle]))
    return lost(queue, "its visibility timeout had ended; SQS delivers the message again")
  }

  return (requests) =>
    Effect.suspend(() => {
      const refused: Array<Broker.SettleFailure> = []
      const accepted: Array<Settling> = []
      for (const request of requests) {
        const error = refusal(request)
        if (error !== undefined) {
          refused.push({ delivery: request.delivery, error })
          continue
        }
        receiptOf(request.delivery).isTaken = true
        accepted.push({ ...request, command: env.command(request) })
      }
      const kinds = Object.entries(Object.groupBy(accepted, ({ command }) => command._tag))
      const failures = Effect.forEach(kinds, ([tag, some]) => run(some, how[tag as Command["_tag"]]), {
        concurrency: "unbounded"
      })
      return Effect.map(failures, (failed) => [...refused, ...failed.flat()])
    })
}
