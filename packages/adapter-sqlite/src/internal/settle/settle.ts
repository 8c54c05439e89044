/** Carries out settlements: all of one call in one transaction. `Settling` keeps MUST 3 and 4; a copy needs no second step. */
import { Broker } from "@requeue/core/port"
import { Settling, SqlCommand } from "@requeue/kit"
import type { Connection } from "../connect/connection.ts"
import type { Store } from "../connect/store.ts"
import type { Consumer } from "../consume/consumer.ts"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import * as Rows from "../rows.ts"
import { errors } from "../toBrokerError.ts"

/** Carries out a command. Returns whether the delivery still had its message. */
const carryOut = (connection: Connection, receipt: Receipt, command: SqlCommand.Command, now: number): boolean => {
  switch (command._tag) {
    case "Remove":
      return Rows.remove(connection, receipt)
    case "GiveBack":
      return Rows.giveBack(connection, receipt, 1)
    case "Replace":
      Rows.declare(connection, command.queue)
      return Rows.replace(connection, receipt, command, now)
  }
}

/** A settlement that waits for its transaction since this monotonic time, in milliseconds. */
interface Waiting {
  readonly _tag: "Waiting"
  readonly since: number
}

/** Returns the `settle` of a consumer. */
export const make = (
  { freePlaces, held, refill }: Consumer,
  queue: string,
  store: Store
): Broker.Subscription["settle"] => {
  const { now, timers } = store
  const lost = errors.leaseLost({ operation: "settle", queue })
  const waiting = (): Waiting => ({ _tag: "Waiting", since: timers.now() })

  /** The queues that get the message, or the next one of its key. */
  const targetsOf = ({ lane }: Receipt, command: SqlCommand.Command): ReadonlyArray<string | undefined> => [
    { Remove: undefined, GiveBack: queue, Replace: command._tag === "Replace" ? command.queue : queue }[command._tag],
    lane
  ]

  const carryOutAll = (claims: ReadonlyArray<Settling.Claim<Waiting>>, done: Settling.Done<Waiting>): void => {
    /** The commands of the deliveries that still had their messages. */
    const commands = new Map<Settling.Claim<Waiting>, SqlCommand.Command>()
    store.add({
      operation: "settle",
      queue,
      weight: claims.length,
      run: (connection) => {
        commands.clear()
        const [wall, monotonic] = [now(), timers.now()]
        for (const claim of claims) {
          const { command, delivery, settlement } = claim
          // The wall clock may have been set since.
          const asked = wall - (monotonic - command.since)
          const decided = SqlCommand.of(delivery, settlement, queue, asked)
          if (carryOut(connection, receiptOf(delivery), decided, asked)) commands.set(claim, decided)
        }
        // At once, because the consumer may lease others in the same transaction.
        for (const { delivery } of claims) held.delete(receiptOf(delivery))
      },
      end: (error) => {
        for (const claim of claims) {
          if (error !== undefined) held.add(receiptOf(claim.delivery))
          done(claim, error ?? (commands.has(claim) ? undefined : lost))
        }
        if (error !== undefined) return
        freePlaces()
        const targets = [...commands].flatMap(([{ delivery }, command]) => targetsOf(receiptOf(delivery), command))
        for (const each of new Set(targets)) {
          if (each !== undefined) store.wake(each)
        }
      }
    })
    refill()
  }

  return Settling.make<Waiting>({
    // Of two settlements of one delivery, the second finds no row with the token.
    claim: ({ delivery }) => (held.has(receiptOf(delivery)) ? undefined : lost),
    release: () => undefined,
    toCommand: waiting,
    ack: waiting(),
    carryOut: carryOutAll
  })
}
