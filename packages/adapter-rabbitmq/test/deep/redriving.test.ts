/** Redrives in stages on a real server: what the management interface tells of their letters. */
import { proxy } from "@requeue/brokers"
import { Backoff, type Broker, Consumer, RetryPolicy } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import type { RabbitMqOptions } from "../../src/index.ts"
import { bury, disturb, patient } from "./cases/redriving.ts"
import { shared } from "../real/server.ts"
import { now, on, queueName } from "../world.ts"

const { broker: one, url } = await shared()
const management = one.managementUrl ?? ""

/** Runs a redrive beside a consumer, and answers its report and how long it took, in milliseconds. */
const redrive = (
  options: RabbitMqOptions.Options,
  count: number,
  asked: DeadLetters.RedriveOptions,
  {
    before = () => Effect.void,
    beside = Effect.void,
    retry = RetryPolicy.make({ maxRetries: 0 }),
    run = () => Effect.void
  }: {
    readonly before?: (broker: Broker.Service) => ReturnType<typeof disturb> | Effect.Effect<void>
    readonly beside?: Effect.Effect<void>
    readonly retry?: RetryPolicy.RetryPolicy
    readonly run?: (attempts: number) => Effect.Effect<void, Error>
  } = {}
) =>
  on({ url, prefix: queueName("p"), ...options }, (broker) =>
    Effect.gen(function* () {
      const queue = queueName("staged")
      yield* before(broker)
      yield* Consumer.start(queue, { retry, concurrency: 10 }, ({ attempts }) => run(attempts))
      yield* bury(broker, queue, count)
      const letters = yield* DeadLetters.make(`${queue}.dlq`)
      const begun = now()
      const [report] = yield* Effect.all([letters.redrive(asked), beside], { concurrency: "unbounded" })
      return { report, took: now() - begun }
    })
  )

const figures = ({ cameBack, published, stoppedBy, succeeded, waiting }: DeadLetters.RedriveReport) => [
  published,
  succeeded,
  cameBack,
  waiting,
  stoppedBy
]

describe.runIf(one.managementUrl !== undefined).concurrent("with the management interface", () => {
  it("retries of other queues that wait in the same places hold nothing up", async () => {
    const before = (broker: Broker.Service) => disturb(broker, patient)
    const asked = { stages: [1], wait: "10 minutes" } as const
    const { report, took } = await redrive({ management }, 5, asked, { before })
    assert.deepStrictEqual(figures(report), [5, 5, 0, 0, undefined])
    assert.isBelow(took, 300_000)
  })

  it.each(["auto", "levels", "perDelayQueue", "waitLoop", "perMessageTtl"] as const)(
    "retries that end well are waited for in the layout %s",
    async (topology) => {
      const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant("7 seconds") })
      const run = (attempts: number) => (attempts === 1 ? Effect.fail(new Error("503")) : Effect.void)
      const asked = { stages: [3], wait: "10 minutes" } as const
      const { report } = await redrive({ management, topology }, 3, asked, { retry, run })
      assert.deepStrictEqual(figures(report), [3, 3, 0, 0, undefined])
    }
  )

  it("a letter that a slow handler has is not taken for done", async () => {
    const run = () => Effect.never
    const asked = { limit: 1, stages: [1], wait: "20 seconds" } as const
    const { report } = await redrive({ management }, 1, asked, { run })
    assert.deepStrictEqual(figures(report).slice(0, 4), [1, 0, 0, 1])
  })

  it("while that is away nothing is told, and it is told again when it is back", async () => {
    const address = new URL(management)
    const between = await proxy(Number(address.port))
    address.host = `127.0.0.1:${between.port}`
    const options = { management: address.href, requestTimeout: 2000 }
    try {
      const away = await redrive(
        options,
        1,
        { limit: 1, stages: [1], wait: "8 seconds" },
        {
          beside: Effect.sync(() => between.blackhole(true))
        }
      )
      assert.deepStrictEqual(figures(away.report), [1, undefined, 0, undefined, undefined])
      const back = Effect.andThen(
        Effect.sleep("10 seconds"),
        Effect.sync(() => between.blackhole(false))
      )
      const told = await redrive(options, 1, { limit: 1, stages: [1], wait: "5 minutes" }, { beside: back })
      assert.deepStrictEqual(figures(told.report), [1, 1, 0, 0, undefined])
    } finally {
      await between.close()
    }
  })
})
