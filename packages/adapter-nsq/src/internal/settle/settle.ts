/** Settles deliveries in the sessions that received them. */
import { Failure } from "@requeue/core"
import { Broker, BrokerError, Deadlines, type Delivery, Direct } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import { timedOut } from "../toBrokerError.ts"
import type { Command } from "./toCommand.ts"

type CopyCommand = Extract<Command, { readonly _tag: "Copy" }>
type DirectCommand = Exclude<Command, CopyCommand>

/** A taken delivery, and the command that settles it. */
interface Answering {
  readonly request: Broker.SettleRequest
  readonly receipt: Receipt
  readonly command: DirectCommand
  /** Whether the command was written, or is known to be lost. */
  isAnswered: boolean
}

type Requests = ReadonlyArray<Broker.SettleRequest>
type Failures = ReadonlyArray<Broker.SettleFailure>

interface SettleDependencies {
  readonly queue: string
  /** Limits the time until a command has left this process. */
  readonly deadlines: Deadlines.Deadlines
  readonly command: (delivery: Delivery.Delivery, settlement: Broker.SettleRequest["settlement"]) => Command
  /** Publishes a copy of a delivery, preferably on the nsqd that delivered it. */
  readonly publish: (copy: CopyCommand, receipt: Receipt) => Effect.Effect<void, BrokerError.BrokerError>
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

/** Returns the failure of a delivery that is no longer held. */
export const gone = (
  queue: string,
  delivery: Delivery.Delivery,
  isOpen = receiptOf(delivery).session.isOpen()
): Broker.SettleFailure => ({ delivery, error: loss(queue, isOpen), fate: "lost" })

/**
 * Settles deliveries with `FIN` or `REQ`. Ends when all commands have left this process or failed; returns the
 * failures.
 */
const answering = ({ deadlines, finished, queue, requeued }: SettleDependencies) => {
  /** Writes a command. Calls `done` once, with `false` if the command cannot leave this process. */
  const write = ({ command, receipt, request }: Answering, done: (isWritten: boolean) => void): void => {
    const { id, session } = receipt
    const { attempts, metadata } = request.delivery
    if (command._tag === "Req" && command.delay > 0) requeued(receipt, command.wait)
    session.answer(
      command._tag === "Fin" ? `FIN ${id}\n` : `REQ ${id} ${command.delay}\n`,
      (error) => {
        if (error instanceof Error) return done(false)
        // Only once it was written: otherwise the core must settle the redelivery.
        if (command._tag === "Fin") finished(request)
        done(true)
      },
      { delivery: { attempts, metadata }, settlement: request.settlement._tag }
    )
  }

  // `deadlines.within` would start a fiber, which costs as much as the rest: with a small window, there is a call for
  // every few messages.
  return (all: ReadonlyArray<Answering>): Direct.Direct<Failures, never> =>
    Direct.make((onExit) => {
      const failures: Array<Broker.SettleFailure> = []
      let open = all.length
      const late = Deadlines.deadline(() => {
        const stuck = all.filter(({ isAnswered }) => !isAnswered)
        // Before the connection is destroyed, which reports the same commands as lost.
        onExit(Exit.succeed([...failures, ...stuck.map(({ request }) => gone(queue, request.delivery, false))]))
        for (const { receipt } of stuck) {
          const { connection, node } = receipt.session
          // A connection that accepts no data for this long is lost: nsqd redelivers the messages.
          connection.destroy(timedOut({ operation: "settle", queue, node: node.name }, deadlines.timeout))
        }
      })
      deadlines.start(late)
      for (const each of all) {
        write(each, (isWritten) => {
          each.isAnswered = true
          if (!isWritten) failures.push(gone(queue, each.request.delivery, false))
          if (--open > 0) return
          deadlines.end(late)
          onExit(Exit.succeed(failures))
        })
      }
      return () => {
        deadlines.end(late)
        return undefined
      }
    })
}

/** Publishes the copy of a delivery, and finishes the delivery once the copy is stored. */
const copying =
  ({ finished, publish, queue }: SettleDependencies, answer: ReturnType<typeof answering>) =>
  (request: Broker.SettleRequest, receipt: Receipt, command: CopyCommand): Effect.Effect<Failures> =>
    Effect.matchEffect(
      contained(queue, () => publish(command, receipt)),
      {
        // The copy is stored: the settlement has succeeded, even if the delivery can no longer be finished.
        onSuccess: () =>
          Effect.suspend(() => {
            finished(request)
            return Effect.as(answer([{ request, receipt, command: { _tag: "Fin" }, isAnswered: false }]), [])
          }),
        onFailure: (error) =>
          Effect.suspend(() => {
            const { delivery } = request
            const fate = Broker.fateOf(error)
            if (fate === "rejected" && command.instead !== undefined) {
              return answer([{ request, receipt, command: command.instead, isAnswered: false }])
            }
            return Effect.succeed([
              receipt.session.untake(receipt)
                ? { delivery, error, fate, smaller: error.reason === "BodyTooLarge" }
                : gone(queue, delivery)
            ])
          })
      }
    )

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
  (deliveries: ReadonlyArray<Delivery.Delivery>): Direct.Direct<Failures, never> =>
    Direct.make((onExit) => {
      const lost = deliveries.filter((delivery) => !receiptOf(delivery).session.touch(receiptOf(delivery)))
      const giveUp = Direct.ended(onExit, Exit.succeed(lost.map((delivery) => gone(queue, delivery))))
      // Only now: the core has reserved room for their handlers before other connections get their credit.
      for (const delivery of lost) receiptOf(delivery).session.take(receiptOf(delivery))
      return giveUp
    })

/** `settle` and `extend` of a subscription. */
export const make = (dependencies: SettleDependencies): Pick<Broker.Subscription, "settle" | "extend"> => {
  const { command, queue } = dependencies
  const extend = extending(queue)
  const answer = answering(dependencies)
  const copy = copying(dependencies, answer)

  /** Takes the deliveries that are still held, and makes their commands. */
  const begin = (requests: Requests) => {
    const lost: Array<Broker.SettleFailure> = []
    const answers: Array<Answering> = []
    const copies: Array<Effect.Effect<Failures>> = []
    for (const request of requests) {
      const { delivery, settlement } = request
      const receipt = receiptOf(delivery)
      if (!receipt.session.take(receipt)) {
        lost.push(gone(queue, delivery))
        continue
      }
      const made = command(delivery, settlement)
      if (made._tag === "Copy") copies.push(copy(request, receipt, made))
      else answers.push({ request, receipt, command: made, isAnswered: false })
    }
    return { answers, copies, lost }
  }

  /** The path of most settlements, which only finish messages and make no copies. */
  const finish = (requests: Requests): Effect.Effect<Failures> =>
    Direct.make((onExit) => {
      const { answers, lost } = begin(requests)
      if (answers.length === 0) return Direct.ended(onExit, Exit.succeed(lost))
      return answer(answers).begin(
        lost.length === 0 ? onExit : (exit) => onExit(Exit.map(exit, (failures) => [...lost, ...failures]))
      )
    })

  const settle = (requests: Requests): Effect.Effect<Failures> =>
    requests.every(({ settlement: { _tag } }) => _tag === "Ack" || _tag === "Drop")
      ? finish(requests)
      : Effect.suspend(() => {
          const { answers, copies, lost } = begin(requests)
          const all = answers.length === 0 ? copies : [answer(answers), ...copies]
          return all.length === 1 && lost.length === 0
            ? all[0]!
            : Effect.map(Effect.all(all, { concurrency: "unbounded" }), (failures) => [...lost, ...failures.flat()])
        })

  return { settle, extend }
}
