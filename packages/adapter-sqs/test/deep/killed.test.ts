/** A consumer's process that is killed in the middle of its batches, again and again: the books balance. */
import { RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, test } from "vitest"
import * as Workload from "@requeue/conformance/Workload"
import { firstOf } from "./strict.ts"
import { consume, drain, idOf, ids, left, on, queueName, until } from "../real/world.ts"

const { behind, url } = await firstOf("fauxqs")

const [count, kills] = [2000, 5]
const groups = 20
/** That of the consumers. */
const retry = RetryPolicy.make({ maxRetries: 50 })
const all = ids(count)
const groupOf = (id: string): number => Number(id.slice(1)) % groups

/** Starts a consumer in a process of its own, whose runs are written down. */
const start = (queue: string, runs: Array<string>) => {
  const child = spawn(process.execPath, [fileURLToPath(new URL("killedChild.ts", import.meta.url)), url, queue], {
    stdio: ["ignore", "pipe", "inherit"]
  })
  let rest = ""
  child.stdout.on("data", (chunk) => {
    const lines = `${rest}${String(chunk)}`.split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) runs.push(line.replace("run ", ""))
  })
  return {
    kill: async () => {
      const ended = new Promise((resolve) => child.once("close", resolve))
      child.kill("SIGKILL")
      await ended
    }
  }
}

/** Kills consumers until all is done; answers the runs in their order. */
const survived = async (queue: string): Promise<ReadonlyArray<string>> => {
  const runs: Array<string> = []
  for (let time = 0; time < kills; time++) {
    const seen = new Set(runs).size
    const consumer = start(queue, runs)
    const share = Math.floor((count * 0.9) / kills)
    await Effect.runPromise(until("some more runs", () => new Set(runs).size >= Math.min(count - 1, seen + share)))
    await consumer.kill()
  }
  const last = start(queue, runs)
  await Effect.runPromise(until(`nothing left in ${queue}`, async () => (await left(behind, queue)) === 0, 240_000))
  await last.kill()
  return runs
}

describe.concurrent(`${count} messages, and ${kills} consumers that are killed`, () => {
  test("a FIFO queue of 20 groups: none is lost, none is run before those in front of it", async () => {
    const queue = `${queueName("killed")}.fifo`
    await on({ url }, (broker) =>
      Effect.gen(function* () {
        yield* Effect.scoped(consume(queue, [], { retry }))
        for (let from = 0; from < count; from += 100) {
          const some = all.slice(from, from + 100)
          yield* broker.publish(
            some.map((id) =>
              Workload.outgoing(queue, id, { now: Date.now(), headers: { "message-group-id": String(groupOf(id)) } })
            )
          )
        }
      })
    )
    const runs = await survived(queue)
    const times = Map.groupBy(runs, (id) => id)
    assert.sameMembers([...times.keys()], [...all])
    for (const id of all) if (Number(id.slice(1)) % 7 === 0) assert.isAtLeast(times.get(id)!.length, 2, id)
    for (let group = 0; group < groups; group++) {
      const places = runs.filter((id) => groupOf(id) === group).map((id) => Number(id.slice(1)))
      // One that comes again takes those behind it along.
      for (const [index, place] of places.entries())
        assert.isAtMost(place, (places[index - 1] ?? -groups + group) + groups)
    }
    assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), [])
  })

  test("a standard queue: none is lost", async () => {
    const queue = queueName("killed")
    await on({ url }, (broker) =>
      Effect.andThen(Effect.scoped(consume(queue, [], { retry })), Workload.publishAll(broker, queue, all))
    )
    const runs = await survived(queue)
    assert.sameMembers([...new Set(runs)], [...all])
    assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), [])
  })
})
