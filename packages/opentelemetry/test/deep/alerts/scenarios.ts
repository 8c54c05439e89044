/** An hour of a queue each: ten minutes in which all is well, an outage, and what comes after it. */
import { type Faults, MemoryBroker, MemoryTransaction } from "@requeue/adapter-memory"
import { Backoff, Broker, Consumer, ConsumerBackoff, Producer, Relay, RetryPolicy, Store } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Scrape } from "./samples.ts"
import { failure, load, type Outage, type Program, scrape } from "./world.ts"

export interface Scenario {
  readonly name: string
  /** The alerts that fire in these minutes, and no others. In the first ten minutes there are none. */
  readonly fires: Readonly<Record<number, ReadonlyArray<string>>>
  readonly faults?: Faults.Faults
  readonly program: (outage: Outage) => Program
}

/** The minutes that a scenario takes. */
const minutes = 90

/** When outages begin, and when they are over. */
const [begins, ends] = ["10 minutes", "30 minutes"] as const

const shopClosed = Object.assign(new Error("no"), { name: "ShopClosed" })

const during = (begin: () => void, end: () => void = () => {}): Program =>
  Effect.gen(function* () {
    yield* Effect.sleep(begins)
    begin()
    yield* Effect.sleep(ends)
    end()
    return yield* Effect.never
  })

const patient = RetryPolicy.make({ maxRetries: "unlimited", backoff: Backoff.constant("20 seconds") })

/** A consumer whose dependency is down for the time of the outage. */
const shop = (options: Consumer.Options): Program =>
  Effect.gen(function* () {
    let isClosed = false
    yield* Consumer.start("orders", options, () => (isClosed ? Effect.fail(shopClosed) : Effect.sleep(100)))
    yield* load("orders", 2000)
    yield* during(
      () => (isClosed = true),
      () => (isClosed = false)
    )
  })

/** A consumer of which one message in twenty fails the first time, as on every day. */
const ordinary = (options: Consumer.Options = {}): Program<Consumer.Consumer> =>
  Effect.gen(function* () {
    const handler = ({ attempts, body }: { readonly attempts: number; readonly body: number }) =>
      body % 20 === 7 && attempts === 1 ? Effect.fail(shopClosed) : Effect.sleep(100)
    const consumer = yield* Consumer.start<number>("orders", { retry: patient, ...options }, handler)
    yield* load("orders", 2000)
    return consumer
  })

export const scenarios: ReadonlyArray<Scenario> = [
  {
    name: "all is well",
    fires: Object.fromEntries(Array.from({ length: minutes - 10 }, (_, index) => [index + 11, []])),
    program: () => Effect.andThen(ordinary(), Effect.never)
  },
  {
    name: "a single message is given up",
    fires: { 12: ["RequeueMessagesGivenUp"], 22: [] },
    program: () =>
      Effect.gen(function* () {
        const handler = ({ body }: { readonly body: number }) => (body === 310 ? Effect.fail(shopClosed) : Effect.void)
        yield* Consumer.start<number>("orders", { retry: RetryPolicy.make({ maxRetries: 0 }) }, handler)
        yield* load("orders", 2000)
        return yield* Effect.never
      })
  },
  {
    name: "the shop is closed for longer than the policy bears",
    fires: { 12: ["RequeueMessagesGivenUp"], 39: ["RequeueMessagesGivenUp", "RequeueRetriesOutnumberOthers"], 60: [] },
    program: () => shop({ retry: RetryPolicy.make({ maxRetries: 3, backoff: Backoff.constant("20 seconds") }) })
  },
  {
    name: "the shop is closed, and the consumer backs off",
    fires: { 39: ["RequeueBacklogNotMoving", "RequeueHandlersPaused", "RequeueRetriesLate"], 60: [] },
    program: () => shop({ retry: patient, consumerBackoff: ConsumerBackoff.nsq() })
  },
  {
    name: "handlers hang",
    fires: {
      39: ["RequeueBacklogNotMoving", "RequeueHandlersTimeOut", "RequeueRetriesLate", "RequeueRetriesOutnumberOthers"],
      75: []
    },
    program: () =>
      Effect.gen(function* () {
        let hangs = false
        const options = { retry: patient, handlerTimeout: "20 seconds", concurrency: 20 } as const
        yield* Consumer.start("orders", options, () => (hangs ? Effect.never : Effect.sleep(100)))
        yield* load("orders", 2000)
        yield* during(
          () => (hangs = true),
          () => (hangs = false)
        )
      })
  },
  {
    name: "leases are lost",
    fires: { 12: ["RequeueLeasesLost"], 60: [] },
    faults: { lease: { duration: 30_000, max: 43_200_000 } },
    program: ({ faults }) =>
      Effect.gen(function* () {
        yield* Consumer.start("orders", { retry: patient, concurrency: 40 }, () => Effect.sleep("1 minute"))
        yield* load("orders", 2000)
        yield* during(
          () => (faults.extend = () => ({ error: failure("LeaseLost"), fate: "lost" })),
          () => (faults.extend = undefined)
        )
      })
  },
  {
    name: "the connection is lost",
    fires: { 12: ["RequeueNotConnected", "RequeueQueueDown", "RequeueSendsFail"], 60: [] },
    program: ({ disconnect }) =>
      Effect.andThen(
        ordinary(),
        during(
          () => disconnect(true),
          () => disconnect(false)
        )
      )
  },
  {
    name: "the broker of an outbox cannot be reached",
    fires: { 24: [], 39: ["RequeueOutboxNotMoving"], 60: [] },
    program: ({ disconnect }) =>
      Effect.gen(function* () {
        const broker = Layer.succeed(Broker.Broker, yield* Broker.Broker)
        const beside = yield* Layer.build(Store.layer(broker, MemoryBroker.layer()))
        const relaying = Effect.gen(function* () {
          yield* Relay.start()
          const { within } = yield* Producer.make("orders")
          const write = MemoryTransaction.runEffect((transaction) => within(transaction).send(1))
          yield* Effect.forkScoped(Effect.forever(Effect.andThen(write, Effect.sleep("30 seconds"))))
          return yield* during(
            () => disconnect(true),
            () => disconnect(false)
          )
        })
        return yield* Effect.provide(relaying, beside)
      })
  },
  {
    name: "the broker takes no retries",
    fires: { 39: ["RequeueBrokerTrouble", "RequeueSettlementsFail", "RequeueBacklogNotMoving"], 75: [] },
    program: ({ faults }) =>
      Effect.andThen(
        ordinary(),
        during(
          () => (faults.settle = () => ({ error: failure("Throttled"), fate: "transient" })),
          () => (faults.settle = undefined)
        )
      )
  },
  {
    name: "the broker refuses dead letters",
    fires: { 39: ["RequeueQuarantine", "RequeueSettlementsFail"], 75: [] },
    program: ({ faults }) =>
      Effect.gen(function* () {
        const handler = ({ body }: { readonly body: number }) =>
          body === 310 ? Effect.fail(shopClosed) : Effect.sleep(100)
        yield* Consumer.start<number>("orders", { retry: RetryPolicy.make({ maxRetries: 0 }) }, handler)
        yield* load("orders", 2000)
        yield* during(
          () =>
            (faults.settle = ({ settlement }) =>
              settlement._tag === "Ack" ? undefined : { error: failure("QueueMissing"), fate: "rejected" }),
          () => (faults.settle = undefined)
        )
      })
  },
  {
    name: "the queue is gone and may not be made",
    fires: { 39: ["RequeueQueueDown", "RequeueBacklogNotMoving"], 75: [] },
    program: ({ faults, hold }) =>
      Effect.andThen(
        ordinary(),
        during(
          () => {
            hold(true)
            faults.trouble = () => ({ since: 0, error: failure("AccessRefused") })
          },
          () => {
            hold(false)
            faults.trouble = undefined
          }
        )
      )
  },
  {
    name: "the adapter never answers",
    fires: { 39: ["RequeueStalled", "RequeueBacklogNotMoving"] },
    program: ({ hang }) => Effect.andThen(ordinary(), during(hang))
  },
  {
    name: "the consumer ends",
    fires: { 12: [], 20: ["RequeueNobodyConsumes"], 39: ["RequeueBacklogNotMoving", "RequeueNobodyConsumes"] },
    program: () =>
      Effect.flatMap(ordinary(), (consumer) =>
        Effect.andThen(Effect.sleep(begins), Effect.andThen(consumer.drain(0), Effect.never))
      )
  },
  {
    name: "the process ends",
    fires: { 12: [], 20: ["RequeueNobodyConsumes"] },
    program: ({ vanish }) => Effect.andThen(ordinary(), during(vanish))
  },
  {
    name: "the consumer is paused by hand",
    fires: { 39: ["RequeueBacklogNotMoving"], 75: ["RequeueBacklogNotMoving", "RequeuePausedByHand"] },
    program: () => Effect.flatMap(ordinary(), (consumer) => during(consumer.pause))
  },
  {
    name: "there are too few consumers",
    fires: { 80: ["RequeueBacklogSlow", "RequeueRetriesLate"] },
    program: () =>
      Effect.gen(function* () {
        let cost = 100
        const handler = ({ attempts, body }: { readonly attempts: number; readonly body: number }) =>
          Effect.andThen(Effect.sleep(cost), body % 20 === 7 && attempts === 1 ? Effect.fail(shopClosed) : Effect.void)
        yield* Consumer.start<number>("orders", { retry: patient }, handler)
        yield* load("orders", 2000)
        yield* during(() => (cost = 4000))
      })
  }
]

const played = new Map<string, Promise<ReadonlyArray<Scrape>>>()

/** The scrapes of a scenario, which is played once. */
export const scrapesOf = ({ name, program, faults = {} }: Scenario): Promise<ReadonlyArray<Scrape>> => {
  const scrapes = played.get(name) ?? scrape(minutes, faults, program)
  played.set(name, scrapes)
  return scrapes
}
