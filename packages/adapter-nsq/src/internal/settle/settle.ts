/** Settles deliveries in the sessions that received them. */
import { Broker, BrokerError, type Deadlines, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Node } from "../connect/nodes.ts"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import { timedOut } from "../toBrokerError.ts"
import type { Command } from "./toCommand.ts"

type CopyCommand = Extract<Command, { readonly _tag: "Copy" }>
type DirectCommand = Exclude<Command, CopyCommand>

/** A delivery that was taken, and the command that settles it. */
interface Answering {
  readonly request: Broker.SettleRequest
  readonly receipt: Receipt
  readonly command: DirectCommand
  isWritten: boolean
}

type Failures = ReadonlyArray<Broker.SettleFailure>

interface SettleDependencies {
  readonly queue: string
  /** Limits the time until an answer has left this process. */
  readonly deadlines: Deadlines.Deadlines
  readonly command: (delivery: Delivery.Delivery, settlement: Broker.SettleRequest["settlement"]) => Command
  /** Publishes a copy, on the preferred nsqd if it is up. */
  readonly publish: (copy: CopyCommand, prefer: Node) => Effect.Effect<void, BrokerError.BrokerError>
  /** Called when a delivery is finished, though nsqd may never read that. */
  readonly finished: (request: Broker.SettleRequest) => void
  /** Called when a message is requeued. It is due in milliseconds since the epoch. */
  readonly requeued: (receipt: Receipt, due: number) => void
}

const failure = (queue: string, reason: BrokerError.Reason, detail: string): BrokerError.BrokerError =>
  new BrokerError.BrokerError({ broker: "nsq", operation: "settle", queue, reason, detail })

const lost = (queue: string): BrokerError.BrokerError =>
  failure(
    queue,
    "ConnectionLost",
    "the connection that delivered is gone; nsqd delivers again when the lease has ended"
  )

const notOurs = (queue: string): BrokerError.BrokerError =>
  failure(queue, "LeaseLost", "the delivery was settled before, or nsqd has taken it back")

const gone = (delivery: Delivery.Delivery, error: BrokerError.BrokerError): Broker.SettleFailure => ({
  delivery,
  error,
  fate: "gone"
})

/** Answers deliveries by `FIN` or `REQ`. Ends when all answers have left this process, or cannot; answers the failures. */
const answering = ({ deadlines, finished, queue, requeued }: SettleDependencies) => {
  /** Writes an answer. `done` is called once, with an error when it cannot leave this process. */
  const write = (
    { command, receipt, request }: Answering,
    done: (error: BrokerError.BrokerError | undefined) => void
  ): void => {
    const { id, session } = receipt
    if (command._tag === "Req" && command.delay > 0) requeued(receipt, command.due)
    session.answer(command._tag === "Fin" ? `FIN ${id}\n` : `REQ ${id} ${command.delay}\n`, (error) => {
      if (error instanceof Error) return done(lost(queue))
      // Not before it was written: the core settles the redelivery of one that could not be.
      if (command._tag === "Fin") finished(request)
      done(undefined)
    })
  }

  return (all: ReadonlyArray<Answering>): Effect.Effect<Failures> => {
    const failures: Array<Broker.SettleFailure> = []
    let open = all.length
    const written = Effect.callback<Failures>((resume) => {
      for (const each of all) {
        write(each, (error) => {
          each.isWritten = true
          if (error !== undefined) failures.push(gone(each.request.delivery, error))
          if (--open === 0) resume(Effect.succeed(failures))
        })
      }
    })
    return deadlines.within(written, () =>
      Effect.sync(() => {
        const stuck = all.filter(({ isWritten }) => !isWritten)
        for (const { receipt } of stuck) {
          const { connection, node } = receipt.session
          // A connection that has taken nothing for so long is lost: nsqd delivers again.
          connection.destroy(timedOut({ operation: "settle", queue, node: node.name }, deadlines.timeout))
        }
        return [...failures, ...stuck.map(({ request: { delivery } }) => gone(delivery, lost(queue)))]
      })
    )
  }
}

/** Publishes the copy of a delivery, and finishes the delivery when the copy is stored. */
const copying =
  ({ finished, publish, queue }: SettleDependencies, answer: ReturnType<typeof answering>) =>
  (request: Broker.SettleRequest, receipt: Receipt, command: CopyCommand): Effect.Effect<Failures> =>
    Effect.matchEffect(publish(command, receipt.session.node), {
      // The copy is stored: the settlement has succeeded, even if the delivery cannot be finished any more.
      onSuccess: () =>
        Effect.suspend(() => {
          finished(request)
          return Effect.as(answer([{ request, receipt, command: { _tag: "Fin" }, isWritten: false }]), [])
        }),
      onFailure: (error) =>
        Effect.sync(() => {
          const { delivery } = request
          receipt.session.untake(receipt)
          // The publishing connection may be lost; the delivery is not.
          if (receipt.session.isOpen()) return [{ delivery, error, fate: Broker.fateOf(error) }]
          receipt.session.drop(receipt)
          return [gone(delivery, lost(queue))]
        })
    })

/** `settle` and `extend` of a subscription. */
export const make = (dependencies: SettleDependencies): Pick<Broker.Subscription, "settle" | "extend"> => {
  const { command, queue } = dependencies
  const answer = answering(dependencies)
  const copy = copying(dependencies, answer)

  /** Takes a delivery for settling, or answers the reason why it cannot be settled. */
  const take = (receipt: Receipt): BrokerError.BrokerError | undefined => {
    const { session } = receipt
    if (session.isOpen()) return session.take(receipt) ? undefined : notOurs(queue)
    session.drop(receipt)
    return lost(queue)
  }

  const settle = (requests: ReadonlyArray<Broker.SettleRequest>): Effect.Effect<Failures> =>
    Effect.suspend(() => {
      const refused: Array<Broker.SettleFailure> = []
      const answers: Array<Answering> = []
      const rest: Array<Effect.Effect<Failures>> = []
      for (const request of requests) {
        const { delivery, settlement } = request
        const receipt = receiptOf(delivery)
        const error = take(receipt)
        if (error !== undefined) {
          refused.push(gone(delivery, error))
          continue
        }
        const made = command(delivery, settlement)
        if (made._tag === "Copy") rest.push(copy(request, receipt, made))
        else answers.push({ request, receipt, command: made, isWritten: false })
      }
      if (answers.length > 0) rest.unshift(answer(answers))
      return rest.length === 1 && refused.length === 0
        ? rest[0]!
        : Effect.map(Effect.all(rest, { concurrency: "unbounded" }), (failures) => [...refused, ...failures.flat()])
    })

  /** Extends leases. nsqd answers to `TOUCH` only when it fails, so that the next call tells of it. */
  const extend = (deliveries: ReadonlyArray<Delivery.Delivery>): Effect.Effect<Failures> =>
    Effect.sync(() =>
      deliveries.flatMap((delivery) => {
        const receipt = receiptOf(delivery)
        const { session } = receipt
        if (!session.isOpen()) return [gone(delivery, lost(queue))]
        if (!session.holds(receipt)) return [gone(delivery, notOurs(queue))]
        session.write(`TOUCH ${receipt.id}\n`, () => {})
        return []
      })
    )

  return { settle, extend }
}
