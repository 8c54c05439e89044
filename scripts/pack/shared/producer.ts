import type { Requeue } from "@requeue/core/promise"
import { orders } from "acme-queues"

export const produce = async (requeue: Requeue): Promise<void> => {
  await requeue.send("orders", { items: "none" }, { delay: 0 }) // of a sender that does not know the schema
  await requeue.send(orders, { items: [{ price: 1 }, { price: 2 }], placedAt: "2026-01-01T00:00:00Z" })
}

/** What is wrong for the compiler is rejected when it is sent, too. */
export const misuse = (requeue: Requeue): Promise<string> =>
  // @ts-expect-error a price is a number
  requeue.send(orders, { items: [{ price: "x" }], placedAt: "2026-01-01T00:00:00Z" }).then(
    () => "sent",
    (error: Error) => error.message
  )
