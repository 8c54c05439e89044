/** Renews leases. A lease that could not be renewed goes on: the next call tries again. */
import { Broker, type Delivery } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import type { Store } from "../connect/store.ts"
import * as Rows from "../rows.ts"
import { errors } from "../toBrokerError.ts"
import { receiptOf } from "./receipt.ts"

/** Renews the leases of deliveries, and returns those that it could not renew. */
export const extend = (
  deliveries: ReadonlyArray<Delivery.Delivery>,
  queue: string,
  { add, leaseEnd }: Store
): Effect.Effect<ReadonlyArray<Broker.SettleFailure>> =>
  Effect.callback((resume) => {
    const context = { operation: "extend", queue }
    let lost: ReadonlyArray<Delivery.Delivery> = []
    add({
      ...context,
      weight: deliveries.length,
      run: (connection) => {
        const until = leaseEnd()
        lost = deliveries.filter((each) => !Rows.extend(connection, receiptOf(each), until))
        for (const each of deliveries) receiptOf(each).until = until
      },
      end: (error) =>
        resume(
          Effect.succeed(
            error === undefined
              ? lost.map((delivery) => ({ delivery, error: errors.leaseLost(context), fate: "lost" as const }))
              : deliveries.map((delivery) => ({ delivery, error, fate: Broker.fateOf(error) }))
          )
        )
    })
  })
