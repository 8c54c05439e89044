/** The page of a queue on real brokers: its plan as it is there, before anything is made, after, and when it was changed. */
import { type BrokerName, start } from "@requeue/brokers"
import { Configuration } from "@requeue/config"
import { Adapters } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BrokerSource, Console } from "../../src/index.ts"
import { pathOf } from "../queueWorld.ts"
import * as World from "../world.ts"

/** A queue of its own, where the server is used by others as well. */
const queue = `console-page-${Math.random().toString(36).slice(2, 10)}`

const retry = { maxRetries: 3, backoff: { type: "exponential", base: "1 second", jitter: "equal" } }

const opened = (name: BrokerName) =>
  Effect.acquireRelease(
    Effect.promise(() => start(name)),
    (broker) => Effect.promise(() => broker.dispose())
  )

const configured = (url: string) =>
  Effect.gen(function* () {
    const folder = mkdtempSync(join(tmpdir(), "requeue-console-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
    const document = {
      brokers: { it: { url, ...(url.startsWith("nsq") ? { http: true } : {}) } },
      queues: { [queue]: { retry } }
    }
    writeFileSync(join(folder, "requeue.config.json"), JSON.stringify(document))
    return yield* Configuration.load({ cwd: folder, environment: {} })
  })

describe.concurrent("the page of a queue", () => {
  for (const name of ["rabbitmq", "nsq", "sqs"] as const) {
    it.live(`tells what ${name} has of it`, () =>
      Effect.gen(function* () {
        const broker = yield* opened(name)
        const config = yield* configured(broker.url)
        const page = Effect.gen(function* () {
          // A console of its own: comparisons are kept for a while.
          const brokers = yield* BrokerSource.ofConfiguration(config)
          const made = yield* Console.make({ brokers, audit: () => {}, timeout: 20_000 })
          return (yield* World.browser(made).get(pathOf("it", queue, { outage: "1" }))).text
        })
        const before = yield* page
        assert.match(before, new RegExp(`${queue} ?<span class="alarm">missing<`))
        assert.match(before, /\d+ objects? missing\./)
        assert.include(before, 'class="diagram"')
        const [own] = Object.values(config.queues)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const operations = yield* Adapters.operationsOf(yield* config.find("it"))
            const operator = yield* operations.operate
            yield* operator.create({ queue, retry: own!.options.retry! })
          })
        )
        const requeue = yield* Effect.acquireRelease(
          Effect.promise(() => connect(broker.url, { logLevel: "None" })),
          (connection) => Effect.promise(() => connection.close())
        )
        yield* Effect.promise(() => requeue.send(queue, { order: 1 }))
        const after = yield* page
        assert.notMatch(after, /objects? missing\./)
        assert.match(after, /(\d+) of \1 objects as planned|\d+ of \d+ objects as planned, \d+ not known/)
        assert.match(after, /<dt>ready<\/dt><dd><span class="strong">1</)
        assert.match(after, /A retry comes after 1s, and each time after 2 times/)
        const { password } = new URL(broker.url)
        if (password !== "") assert.notInclude(before + after, password)
      })
    )
  }
})
