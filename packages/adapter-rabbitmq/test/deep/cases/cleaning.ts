/** What clean must not lose, double, hasten or take away, as far as that shows before a queue has been empty for 15 s. */
import { Backoff, RetryPolicy } from "@requeue/core"
import { Check, Lateness } from "@requeue/conformance"
import { connect } from "amqplib"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Report } from "../../../src/clean.ts"
import { get } from "../../real/adoptedBooks.ts"
import { exists, none } from "../cleaning.ts"
import { consume, no, raw, type Run } from "../traps/trap.ts"
import { ids, now, outgoing, queueName, until } from "../../world.ts"
import { type Adapter, test } from "../../real/cases/Adapter.ts"

type Service = Adapter["Service"]

/** Milliseconds of a delay that the configuration does not know. */
const delay = 8000

/** The names of one case, and a clean of them that can be stopped. */
const place = ({ clean, server: { broker, url } }: Service) => {
  const [queue, prefix, stop] = [queueName("clean"), queueName("p").slice(0, 20), new AbortController()]
  const management = broker.managementUrl!
  const bindingsOf = async (name: string): Promise<number> =>
    ((await get(management, "bindings/%2F")) as ReadonlyArray<{ source: string; destination: string }>) // As RabbitMQ documents it.
      .filter(({ destination, source }) => destination === name && source !== "").length
  return {
    queue,
    prefix,
    rung: `${prefix}.v1.q.delay.${delay}`,
    meanwhile: `${prefix}.v1.q.cleaning`,
    bindingsOf,
    cleaning: Effect.forkChild(
      clean([{ queue, retry: none }], { url, prefix, management }, { isWhole: true }, stop.signal)
    ),
    stop: Effect.sync(() => stop.abort()),
    exists: (name: string) => exists(url, name)
  }
}

const kept = ({ objects }: Report) => objects.map(({ outcome, why }) => `${outcome}, ${why}`)

/** A foreign producer, which publishes by an exchange and counts what is not routed. */
const foreign = (url: string, exchange: string, key: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => connect(url)),
      (model) => Effect.promise(() => model.close())
    ),
    (model) => async (isOver: (count: number) => boolean) => {
      const channel = await model.createConfirmChannel()
      const begun = now()
      let [returned, count] = [0, 0]
      channel.on("return", () => returned++)
      for (; !isOver(count); count++) {
        channel.publish(exchange, key, Buffer.from('"x"'), { mandatory: true, messageId: `x${count}` })
        await new Promise((resume) => setTimeout(resume, 1))
      }
      await channel.waitForConfirms()
      return { begun, returned }
    }
  )

export const cases = [
  test("a clean that is stopped has moved each message once, none before its time, and all is as it was", (adapter, on) =>
    Effect.gen(function* () {
      const { url } = adapter.server
      const { bindingsOf, cleaning, exists, meanwhile, prefix, queue, rung, stop } = place(adapter)
      const runs: Array<Run> = []
      const [names, others] = [ids(30), 10]
      const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(delay) })
      const begun = yield* on({ prefix }, (broker) =>
        Effect.gen(function* () {
          yield* consume(queue, runs, { retry, concurrency: 20 }, ({ attempts, id }) =>
            attempts === 1 && id.startsWith("m") ? no() : undefined
          )
          const publish = yield* foreign(url, rung, queue)
          yield* broker.publish(names.map((id) => outgoing(queue, id)))
          yield* until("first runs", () => runs.length === names.length)
          const { begun } = yield* Effect.promise(() => publish((count) => count === others))
          const fiber = yield* cleaning
          const isLed = async () => (await bindingsOf(rung)) === 0
          yield* until("a rung without a binding", isLed)
          const isEmpty = () => raw(url, (channel) => channel.checkQueue(rung)).then((told) => told.messageCount === 0)
          yield* until("a rung without a message", isEmpty)
          // What was due meanwhile has left it by itself.
          const late = now() - runs[0]!.at - delay
          if (late >= 0)
            yield* Effect.fail(new Lateness.NotMeasurable([{ what: "clean", late, bound: 0, control: late }]))
          yield* stop
          Check.equal("kept", new Set(kept(yield* Fiber.join(fiber))), new Set(["kept, interrupted"]))
          yield* until("all runs", () => runs.length >= 2 * names.length + others, 2 * delay)
          return begun
        })
      )
      for (const [id, [first, second]] of Map.groupBy(runs, (run) => run.id)) {
        // Those without a time of their own wait again, from the beginning.
        const since = second === undefined ? begun : first!.at
        Check.isTrue(`${id} is not early`, (second ?? first)!.at - since >= delay)
      }
      const expected = [...names.flatMap((id) => [`${id} 1`, `${id} 2`]), ...ids(others, "x").map((id) => `${id} 1`)]
      Check.equal("runs", runs.map(({ attempts, id }) => `${id} ${attempts}`).toSorted(), expected.toSorted())
      const left = yield* Effect.promise(async () => [await bindingsOf(rung), await exists(meanwhile)])
      Check.equal("bindings, and a queue of its own", left, [1, false])
    })),

  test("while a clean begins, and is stopped, all that is published is routed", (adapter, on) =>
    Effect.gen(function* () {
      const { bindingsOf, cleaning, prefix, queue, rung, stop } = place(adapter)
      const retry = RetryPolicy.make({ backoff: Backoff.constant(delay) })
      yield* on({ prefix }, () => consume(queue, [], { retry }))
      const publish = yield* foreign(adapter.server.url, rung, queue)
      let isOver = false
      const publishing = yield* Effect.forkChild(Effect.promise(() => publish(() => isOver)))
      const fiber = yield* cleaning
      yield* until("a rung without a binding", async () => (await bindingsOf(rung)) === 0)
      yield* stop
      yield* until("a rung with its binding", async () => (await bindingsOf(rung)) === 1)
      isOver = true
      Check.equal("not routed", (yield* Fiber.join(publishing)).returned, 0)
      yield* Fiber.join(fiber)
    })),

  test("one clean runs at a time", (adapter, on) =>
    Effect.gen(function* () {
      const { bindingsOf, cleaning, prefix, queue, rung, stop } = place(adapter)
      const retry = RetryPolicy.make({ backoff: Backoff.constant(delay) })
      yield* on({ prefix }, () => consume(queue, [], { retry }))
      const first = yield* cleaning
      yield* until("it has begun", async () => (await bindingsOf(rung)) === 0)
      const second = yield* cleaning
      yield* Effect.sleep(1000)
      yield* stop
      const refusal = String(yield* Effect.flip(Fiber.join(second)))
      Check.isTrue("the second is refused", refusal.includes("another clean is running"), refusal)
      yield* Fiber.join(first)
    })),

  test("a clean takes nothing away that a consumer reads", (adapter, on) =>
    Effect.gen(function* () {
      const { bindingsOf, cleaning, prefix, queue, stop } = place(adapter)
      const waiting = `${queue}.waiting.v1`
      const retry = RetryPolicy.make({ backoff: Backoff.constant(delay) })
      yield* on({ prefix, topology: "waitLoop" }, () =>
        Effect.gen(function* () {
          yield* consume(queue, [], { retry })
          const before = yield* Effect.promise(() => bindingsOf(waiting))
          const fiber = yield* cleaning
          yield* Effect.sleep(1500)
          Check.equal("bindings", yield* Effect.promise(() => bindingsOf(waiting)), before)
          yield* stop
          const reasons = kept(yield* Fiber.join(fiber))
          Check.isTrue("the reason", reasons.includes(`kept, a consumer reads ${waiting}`), reasons)
        })
      )
    }))
]
