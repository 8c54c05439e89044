/** Carries out settlements on the session that delivered. */
import { type Broker, BrokerError, type Deadlines, type Delivery } from "@requeue/core/adapter-kit"
import * as Effect from "effect/Effect"
import type { Node } from "../connect/nodes.ts"
import type { Receipt } from "../consume/session.ts"
import { timedOut } from "../toBrokerError.ts"
import type { Command } from "./toCommand.ts"

type Answer = Exclude<Command, { readonly _tag: "Copy" }>
type Copy = Extract<Command, { readonly _tag: "Copy" }>

/** An answer to a delivery that was taken. */
interface Answering {
  readonly request: Broker.SettleRequest
  readonly receipt: Receipt
  readonly command: Answer
  isWritten: boolean
}

const fin: Answer = { _tag: "Fin" }

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

/**
 * The core takes a lost connection for a lost delivery. Here only the publishing one was lost, and the delivery is still
 * ours.
 */
const stillOurs = (error: BrokerError.BrokerError): BrokerError.BrokerError =>
  error.reason === "ConnectionLost" || error.reason === "LeaseLost"
    ? failure(error.queue ?? "", "Timeout", `the copy may have been stored or not: ${error.detail}`)
    : error

export const make = (env: {
  readonly queue: string
  /** Within which an answer must have left us. */
  readonly deadlines: Deadlines.Deadlines
  readonly command: (delivery: Delivery.Delivery, settlement: Broker.SettleRequest["settlement"]) => Command
  readonly publish: (copy: Copy, prefer: Node) => Effect.Effect<void, BrokerError.BrokerError>
  /** A delivery is done with, even if nsqd does not hear of it. */
  readonly finished: (request: Broker.SettleRequest) => void
  /** A message is to come again, not before this time in milliseconds since the epoch. */
  readonly requeued: (receipt: Receipt, due: number) => void
}) => {
  const { deadlines, queue } = env

  /** Writes an answer; `done` is called once, with an error when it cannot leave us. */
  const write = (
    { command, receipt, request }: Answering,
    done: (error: BrokerError.BrokerError | undefined) => void
  ): void => {
    const { id, session } = receipt
    if (command._tag === "Req" && command.delay > 0) env.requeued(receipt, command.due)
    session.answer(command._tag === "Fin" ? `FIN ${id}\n` : `REQ ${id} ${command.delay}\n`, (error) => {
      if (error instanceof Error) return done(lost(queue))
      // Only now: of what could not be written the core hears, and it settles the redelivery itself.
      if (command._tag === "Fin") env.finished(request)
      done(undefined)
    })
  }

  /** Ends when all have left us, or cannot. */
  const answer = (all: ReadonlyArray<Answering>): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> => {
    const failures: Array<Broker.SettleFailure> = []
    let open = all.length
    const written = Effect.callback<ReadonlyArray<Broker.SettleFailure>>((resume) => {
      for (const each of all) {
        write(each, (error) => {
          each.isWritten = true
          if (error !== undefined) failures.push({ delivery: each.request.delivery, error })
          if (--open === 0) resume(Effect.succeed(failures))
        })
      }
    })
    return deadlines.within(written, () =>
      Effect.sync(() => {
        const stuck = all.filter(({ isWritten }) => !isWritten)
        for (const {
          receipt: { session }
        } of stuck) {
          // What cannot be written for so long will not be: nsqd delivers again.
          session.connection.destroy(
            timedOut({ operation: "settle", queue, node: session.node.name }, deadlines.timeout)
          )
        }
        return [...failures, ...stuck.map(({ request: { delivery } }) => ({ delivery, error: lost(queue) }))]
      })
    )
  }

  const copy = (
    request: Broker.SettleRequest,
    receipt: Receipt,
    command: Copy
  ): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
    Effect.matchEffect(env.publish(command, receipt.session.node), {
      // Done, even if it cannot be finished any more: the copy is stored.
      onSuccess: () =>
        Effect.suspend(() => {
          env.finished(request)
          return Effect.as(answer([{ request, receipt, command: fin, isWritten: false }]), [])
        }),
      onFailure: (error) =>
        Effect.sync(() => {
          const { delivery } = request
          receipt.session.untake(receipt)
          if (receipt.session.isOpen()) return [{ delivery, error: stillOurs(error) }]
          receipt.session.drop(receipt)
          return [{ delivery, error: lost(queue) }]
        })
    })

  /** Why it cannot be settled here. */
  const refusal = (receipt: Receipt): BrokerError.BrokerError | undefined => {
    const { session } = receipt
    if (session.isOpen()) return session.take(receipt) ? undefined : notOurs(queue)
    session.drop(receipt)
    return lost(queue)
  }

  const settle = (requests: ReadonlyArray<Broker.SettleRequest>): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
    Effect.suspend(() => {
      const refused: Array<Broker.SettleFailure> = []
      const answers: Array<Answering> = []
      const rest: Array<Effect.Effect<ReadonlyArray<Broker.SettleFailure>>> = []
      for (const request of requests) {
        const { delivery, settlement } = request
        const receipt = delivery.receipt as Receipt
        const error = refusal(receipt)
        if (error !== undefined) {
          refused.push({ delivery, error })
          continue
        }
        const command = env.command(delivery, settlement)
        if (command._tag === "Copy") rest.push(copy(request, receipt, command))
        else answers.push({ request, receipt, command, isWritten: false })
      }
      if (answers.length > 0) rest.unshift(answer(answers))
      return rest.length === 1 && refused.length === 0
        ? rest[0]!
        : Effect.map(Effect.all(rest, { concurrency: "unbounded" }), (failures) => [...refused, ...failures.flat()])
    })

  /** nsqd answers to `TOUCH` only when it fails; by the next one, that is known. */
  const extend = (deliveries: ReadonlyArray<Delivery.Delivery>): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
    Effect.sync(() =>
      deliveries.flatMap((delivery) => {
        const receipt = delivery.receipt as Receipt
        const { session } = receipt
        if (!session.isOpen()) return [{ delivery, error: lost(queue) }]
        if (!session.holds(receipt)) return [{ delivery, error: notOurs(queue) }]
        session.write(`TOUCH ${receipt.id}\n`, () => {})
        return []
      })
    )

  return { settle, extend }
}
