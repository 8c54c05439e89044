/** Carries out settlements. `Settling` keeps MUST 3 and 4; a copy needs no second step. */
import { Broker, type BrokerError } from "@requeue/core/port"
import { Settling, SqlCommand } from "@requeue/kit"
import type { End } from "../connect/gather.ts"
import type { Store } from "../connect/store.ts"
import type { Consumer } from "../consume/consumer.ts"
import { type Receipt, receiptOf } from "../consume/receipt.ts"
import { errors } from "../toBrokerError.ts"
import { type Changes, type Outcome, problemOf } from "./changes.ts"

/** Milliseconds until a settlement checks again whether the message is locked. */
const lockedPause = 50

/** A message with a key takes a lock, and the server has a limited number: half as many are settled in one statement. */
const weightOf = ({ lane }: Receipt): number => (lane === undefined ? 1 : 2)

/** Returns the `settle` of a consumer. */
export const make = (
  { held, refill }: Consumer,
  queue: string,
  store: Store,
  changes: Changes
): Broker.Subscription["settle"] => {
  const context = { operation: "settle", queue }
  const { settings, timers } = store
  const carryOut = (claim: Settling.Claim<SqlCommand.Command>, done: Settling.Done<SqlCommand.Command>): void => {
    const { command, delivery } = claim
    const receipt = receiptOf(delivery)
    const end = (error: BrokerError.BrokerError | undefined, outcome?: Outcome): void => {
      if (error === undefined && outcome !== "locked") held.delete(receipt)
      if (error !== undefined && Broker.fateOf(error) === "unknown") receipt.isUncertain = true
      if (typeof outcome === "number") wake(command, receipt, outcome)
      done(claim, error ?? problemOf(outcome, context))
      refill()
    }
    const until = timers.now() + settings.timeout
    /** A transaction that acks the message may still be open: its end decides. Other settlements do not wait for it. */
    const attempt = (): void =>
      change(command, receipt, (error, outcome) => {
        if (outcome === "locked" && timers.now() < until) timers.after(lockedPause, attempt)
        else end(error, outcome)
      })
    attempt()
  }

  const change = (command: SqlCommand.Command, receipt: Receipt, end: End<Outcome>): void => {
    switch (command._tag) {
      case "Remove":
        return (receipt.isUncertain ? changes.removeAgain : changes.remove)(receipt, weightOf(receipt), context, end)
      case "GiveBack":
        return changes.giveBack({ ...receipt, uncounted: 1 }, 1, context, end)
      case "Replace":
        return changes.replace({ ...receipt, ...command }, weightOf(receipt), context, end)
    }
  }

  const wake = (command: SqlCommand.Command, { lane }: Receipt, at: number): void => {
    const hasLeft = command._tag === "Remove" || (command._tag === "Replace" && command.place?.queue === undefined)
    if (lane !== undefined && hasLeft) store.wake(lane, at)
    if (command._tag === "GiveBack") store.wake(queue, at)
    if (command._tag === "Replace") store.wake(command.queue, at)
  }

  return Settling.make<SqlCommand.Command>({
    claim: ({ delivery }) => {
      // The server decides whether a lease was lost: one that has ended lasts until another consumer takes the message.
      const receipt = receiptOf(delivery)
      if (receipt.isTaken) return errors.leaseLost(context)
      receipt.isTaken = true
      return undefined
    },
    release: ({ delivery }) => {
      receiptOf(delivery).isTaken = false
      return undefined
    },
    toCommand: ({ delivery, settlement }) => SqlCommand.of(delivery, settlement, queue, store.now()),
    ack: SqlCommand.remove,
    carryOut: (claims, done) => {
      for (const claim of claims) carryOut(claim, done)
    }
  })
}
