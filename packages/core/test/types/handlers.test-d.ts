/** A type test: handlers of the promise face answer anything but Effects that need services. */
import type { Requeue } from "@requeue/core/promise"
import { Context, Effect } from "effect"

declare class Shop extends Context.Service<Shop, { readonly charge: Effect.Effect<void, "closed"> }>()("Shop") {}
declare const shop: Context.Service.Shape<typeof Shop>
const charge = Shop.use(({ charge }) => charge)

declare const requeue: Requeue
declare const seen: Array<unknown>

export const accepted = (): ReadonlyArray<unknown> => [
  requeue.consume("q", {}, () => {}),
  requeue.consume("q", {}, async () => {}),
  requeue.consume("q", {}, async ({ body }) => seen.push(body)),
  requeue.consume("q", {}, ({ body }) => void seen.push(body)),
  requeue.consume("q", {}, ({ attempts }) => (attempts > 1 ? fetch("https://example.com") : undefined)),
  requeue.consume("q", {}, () => Promise.reject(new Error("no"))),
  requeue.consume("q", {}, () => {
    throw new Error("no")
  }),
  requeue.consume("q", {}, (): any => 5), // Any, because handlers in JavaScript answer it.
  requeue.consume("q", {}, () => Effect.fail("no")),
  requeue.consume("q", {}, async () => Effect.void),
  requeue.consume("q", {}, () => Effect.provideService(charge, Shop, shop)),
  requeue.consume<string>("q", {}, ({ body }) => body.length),
  requeue.consumeBatch("q", {}, (batch) => batch.ackAll()),
  requeue.consumeBatch("q", {}, ({ messages }) => Effect.forEach(messages, () => Effect.void))
]

export const refused = (): ReadonlyArray<unknown> => [
  // @ts-expect-error nobody provides the shop
  requeue.consume("q", {}, () => charge),
  // @ts-expect-error not even sometimes
  requeue.consume("q", {}, ({ attempts }) => (attempts > 1 ? charge : undefined)),
  // @ts-expect-error nor to the Effect of a promise
  requeue.consume("q", {}, async () => charge),
  // @ts-expect-error nor to that of a batch
  requeue.consumeBatch("q", {}, () => charge)
]
