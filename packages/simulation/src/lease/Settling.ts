/** Settles deliveries: messages are removed, hidden, or copied and then removed. */
import { type BoundedMap, Broker, type BrokerError, type Delivery, Outgoing, type Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Machine } from "../world/Machine.ts"
import { errorOf, type Requests, type Results } from "./Requests.ts"
import { limits, type Sending } from "./Server.ts"

/** The receipt of a delivery. */
export interface Receipt {
  readonly number: number
  readonly messageId: string
  /** Monotonic milliseconds. */
  readonly receivedAt: number
  /** Monotonic milliseconds: until then this client holds it. */
  leaseEnds: number
  /** Whether a call that hides it had no answer, and may still take effect. */
  isUncertain: boolean
  /** Whether it is settled, or is being settled. */
  isSettling: boolean
}

/** The receipt of a delivery of this client. */
export const receiptOf = ({ receipt }: Delivery.Delivery): Receipt => receipt as Receipt // this client makes all of them

const handleOf = ({ delivery }: Broker.SettleRequest): number => receiptOf(delivery).number

/** Milliseconds from its receipt for which a message can be hidden, less the time of the calls. */
export const longest = limits.hidden * 1000 - 10_000

/** Whether its lease has ended. `now` is in monotonic milliseconds. */
export const isExpired = ({ leaseEnds }: Receipt, now: number): boolean => now >= leaseEnds

type Command =
  | { readonly _tag: "Remove" }
  | { readonly _tag: "Hide"; readonly seconds: number }
  | { readonly _tag: "Copy"; readonly outgoing: Outgoing.Outgoing }

/** The dependencies of settling. */
export interface Dependencies {
  readonly queue: string
  readonly maxDeliveries: number
  readonly machine: Machine
  readonly requests: Requests
  readonly toSending: (outgoing: Outgoing.Outgoing, of: number) => Sending
  /**
   * Messages whose copy is stored, by the server's name. They are settled, whatever becomes of their removal: if the server
   * delivers them again, they are removed.
   */
  readonly copied: Pick<BoundedMap.BoundedMap<true>, "has" | "set">
  /** Called when this client no longer holds a delivery. */
  readonly onEnd: (delivery: Delivery.Delivery) => void
}

const commandOf = (
  delivery: Delivery.Delivery,
  settlement: Settlement.Settlement,
  { copied, machine, maxDeliveries, queue }: Dependencies
): Command => {
  const { isUncertain, messageId, receivedAt } = receiptOf(delivery)
  // Its copy may have been stored after it was redelivered.
  if (copied.has(messageId)) return { _tag: "Remove" }
  const now = machine.wallClock()
  switch (settlement._tag) {
    case "Ack":
    case "Drop":
      return { _tag: "Remove" }
    case "DeadLetter":
      return { _tag: "Copy", outgoing: Outgoing.deadLetter(delivery, settlement, queue, now) }
    case "Retry": {
      const seconds = Math.ceil(settlement.delay / 1000)
      const isKept = seconds * 1000 + machine.monotonic() - receivedAt <= longest
      if (isKept && !isUncertain) return { _tag: "Hide", seconds }
      return { _tag: "Copy", outgoing: Outgoing.retry(delivery, settlement, queue, now) }
    }
    case "Release":
      // The server counts every receive: a delayed message, or one that may be received only once more, waits as a copy.
      return settlement.delay === 0 && delivery.attempts < maxDeliveries
        ? { _tag: "Hide", seconds: 0 }
        : { _tag: "Copy", outgoing: Outgoing.hop(delivery, settlement, queue, now) }
  }
}

interface Settling<C extends Command = Command> extends Broker.SettleRequest {
  readonly command: C
}

type Tagged<T extends Command["_tag"]> = Settling<Extract<Command, { readonly _tag: T }>>

/** How each command is carried out. */
const executing = ({ copied, requests, toSending }: Dependencies) => ({
  remove: (some: ReadonlyArray<Broker.SettleRequest>) => requests.remove(some.map(handleOf)),
  hide: (some: ReadonlyArray<Tagged<"Hide">>) =>
    requests.hide(some.map((each) => ({ handle: handleOf(each), seconds: each.command.seconds, isBack: true }))),
  copy: Effect.fnUntraced(function* (queue: string, some: ReadonlyArray<Tagged<"Copy">>) {
    const results = yield* requests.send(
      queue,
      some.map((each) => toSending(each.command.outgoing, handleOf(each)))
    )
    const stored = some.filter((_, index) => results[index] === undefined)
    for (const { delivery } of stored) copied.set(receiptOf(delivery).messageId, true)
    yield* requests.remove(stored.map(handleOf))
    return results
  })
})

/** Makes the `settle` of a subscription. */
export const make = (env: Dependencies): Broker.Subscription["settle"] => {
  const { copied, machine, onEnd, requests } = env
  const execute = executing(env)

  /** Whether this client no longer holds a delivery. */
  const isLost = ({ delivery, settlement }: Broker.SettleRequest): boolean => {
    const receipt = receiptOf(delivery)
    if (receipt.isSettling) return true
    if (!isExpired(receipt, machine.monotonic())) return false
    receipt.isSettling = true
    onEnd(delivery)
    // It may still exist, and then no other consumer need work on it. The server would report success in any case.
    if (settlement._tag === "Ack" || settlement._tag === "Drop" || copied.has(receipt.messageId))
      machine.run(requests.remove([receipt.number]))
    return true
  }

  const conclude = (
    { command, delivery }: Settling,
    error: BrokerError.BrokerError | undefined
  ): ReadonlyArray<Broker.SettleFailure> => {
    const fate = error && Broker.fateOf(error)
    if (error === undefined || fate === undefined || fate === "lost") onEnd(delivery)
    else {
      const receipt = receiptOf(delivery)
      receipt.isSettling = false
      receipt.isUncertain ||= command._tag === "Hide" && fate === "unknown"
    }
    if (error === undefined || fate === undefined) return []
    return [{ delivery, error, fate, smaller: error.reason === "BodyTooLarge" }]
  }

  const run = <S extends Settling>(
    some: ReadonlyArray<S>,
    carryOut: (some: ReadonlyArray<S>) => Effect.Effect<Results>
  ) =>
    some.length === 0
      ? Effect.succeed([])
      : Effect.map(carryOut(some), (results) => some.flatMap((each, index) => conclude(each, results[index])))

  return (all) =>
    Effect.suspend(() => {
      const [lost, ours]: [Array<Broker.SettleFailure>, Array<Settling>] = [[], []]
      for (const request of all) {
        const { delivery, settlement } = request
        if (isLost(request)) {
          lost.push({ delivery, error: errorOf("settle", "LeaseLost", "its lease had ended"), fate: "lost" })
          continue
        }
        receiptOf(delivery).isSettling = true
        ours.push({ ...request, command: commandOf(delivery, settlement, env) })
      }
      const tagged = <T extends Command["_tag"]>(tag: T) =>
        ours.filter((each): each is Tagged<T> => each.command._tag === tag)
      const copies = Map.groupBy(tagged("Copy"), ({ command }) => command.outgoing.queue)
      const failures = Effect.all(
        [
          run(tagged("Remove"), execute.remove),
          run(tagged("Hide"), execute.hide),
          ...[...copies].map(([queue, some]) => run(some, () => execute.copy(queue, some)))
        ],
        { concurrency: "unbounded" }
      )
      return Effect.map(failures, (failed) => [...lost, ...failed.flat()])
    })
}
