/** Carries out settlements: all of one call in one transaction. `Settling` keeps MUST 3 and 4; a copy needs no second step. */
import { Broker } from "@requeue/core/port"
import { Settling, SqlCommand } from "@requeue/kit"
import type { Connection } from "../connect/connection.ts"
import type { Store } from "../connect/store.ts"
import type { Consumer } from "../consume/consumer.ts"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import * as Rows from "../rows.ts"
import { errors } from "../toBrokerError.ts"

type Claim = Settling.Claim<SqlCommand.Command>

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

/** Returns the `settle` of a consumer. */
export const make = ({ held, refill }: Consumer, queue: string, store: Store): Broker.Subscription["settle"] => {
  const lost = errors.leaseLost({ operation: "settle", queue })

  /** The queue that gets the message. */
  const targetOf = (command: SqlCommand.Command): string | undefined =>
    ({ Remove: undefined, GiveBack: queue, Replace: command._tag === "Replace" ? command.queue : queue })[command._tag]

  const carryOutAll = (claims: ReadonlyArray<Claim>, done: Settling.Done<SqlCommand.Command>): void => {
    const now = store.now()
    let present: ReadonlySet<Claim> = new Set()
    store.add({
      operation: "settle",
      queue,
      weight: claims.length,
      run: (connection) => {
        present = new Set(
          claims.filter(({ command, delivery }) => carryOut(connection, receiptOf(delivery), command, now))
        )
        // At once, because the consumer may lease others in the same transaction.
        for (const { delivery } of claims) held.delete(receiptOf(delivery))
      },
      end: (error) => {
        for (const claim of claims) {
          if (error !== undefined) held.add(receiptOf(claim.delivery))
          done(claim, error ?? (present.has(claim) ? undefined : lost))
        }
        if (error !== undefined) return
        for (const each of new Set(claims.map(({ command }) => targetOf(command)))) {
          if (each !== undefined) store.wake(each)
        }
      }
    })
    refill()
  }

  return Settling.make<SqlCommand.Command>({
    // Of two settlements of one delivery, the second finds no row with the token.
    claim: ({ delivery }) => (held.has(receiptOf(delivery)) ? undefined : lost),
    release: () => undefined,
    toCommand: ({ delivery, settlement }) => SqlCommand.of(delivery, settlement, queue, store.now()),
    ack: SqlCommand.remove,
    carryOut: carryOutAll
  })
}
