/** Three processes, an unkind SQS and a network that breaks: no message is lost, none is early, and every one ends. */
import { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { assert, test } from "vitest"
import type { Effect as FaultEffect } from "../../src/servers/sqs/Faults.ts"
import { ids, minute, on, type Run, second, until, type World } from "./world.ts"

const queue = "orders"
const names = ids(40)

/** The message fails so often: some are dead-lettered. */
const failures = (id: string): number => Number(id.slice(1)) % 5

const effects: ReadonlyArray<FaultEffect> = [
  { _tag: "lostRequest" },
  { _tag: "lostAnswer" },
  { _tag: "brokenAnswer" },
  { _tag: "slow", millis: 3 * second },
  { _tag: "refused", error: "InternalFailure" },
  { _tag: "refused", error: "RequestThrottled" },
  { _tag: "refusedEntries", error: "InternalFailure", places: [0, 2] }
]

/** Breaks things at random for a while. */
const breaking = ({ network }: World) =>
  Effect.gen(function* () {
    for (let time = 0; time < 30; time++) {
      yield* Effect.sleep(yield* Random.nextBetween(0, 2 * second))
      const action = yield* Random.choice([
        "SendMessageBatch",
        "DeleteMessageBatch",
        "ChangeMessageVisibilityBatch",
        "ReceiveMessage"
      ])
      network.faults.add(
        { actions: [action], times: yield* Random.nextIntBetween(1, 4) },
        yield* Random.choice(effects)
      )
      const kind = yield* Random.nextIntBetween(0, 10)
      if (kind === 0) network.restart(5 * second)
      if (kind <= 2) network.cut(`p${yield* Random.nextIntBetween(1, 3)}`)
    }
  })

const seeds = Array.from({ length: 5 }, (_, seed) => seed)

test.each(seeds)("no message of a standard queue is lost, and each ends: seed %i", async (seed) => {
  let draws = seed
  const chance = (): number => {
    draws = (draws * 1_103_515_245 + 12_345) % 2 ** 31
    return draws / 2 ** 31
  }
  let isCalm = false
  const rates = { few: 0.3, disorder: 0.5, repeat: 0.05, echo: 0.05 }
  await on({ happens: (what) => !isCalm && chance() < rates[what], requestTimeout: 2 * second }, (world) =>
    Effect.gen(function* () {
      const { broker, consume, idsIn, send, untilEmpty } = world
      const runs: Array<Run> = []
      const acked = new Set<string>()
      const retry = RetryPolicy.make({ maxRetries: 3, maxDeliveries: 100 })
      const one = yield* broker()
      yield* send(one, queue, names)
      yield* Effect.forkScoped(Random.withSeed(breaking(world), `chaos ${seed}`))
      for (const process of [one, yield* broker(), yield* broker()]) {
        yield* consume(process, queue, runs, { retry, concurrency: 5, retryDelay: 3 * second }, (message) =>
          Effect.gen(function* () {
            yield* Effect.sleep(500)
            if (message.attempts <= failures(message.id)) return yield* Effect.fail(new Error("no"))
            acked.add(message.id)
          })
        )
      }
      yield* Effect.sleep(2 * minute)
      isCalm = true
      yield* until("an end for each", () => {
        const dead = idsIn(`${queue}.dlq`)
        return names.every((id) => acked.has(id) || dead.includes(id))
      })
      yield* untilEmpty(queue)
      // The others are dead letters because of deliveries that reached no handler, which SQS counts.
      const unhandled = names.filter((id) => !runs.some((run) => run.id === id))
      assert.deepStrictEqual(unhandled, [])
    })
  )
})

test.each(seeds)("messages of a FIFO group are done in their order, and none is lost: seed %i", (seed) =>
  on({ requestTimeout: 2 * second }, (world) =>
    Effect.gen(function* () {
      const { broker, consume, send, untilEmpty } = world
      const done: Array<string> = []
      const retry = RetryPolicy.make({ maxRetries: 20, maxDeliveries: 100 })
      const one = yield* broker()
      const sent = names.map((id, index) => ({ id: `${id}.${"abcd"[index % 4]}`, group: "abcd"[index % 4]! }))
      for (const { group, id } of sent)
        yield* send(one, `${queue}.fifo`, [id], { headers: { "message-group-id": group } })
      yield* Effect.forkScoped(Random.withSeed(breaking(world), `chaos ${seed}`))
      for (const process of [one, yield* broker(), yield* broker()]) {
        const options = { retry, concurrency: 5, retryDelay: 3 * second }
        yield* consume(process, `${queue}.fifo`, [], options, (message) =>
          Effect.gen(function* () {
            yield* Effect.sleep(500)
            if (message.attempts <= failures(message.id.split(".")[0]!) - 1) return yield* Effect.fail(new Error("no"))
            if (!done.includes(message.id)) done.push(message.id)
          })
        )
      }
      yield* Effect.sleep(minute)
      yield* until("all", () => done.length === sent.length)
      yield* untilEmpty(`${queue}.fifo`)
      const ofGroup = (all: ReadonlyArray<string>, group: string) => all.filter((id) => id.endsWith(group))
      for (const group of "abcd") {
        const expected = ofGroup(
          sent.map(({ id }) => id),
          group
        )
        assert.deepStrictEqual(ofGroup(done, group), expected)
      }
    })
  )
)
