/** What waits, and what is exported, on real brokers. */
import { assert, describe, it } from "@effect/vitest"
import { type BrokerName, start } from "@requeue/brokers"
import { Configuration } from "@requeue/config"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Authorization, BrokerSource, Console } from "../src/index.ts"
import * as World from "./world.ts"

/** A queue of its own, where the server is used by others as well. */
const queue = `console-${Math.random().toString(36).slice(2, 10)}`

const configured = (name: string, url: string) =>
  Effect.gen(function* () {
    const folder = mkdtempSync(join(tmpdir(), "requeue-console-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
    const document = { brokers: { [name]: url }, queues: { [queue]: {} } }
    writeFileSync(join(folder, "requeue.config.json"), JSON.stringify(document))
    return yield* Configuration.load({ cwd: folder, environment: {} })
  })

/** A console on a real broker, and a connection to it. */
const opened = (name: BrokerName) =>
  Effect.gen(function* () {
    const broker = yield* Effect.acquireRelease(
      Effect.promise(() => start(name)),
      (started) => Effect.promise(() => started.dispose())
    )
    const requeue = yield* Effect.acquireRelease(
      Effect.promise(() => connect(broker.url, { logLevel: "None" })),
      (connection) => Effect.promise(() => connection.close())
    )
    const brokers = yield* BrokerSource.ofConfiguration(yield* configured(name, broker.url))
    const authorize = Authorization.everybody("root", "purge")
    const made = yield* Console.make({ brokers, audit: () => {}, authorize, timeout: 20_000 })
    return { requeue, console: made, ...World.browser(made) }
  })

/** Loads a page again until it changes no more. */
const ended = (load: Effect.Effect<World.Arrived>): Effect.Effect<World.Arrived> =>
  Effect.gen(function* () {
    for (let loads = 0; loads < 600; loads++) {
      const page = yield* load
      if (!page.text.includes("data-live")) return page
      yield* Effect.sleep(100)
    }
    return yield* Effect.die(new Error("it did not come to its end"))
  })

describe.concurrent("messages in backoff", () => {
  for (const name of ["rabbitmq", "nsq", "sqs"] as const) {
    it.live(`on ${name} are shown and removed, or it says that nobody can see them`, () =>
      Effect.gen(function* () {
        const { get: load, requeue, submit } = yield* opened(name)
        const sent = ["a", "b", "c"].map((id) => ({ id, body: { id }, delay: "10 minutes" as const }))
        yield* Effect.promise(() => requeue.sendBatch(queue, sent))
        const path = `/delayed?${new URLSearchParams({ broker: name, queue }).toString()}`
        const page = yield* load(path)
        assert.strictEqual(page.status, 200)
        if (name !== "rabbitmq") {
          assert.include(page.text, `${name} shows no message before it is due`)
          return
        }
        const looked = yield* submit(page, "/delayed")
        assert.match(looked.text, /Looked at all 3 messages/)
        assert.match(looked.text, /data-label="due"><time[^>]*>in (?:10m|9m [\d.]+s)</)
        const begun = yield* submit(looked, "/purge-delayed", { name: queue })
        const job = yield* ended(load(begun.headers.get("location")!))
        assert.match(job.text, /removed<\/dt><dd><span class="strong">3</)
        assert.match((yield* submit(page, "/delayed")).text, /Nothing waits/)
      })
    )
  }
})
