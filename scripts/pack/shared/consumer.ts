import type { Requeue } from "@requeue/core/promise"
import { deadLetters } from "@requeue/operations/promise"
import { orders, ordersOptions } from "acme-queues"

/** Calls back with handled messages, and with failed ones. */
export const consume = async (requeue: Requeue, report: (text: string) => void): Promise<void> => {
  await requeue.consume(orders, ordersOptions, async ({ body: { items, placedAt } }) => {
    const year: number = placedAt.getUTCFullYear()
    const [letter] = await deadLetters(requeue, "orders.dead").list()
    report(`${items.length} items of ${year}, then: ${letter?.origin?.queue} ${letter?.origin?.reason}`)
  })
}
