/** Transactions of handlers: each acks its messages, and writes a row and sends a message for each of them. */
import { type Handler, type Producer, Transaction as Errors } from "@requeue/core"
import { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Delivery } from "../History.ts"
import type { Within } from "../Scenario.ts"
import type { Machine } from "../world/Machine.ts"
import type { Begin, Transaction } from "../world/Model.ts"
import { deliveryOf } from "../world/Parcels.ts"
import type { World } from "../world/World.ts"

type Received = Handler.Received<unknown>

/** The messages that a transaction acks: single ones, or a batch. */
interface Enlisting {
  readonly messages: ReadonlyArray<Received>
  readonly batch: Handler.Batch<unknown> | undefined
}

/** Runs a transaction in a run; a synchronous one ends before this returns. Fails with what fails in it. */
export type Transact = (run: number, within: Within, enlisting: Enlisting) => void | Promise<void>

interface Receipt {
  readonly of: Delivery
}

// Long, because its functions share the transaction.
/** The transactions of one process. */
export const make = (
  world: World,
  machine: Machine,
  begin: Begin,
  { within: sendingIn }: Producer.Producer<Receipt>
): Transact => {
  const { isAlive, name: process } = machine

  /** Acks messages, and records that the core has accepted the call, and that the broker refuses it. */
  const enlist = (run: number, deliveries: ReadonlyArray<Delivery>, call: () => Promise<void>): Promise<void> => {
    const enlisted = (isRefused: boolean): void => {
      if (isAlive()) world.record({ _tag: "Enlisted", process, run, deliveries, isRefused })
    }
    const failed = (error: unknown): never => {
      const isRefused = error instanceof BrokerError.BrokerError && !BrokerError.isDoubtful(error)
      if (!(error instanceof Errors.AlreadySettled)) enlisted(isRefused)
      throw error
    }
    try {
      const acked = call().catch(failed)
      enlisted(false)
      return acked
    } catch (error) {
      return failed(error)
    }
  }

  /** The acks of a transaction, one after the other. */
  const acksOf = (run: number, { batch, messages }: Enlisting, { value }: Transaction) =>
    batch === undefined
      ? messages.map((message) => () => enlist(run, [deliveryOf(message)], () => message.within(value)))
      : [() => enlist(run, messages.map(deliveryOf), () => batch.within(value))]

  const kill = (): void => {
    world.record({ _tag: "Killed", process, because: "handler" })
    machine.kill()
  }

  const synchronous = (run: number, { ends }: Within, enlisting: Enlisting): void => {
    const transaction = begin(false)
    const { commit, rollback, value, write } = transaction
    try {
      // A synchronous one throws instead of rejecting.
      for (const ack of acksOf(run, enlisting, transaction)) void ack()
      for (const message of enlisting.messages) {
        const of = deliveryOf(message)
        void write(of)
        Effect.runSync(sendingIn(value).send({ of }))
      }
      if (ends === "kill") return kill()
      if (ends === "commit") void commit()
    } catch (error) {
      if (isAlive()) void rollback()
      throw error
    }
    if (ends === "rollback") void rollback()
  }

  const sent = (value: unknown, of: Delivery): Promise<void> =>
    new Promise((resolve, reject) => {
      const sending = Effect.matchEffect(sendingIn(value).send({ of }), {
        onFailure: (error) => Effect.sync(() => reject(error)),
        onSuccess: () => Effect.sync(() => resolve())
      })
      machine.run(sending)
    })

  const asynchronous = async (run: number, { ends, takes }: Within, enlisting: Enlisting): Promise<void> => {
    const transaction = begin(true)
    const { commit, rollback, value, write } = transaction
    try {
      for (const ack of acksOf(run, enlisting, transaction)) await ack()
      for (const message of enlisting.messages) {
        const of = deliveryOf(message)
        await write(of)
        await sent(value, of)
      }
      await new Promise<void>((resolve) => void machine.after(takes, resolve))
    } catch (error) {
      await rollback()
      throw error
    }
    if (ends === "kill") return kill()
    await (ends === "commit" ? commit() : rollback())
  }

  return (run, within, enlisting) => (within.takes === 0 ? synchronous : asynchronous)(run, within, enlisting)
}
