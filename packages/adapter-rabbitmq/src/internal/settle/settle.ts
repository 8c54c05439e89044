/** Carries out settlements on the channel that delivered. */
import { Broker, BrokerError, type Delivery, Direct, type Outgoing } from "@requeue/core/port"
import { Settling } from "@requeue/kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Properties } from "../client.ts"
import { identityOf, originalOf, receiptOf, type Settler } from "../consume/receipt.ts"
import { isOfHeaders } from "../toBrokerError.ts"
import { Ack, type Command } from "./toCommand.ts"

type CopyCommand = Extract<Command, { readonly _tag: "Copy" }>
type DirectCommand = Exclude<Command, CopyCommand>

const failure = (queue: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "rabbitmq", operation: "settle", queue, reason, detail })

const lost = (queue: string): BrokerError.BrokerError =>
  failure(queue, "ConnectionLost", "the channel that delivered the message is closed; the server redelivers it")

/**
 * Returns the fate of a delivery whose channel is open and whose copy was not stored. The objects for a copy are
 * declared before it is published: when a declaration fails, nothing was published.
 */
export const fateOf = (error: BrokerError.BrokerError): Broker.Fate => {
  const fate = Broker.fateOf(error)
  return fate === "unknown" && error.operation === "declare" ? "transient" : fate
}

/** A message that must be stored before its original is acked. */
interface Copy {
  readonly message: Outgoing.Outgoing
  readonly original: Properties
}

/** The queue that delivered, and how to settle. */
interface Dependencies {
  readonly queue: string
  readonly toCommand: (delivery: Delivery.Delivery, settlement: Broker.SettleRequest["settlement"]) => Command
  /** Publishes each copy separately; calls `confirmed` with a copy's index as soon as it is stored. */
  readonly publish: (
    copies: ReadonlyArray<Copy>,
    confirmed: (index: number) => void
  ) => Effect.Effect<ReadonlyArray<BrokerError.BrokerError | undefined>>
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /**
   * Remembers the name of an acked copy. A server that is killed forgets acks that were written and redelivers the
   * message, which is then acked again. Core cannot do this: it remembers only failed settlements. A retry by reject is
   * redelivered with the same name and must run; a retry by copy must be acked.
   */
  readonly settled: (name: string) => void
}

type Requests = ReadonlyArray<Broker.SettleRequest>

/** Returns promises that must resolve before settlements are written: lowered credit is written first. */
const barriersOf = (requests: Requests): ReadonlyArray<Promise<void>> => {
  const barriers: Array<Promise<void>> = []
  let last: Settler | undefined
  for (const { delivery } of requests) {
    const { settler } = receiptOf(delivery)
    // Almost always all requests have one settler.
    const barrier = settler === last ? undefined : settler.barrier()
    if (barrier !== undefined) barriers.push(barrier)
    last = settler
  }
  return barriers
}

/** Returns messages to the queue, and acks the others: after that, one frame acks more. */
const writing =
  (queue: string) =>
  (claims: ReadonlyArray<Settling.Claim<DirectCommand>>, done: Settling.Done<DirectCommand>): void => {
    const end = (claim: Settling.Claim<DirectCommand>, isWritten: boolean): void =>
      isWritten ? done(claim) : done(claim, lost(queue), "lost")
    const acks = new Map<Settler, Array<Settling.Claim<DirectCommand>>>()
    for (const claim of claims) {
      const receipt = receiptOf(claim.delivery)
      const { settler } = receipt
      if (claim.command._tag !== "Ack") end(claim, settler.requeue(receipt, claim.command._tag))
      else if (acks.get(settler)?.push(claim) === undefined) acks.set(settler, [claim])
    }
    for (const [settler, some] of acks) {
      const isWritten = settler.ack(some.map(({ delivery }) => receiptOf(delivery)))
      for (const claim of some) end(claim, isWritten)
    }
  }

/** Makes the `settle` of a subscription. */
export const make = ({ fork, publish, queue, settled, toCommand }: Dependencies): Broker.Subscription["settle"] => {
  const remember = ({ delivery }: Broker.SettleRequest): void => {
    const name = identityOf(delivery)
    if (name !== undefined) settled(name)
  }
  const settle = Settling.make<DirectCommand, CopyCommand>({
    claim: ({ delivery }) => {
      const receipt = receiptOf(delivery)
      if (!receipt.settler.isOpen()) return lost(queue)
      return receipt.settler.claim(receipt) ? undefined : failure(queue, "LeaseLost", "the delivery was settled before")
    },
    release: ({ delivery }) => {
      const receipt = receiptOf(delivery)
      if (!receipt.settler.isOpen()) return lost(queue)
      receipt.settler.unclaim(receipt)
      return undefined
    },
    // Most are acked, and need no facts about the queue.
    toCommand: ({ delivery, settlement }) =>
      settlement._tag === "Ack" || settlement._tag === "Drop" ? Ack : toCommand(delivery, settlement),
    ack: Ack,
    carryOut: writing(queue),
    publish: (claims, done) => {
      const copies = claims.map(({ command, delivery }) => ({
        message: command.outgoing,
        original: originalOf(receiptOf(delivery))
      }))
      const published = publish(copies, (index) => done(claims[index]!))
      const ended = Effect.map(published, (errors) =>
        errors.forEach((error, index) => error && done(claims[index]!, error, fateOf(error)))
      )
      const end = Effect.sync(() => claims.forEach((claim) => done(claim, lost(queue), "lost")))
      // The subscription ends, and returns the messages.
      fork(Effect.onInterrupt(ended, () => end))
    },
    ended: (claim, end) => {
      if (end === "gone") remember(claim)
    },
    mayBeSmaller: isOfHeaders
  })
  return (requests) =>
    Direct.make((onExit) => {
      const barriers = barriersOf(requests)
      if (barriers.length === 0) return settle(requests).begin(onExit)
      Promise.all(barriers)
        .then(() => settle(requests).begin(onExit))
        .catch((defect: unknown) => onExit(Exit.die(defect)))
      return () => undefined
    })
}
