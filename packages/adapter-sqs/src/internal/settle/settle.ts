/** Carries out settlements: deletes, hides and copies messages in batches. */
import { type BoundedMap, type Broker, BrokerError, type Delivery, EventLoop } from "@requeue/core/port"
import { Settling } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type { Results } from "../batchCall.ts"
import { isExpired, nameOf, receiptOf } from "../consume/receipt.ts"
import type { Publisher } from "../publish/publisher.ts"
import type { ReceiptCalls } from "./receiptCalls.ts"
import { type Command, remove } from "./toCommand.ts"

type CopyCommand = Extract<Command, { readonly _tag: "Copy" }>
type DirectCommand = Exclude<Command, CopyCommand>

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

const lost = (queue: string, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "sqs", operation: "settle", queue, reason: "LeaseLost", detail })

const handleOf = ({ delivery }: Broker.SettleRequest): string => receiptOf(delivery).handle

const isAck = ({ settlement: { _tag } }: Broker.SettleRequest): boolean => _tag === "Ack" || _tag === "Drop"

/** Claims a delivery whose visibility timeout has not ended. */
const claiming =
  ({ calls, fork, now, onEnd, queue, settled }: Dependencies) =>
  (request: Broker.SettleRequest): BrokerError.BrokerError | undefined => {
    const { delivery } = request
    const receipt = receiptOf(delivery)
    if (receipt.isSettling) return lost(queue, "the delivery was already settled")
    receipt.isSettling = true
    if (!isExpired(receipt, now())) return undefined
    onEnd(delivery, "returned")
    // The message may still be in the queue, so the delete is tried, although SQS reports success in any case.
    const isDone = isAck(request) || settled.has(receipt.messageId)
    if (isDone) fork(calls.deleteMessages([receipt.handle]))
    return lost(queue, "its visibility timeout had ended; SQS redelivers the message")
  }

/** Holds a delivery again after its settlement has failed. */
const releasing =
  ({ now, onHeld }: Pick<Dependencies, "now" | "onHeld">) =>
  (
    { command, delivery, settlement }: Settling.Claim<Command>,
    error: BrokerError.BrokerError,
    fate: Broker.Fate
  ): undefined => {
    const receipt = receiptOf(delivery)
    receipt.isSettling = false
    if (settlement._tag === "Retry") receipt.heldUntil = now() + settlement.delay
    else if (settlement._tag !== "Release") receipt.heldUntil ??= 0
    if (command._tag === "Hide") {
      receipt.leaseError = error
      receipt.isLeft ||= fate === "unknown"
    }
    onHeld(delivery)
  }

/** Makes the `settle` of a subscription. */
export const make = (env: Dependencies): Broker.Subscription["settle"] => {
  const { calls, command, fork, onEnd, publisher, settled } = env

  /** Ends claims with the results of a call, which have their order. */
  const end = <C>(
    claims: ReadonlyArray<Settling.Claim<C>>,
    done: Settling.Done<C>,
    call: Effect.Effect<Results>
  ): void => {
    if (claims.length === 0) return
    fork(Effect.map(call, (errors) => claims.forEach((claim, index) => done(claim, errors[index]))))
  }

  const copied: Array<{ claim: Settling.Claim<DirectCommand>; done: Settling.Done<DirectCommand> }> = []
  // Copies are stored together, so one call deletes their originals.
  const deleteCopied = EventLoop.atEndOfJob(() => {
    for (const [done, some] of Map.groupBy(copied.splice(0), (each) => each.done)) {
      deleteAll(
        some.map(({ claim }) => claim),
        done
      )
    }
  })
  const deleteAll = (claims: ReadonlyArray<Settling.Claim<DirectCommand>>, done: Settling.Done<DirectCommand>): void =>
    end(claims, done, calls.deleteMessages(claims.map(handleOf)))

  return Settling.make<DirectCommand, CopyCommand>({
    claim: claiming(env),
    release: releasing(env),
    toCommand: command,
    ack: remove,
    carryOut: (claims, done) => {
      const deletes: Array<Settling.Claim<DirectCommand>> = []
      const hides: Array<{ claim: Settling.Claim<DirectCommand>; handle: string; seconds: number }> = []
      for (const claim of claims) {
        const { command: each } = claim
        if (each._tag === "Delete" && !isAck(claim)) copied.push({ claim, done })
        else if (each._tag === "Delete") deletes.push(claim)
        else if (each._tag === "Hide") hides.push({ claim, handle: handleOf(claim), seconds: each.seconds })
        else done(claim, each._tag === "Refuse" ? each.error : undefined)
      }
      if (copied.length > 0) deleteCopied()
      deleteAll(deletes, done)
      end(
        hides.map(({ claim }) => claim),
        done,
        calls.changeVisibility(hides)
      )
    },
    publish: (claims, done) => {
      const items = claims.map(({ command: { outgoing: message }, delivery }) => {
        const receipt = receiptOf(delivery)
        return { message, original: receipt.attributes, source: nameOf(receipt) }
      })
      end(claims, done, publisher.publish(items))
    },
    stored: ({ delivery }) => settled.set(receiptOf(delivery).messageId, true),
    ended: ({ delivery }, end) => onEnd(delivery, end === "gone" ? "gone" : "returned")
  })
}
