/** The queues of a company: all that a producer and a consumer must agree on. */
import { type ConsumeOptions, queue } from "@requeue/core/promise"
import * as z from "zod"

export const orders = queue("orders", {
  schema: z.object({
    items: z.array(z.object({ price: z.number() })),
    placedAt: z.iso.datetime().transform((text) => new Date(text))
  }),
  delay: "10 millis"
})

export const ordersOptions = { retry: { maxRetries: 5, deadLetter: "orders.dead" } } satisfies ConsumeOptions
