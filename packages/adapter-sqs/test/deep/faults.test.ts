/** Messages whose consumer's process is killed. */
import * as Effect from "effect/Effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, test } from "vitest"
import { strict } from "./strict.ts"
import {
  consume,
  drain,
  ids,
  idOf,
  on,
  outgoing,
  publishAll,
  queueName,
  until,
  untilEmpty,
  urlOf,
  type Run
} from "../real/world.ts"

const { behind, url } = await strict()

// What a lost answer hides comes again after its lease; one of a few seconds is lost on a machine that stands still.
const quick = { url, visibilityTimeout: 10_000, requestTimeout: 5000 }
describe.concurrent("a consumer's process", () => {
  test("killed in the middle of its handlers: their messages come again, and are counted", async () => {
    const queue = queueName("process")
    const runs: Array<Run> = []
    await on(quick, (broker) => publishAll(broker, queue, ids(10)))
    const child = spawn(process.execPath, [fileURLToPath(new URL("child.ts", import.meta.url)), url, queue], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let said = ""
    child.stdout.on("data", (chunk) => (said += String(chunk)))
    await Effect.runPromise(until("three runs", () => said.split("run ").length > 3))
    child.kill("SIGKILL")
    await on(quick, () =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { concurrency: 3 })
        yield* until("all ten", () => new Set(runs.map(({ id }) => id)).size === 10)
        yield* untilEmpty(behind, queue)
      })
    )
    const attempts = new Map(runs.map((run) => [run.id, run.attempts]))
    const begun = [...said.matchAll(/run (\S+)/g)].map(([, id]) => id!)
    assert.strictEqual(attempts.size, 10)
    for (const id of begun) assert.isAtLeast(attempts.get(id)!, 2)
    assert.deepStrictEqual(await drain(behind, `${queue}.dlq`), [])
  })

  test("killed by its message each time: SQS's own redrive ends that", async () => {
    const queue = queueName("poison")
    await on(quick, (broker) =>
      Effect.gen(function* () {
        yield* Effect.scoped(consume(queue, []))
        yield* broker.publish([outgoing(queue, "poison")])
      })
    )
    const QueueUrl = await urlOf(behind, queue)
    const { Attributes = {} } = await behind.getQueueAttributes({ QueueUrl, AttributeNames: ["RedrivePolicy"] })
    const { maxReceiveCount } = JSON.parse(Attributes.RedrivePolicy ?? "{}") as { maxReceiveCount: number }
    // As many consumers die, and one more poll comes.
    for (let count = 0; count <= maxReceiveCount; count++) {
      await behind.receiveMessage({ QueueUrl, VisibilityTimeout: 0 })
    }
    assert.deepStrictEqual((await drain(behind, `${queue}.dlq`)).map(idOf), ["poison"])
  })
})
