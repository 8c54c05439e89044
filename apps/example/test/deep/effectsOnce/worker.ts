/**
 * A consumer and a relay in a process of their own, which kills itself at the ordered step. Of 30 runs, one fails before its transaction,
 * one in it, and one after it. Writes a line for each run.
 */
import { Adapters, Broker } from "@requeue/core"
import { BrokerError, connect, constant } from "@requeue/core/promise"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type Body, type Orders, queues, type Step } from "./orders.ts"
import * as Tables from "./tables.ts"

const orders = JSON.parse(process.argv[2]!) as Orders // The test writes them.
const { database, form, kill, store } = orders

let times = 0

const reach = (step: Step): void => {
  if (step === kill?.step && ++times === kill.time) process.kill(process.pid, "SIGKILL")
}

const between = <A, E>(before: Step, effect: Effect.Effect<A, E>, after: Step): Effect.Effect<A, E> =>
  Effect.tap(
    Effect.suspend(() => {
      reach(before)
      return effect
    }),
    () => Effect.sync(() => reach(after))
  )

/** Makes a broker that reaches the steps of settlements and of the relay. */
const watched = (broker: Broker.Service): Broker.Service => ({
  ...broker,
  publish: (messages) => between("before publishing", broker.publish(messages), "after publishing"),
  subscribe: (options) =>
    Effect.map(broker.subscribe(options), (subscription) => ({
      ...subscription,
      settle: (requests) => between("before the ack", subscription.settle(requests), "after the ack")
    }))
})

const layer = Layer.effect(
  Broker.Broker,
  Effect.map(Layer.build(Adapters.layer(orders.broker)), (context) => watched(Context.get(context, Broker.Broker)))
)
const requeue = await connect(layer, { logger: false, waitForBroker: "5 minutes", ...(store && { store }) })
const tables = Tables.open(database)
const options = { concurrency: 10, retry: { maxRetries: 10_000, maxDeliveries: 20_000, backoff: constant(50) } }
const no = new Error("no")

/** How the run of a message fails, if it does. */
const failureOf = (of: number, attempts: number): "before" | "in" | "after" | undefined =>
  form === "ack" ? undefined : (["before", "in", "after"] as const)[(of * 7 + attempts * 13) % 30]

const consume = (queue: string, table: "effect" | "receipt") =>
  requeue.consume(queue, options, async (message) => {
    console.log(table)
    const body = message.body as Body // The test sends it.
    const failure = failureOf(body.of, message.attempts)
    if (failure === "before") throw no
    const actions: Tables.Actions = {
      table,
      of: body.of,
      within: (transaction) => message.within(transaction),
      send: (transaction) => {
        if (failure === "in") throw no
        if (table === "receipt") return
        return (form === "transaction" ? requeue.within(transaction) : requeue).send(queues.receipts, body)
      }
    }
    await (form === "transaction" ? tables.commit : tables.write)(actions, reach)
    reach("after COMMIT")
    if (failure === "after") throw no
  })

/** Starts a consumer. While its server is down, that fails. */
const started = async (start: () => Promise<unknown>): Promise<void> => {
  while (true) {
    try {
      await start()
      return
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
    }
  }
}

await started(() => consume(queues.work, "effect"))
await started(() => consume(queues.receipts, "receipt"))
if (store !== undefined) await started(() => requeue.relay())

process.once("SIGTERM", () => {
  void requeue.close().then(tables.close)
})
