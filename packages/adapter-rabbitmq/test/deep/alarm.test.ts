/** A server that is short of memory, while handlers fail. */
import { Backoff, BrokerError, type Event, RetryPolicy } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { RabbitMqBroker } from "../../src/index.ts"
import { server } from "../real/server.ts"
import { consume, no, type Run } from "./traps/trap.ts"
import { ids, on, outgoing, queueName, reasonOf, until } from "../world.ts"

const one = await server()
const [node] = one.broker.nodes
const within = 60_000

/** Sets the share of the memory above which the server blocks publishers. */
const limit = (share: string) => Effect.promise(() => node!.ctl("set_vm_memory_high_watermark", share))

test.runIf(node)("retries that cannot be stored during an alarm use up no attempt, and keep their delay", async () => {
  const queue = queueName("alarm")
  const delay = 1000
  const runs: Array<Run> = []
  const events: Array<Event.Event> = []
  await on({ url: one.url, publishTimeout: 1500 }, (broker) =>
    Effect.gen(function* () {
      const blocked = yield* Deferred.make<void>()
      yield* broker.publish(ids(3).map((id) => outgoing(queue, id)))
      const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.constant(delay) })
      const onEvent = (event: Event.Event) => void events.push(event)
      yield* consume(queue, runs, { retry, concurrency: 3, onEvent }, () =>
        Effect.andThen(Deferred.await(blocked), no())
      )
      yield* until("three runs", () => runs.length === 3, within)
      yield* Effect.ensuring(
        Effect.gen(function* () {
          yield* limit("0.00000001")
          const isBlocked = Effect.matchEffect(broker.publish([outgoing(`${queue}.other`, "probe")]), {
            onFailure: (error) => Effect.succeed(reasonOf(error) === "Throttled"),
            onSuccess: () => Effect.as(Effect.sleep(100), false)
          })
          yield* until("the alarm", () => Effect.runPromise(isBlocked), within)
          yield* Deferred.succeed(blocked, undefined)
          const failed = () => events.filter(({ _tag }) => _tag === "SettleFailed").length
          yield* until("settlements that fail, and fail again", () => failed() > 4, within)
          assert.deepStrictEqual(
            runs.map(({ attempts }) => attempts),
            [1, 1, 1]
          )
        }),
        limit("0.6")
      )
      const dead = () => events.filter(({ _tag }) => _tag === "DeadLettered").length
      yield* until(
        () => `three deaths, after ${runs.length} runs`,
        () => dead() === 3,
        within
      )
    })
  )
  for (const id of ids(3)) {
    const own = runs.filter((run) => run.id === id)
    assert.deepStrictEqual(
      own.map(({ attempts }) => attempts),
      [1, 2, 3],
      id
    )
    assert.isAtLeast(own[2]!.at - own[1]!.at, delay, id)
  }
})

test.runIf(node)(
  "a send that is given up during an alarm tells it, however short the producer's timeout is",
  async () => {
    const queue = queueName("impatient")
    await using requeue = await connect(RabbitMqBroker.layer({ url: one.url }), {
      publishTimeout: "500 millis",
      logLevel: "None"
    })
    await requeue.send(queue, "before")
    const sent = (body: string) =>
      requeue.send(queue, body).then(
        () => undefined,
        (error: unknown) => error
      )
    let error: unknown
    try {
      await Effect.runPromise(limit("0.00000001"))
      // The first ones may be written before the server says that it blocks.
      const isTold = async () => reasonOf((error = await sent("during"))) !== "Timeout" && error !== undefined
      await Effect.runPromise(until("a send that is not written", isTold, within))
    } finally {
      await Effect.runPromise(limit("0.6"))
    }
    assert.instanceOf(error, BrokerError.BrokerError)
    assert.strictEqual(error.reason, "Throttled")
    assert.match(error.detail, /^the server blocks publishers: ./)
    assert.strictEqual(error.remedy, "Check the server's alarms for memory and disk")
  }
)
