/** Settles deliveries in the sessions that received them. */
import { Failure } from "@requeue/core"
import { type Broker, BrokerError, Deadlines, type Delivery, Direct } from "@requeue/core/port"
import { Settling } from "@requeue/kit"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Answered, type Receipt, receiptOf } from "../consume/receipt.ts"
import { timedOut } from "../toBrokerError.ts"
import { type Command, finish } from "./toCommand.ts"

type CopyCommand = Extract<Command, { readonly _tag: "Copy" }>
type DirectCommand = Exclude<Command, CopyCommand>

interface SettleDependencies {
  readonly queue: string
  /** Limits the time until a command has left this process. */
  readonly deadlines: Deadlines.Deadlines
  readonly command: (delivery: Delivery.Delivery, settlement: Broker.SettleRequest["settlement"]) => Command
  /** Publishes a copy of a delivery, preferably on the nsqd that delivered it. */
  readonly publish: (copy: CopyCommand, receipt: Receipt) => Effect.Effect<void, BrokerError.BrokerError>
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Called when a delivery is finished, although nsqd may never read the `FIN`. */
  readonly finished: (request: Broker.SettleRequest) => void
  /** Called when a message is requeued with a delay of `wait` milliseconds. */
  readonly requeued: (receipt: Receipt, wait: number) => void
}

const failure = (queue: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "nsq", operation: "settle", queue, reason, detail })

/** Returns why a delivery is no longer held. */
const loss = (queue: string, isOpen: boolean): BrokerError.BrokerError =>
  isOpen
    ? failure(
        queue,
        "LeaseLost",
        "the delivery was already settled, or its lease has ended and nsqd redelivers the message"
      )
    : failure(
        queue,
        "ConnectionLost",
        "the connection of the delivery is lost; nsqd redelivers the message when its lease ends"
      )

const lossOf = (queue: string, delivery: Delivery.Delivery): BrokerError.BrokerError =>
  loss(queue, receiptOf(delivery).session.isOpen())

/** Returns the failure of a delivery that is no longer held. */
export const gone = (queue: string, delivery: Delivery.Delivery): Broker.SettleFailure => ({
  delivery,
  error: lossOf(queue, delivery),
  fate: "lost"
})

/** Writes `FIN` and `REQ`. Each is done when it has left this process, or is known to be lost. */
const writing =
  ({ deadlines, queue, requeued }: SettleDependencies) =>
  (claims: ReadonlyArray<Settling.Claim<DirectCommand>>, done: Settling.Done<DirectCommand>): void => {
    let open = claims.length
    const late = Deadlines.deadline(() => {
      const stuck = claims.filter(({ isDone }) => !isDone)
      // Before the connection is destroyed, which reports the same commands as lost.
      for (const claim of stuck) done(claim, loss(queue, false), "lost")
      for (const { delivery } of stuck) {
        const { connection, node } = receiptOf(delivery).session
        // A connection that accepts no data for this long is lost: nsqd redelivers the messages.
        connection.destroy(timedOut({ operation: "settle", queue, node: node.name }, deadlines.timeout))
      }
    })
    deadlines.start(late)
    for (const claim of claims) {
      const { command, delivery, settlement } = claim
      const receipt = receiptOf(delivery)
      const { id, session } = receipt
      if (command._tag === "Req" && command.delay > 0) requeued(receipt, command.wait)
      session.answer(
        command._tag === "Fin" ? `FIN ${id}\n` : `REQ ${id} ${command.delay}\n`,
        (error) => {
          if (--open === 0) deadlines.end(late)
          if (error instanceof Error) done(claim, loss(queue, false), "lost")
          else done(claim)
        },
        new Answered(delivery, settlement._tag)
      )
    }
  }

/** Publishes each copy separately. */
const publishing =
  ({ fork, publish, queue }: SettleDependencies) =>
  (claims: ReadonlyArray<Settling.Claim<CopyCommand>>, done: Settling.Done<CopyCommand>): void => {
    for (const claim of claims) {
      const published = contained(queue, () => publish(claim.command, receiptOf(claim.delivery)))
      const ended = Effect.match(published, { onSuccess: () => done(claim), onFailure: (error) => done(claim, error) })
      // The subscription ends, and returns the message.
      fork(Effect.onInterrupt(ended, () => Effect.sync(() => done(claim, loss(queue, false), "lost"))))
    }
  }

/** Refuses a message that cannot be copied, for example because its body was transferred to another thread. */
const contained = <A>(
  queue: string,
  publish: () => Effect.Effect<A, BrokerError.BrokerError>
): Effect.Effect<A, BrokerError.BrokerError> =>
  Effect.catchDefect(Effect.suspend(publish), (defect) =>
    Effect.fail(failure(queue, "Unsupported", `the message cannot be copied: ${Failure.summarize(defect).message}`))
  )

/** Extends leases. nsqd answers a `TOUCH` only if it fails, so the next call reports the failure. */
export const extending =
  (queue: string) =>
  (deliveries: ReadonlyArray<Delivery.Delivery>): Direct.Direct<ReadonlyArray<Broker.SettleFailure>, never> =>
    Direct.make((onExit) => {
      const lost = deliveries.filter((delivery) => !receiptOf(delivery).session.touch(receiptOf(delivery)))
      const giveUp = Direct.ended(onExit, Exit.succeed(lost.map((delivery) => gone(queue, delivery))))
      // Only now: the core has reserved room for their handlers before other connections get their credit.
      for (const delivery of lost) receiptOf(delivery).session.take(receiptOf(delivery))
      return giveUp
    })

/** `settle` and `extend` of a subscription. */
export const make = (dependencies: SettleDependencies): Pick<Broker.Subscription, "settle" | "extend"> => {
  const { command, finished, queue } = dependencies
  const settle = Settling.make<DirectCommand, CopyCommand>({
    claim: ({ delivery }) => {
      const receipt = receiptOf(delivery)
      return receipt.session.take(receipt) ? undefined : lossOf(queue, delivery)
    },
    release: ({ delivery }) => {
      const receipt = receiptOf(delivery)
      return receipt.session.untake(receipt) ? undefined : lossOf(queue, delivery)
    },
    toCommand: ({ delivery, settlement }) => command(delivery, settlement),
    ack: finish,
    carryOut: writing(dependencies),
    publish: publishing(dependencies),
    ended: (claim, end) => {
      // Only once it was written: otherwise the core must settle the redelivery.
      if (end === "gone") finished(claim)
    }
  })
  return { settle, extend: extending(queue) }
}
