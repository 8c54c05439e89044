/** What waits, and what is exported, on real brokers. */
import { assert, describe, it } from "@effect/vitest"
import { type BrokerName, start } from "@requeue/brokers"
import { Configuration } from "@requeue/config"
import { LetterLine } from "@requeue/core"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Authorization, BrokerSource, Console } from "../../src/index.ts"
import * as Downloading from "../downloading.ts"
import * as World from "../world.ts"

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

/** Asks again until it is so. */
const until = <A>(ask: Effect.Effect<A>, isSo: (answer: A) => boolean): Effect.Effect<A> =>
  Effect.gen(function* () {
    for (let times = 0; times < 600; times++) {
      const answer = yield* ask
      if (isSo(answer)) return answer
      yield* Effect.sleep(100)
    }
    return yield* Effect.die(new Error("it did not come to that"))
  })

/** Loads a page again until it changes no more. */
const ended = (load: Effect.Effect<World.Arrived>) => until(load, ({ text }) => !text.includes("data-live"))

describe.concurrent("an export", () => {
  for (const name of ["rabbitmq", "nsq", "sqs"] as const) {
    it.live(`on ${name} has all letters, which stay where they are`, () =>
      Effect.gen(function* () {
        const { console, get: load, requeue } = yield* opened(name)
        const dead = `${queue}.dlq`
        yield* Effect.promise(async () => {
          const isDead = Promise.withResolvers<void>()
          let left = 5
          const onEvent = ({ _tag }: { readonly _tag: string }) => {
            if (_tag === "DeadLettered" && --left === 0) isDead.resolve()
          }
          const worker = await requeue.consume(queue, { retry: { maxRetries: 0 }, onEvent }, () => {
            throw new Error("HTTP 503 from the shop")
          })
          await requeue.sendBatch(
            queue,
            Array.from({ length: 5 }, (_, n) => ({ id: `letter-${n}`, body: { n } }))
          )
          await isDead.promise
          await worker.drain()
        })
        const page = yield* load(`/dead-letters?${new URLSearchParams({ broker: name, queue: dead }).toString()}`)
        yield* ended(load(`/dead-letters?${new URLSearchParams({ broker: name, queue: dead }).toString()}`))
        const fields = { broker: name, queue: dead, token: Downloading.tokenOf(page) }
        // Twice: who aborts the first has taken no letter away.
        const first = yield* Downloading.ask(console, fields)
        yield* Effect.promise(() => first.body!.cancel())
        const response = yield* until(Downloading.ask(console, fields), ({ status }) => status === 200)
        const file = yield* Downloading.read(response)
        assert.isTrue(file.isWhole)
        const ids = Downloading.linesOf(file).map((line) => {
          const letter = LetterLine.parse(line)
          return "detail" in letter ? letter.detail : letter.metadata.id
        })
        assert.deepStrictEqual(
          ids.toSorted(),
          Array.from({ length: 5 }, (_, n) => `letter-${n}`)
        )
        assert.strictEqual(yield* Effect.promise(() => requeue.deadLetters(dead).count()), 5)
      })
    )
  }
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
        const begun = yield* submit(looked, "/purge-delayed", { name: queue, cause: "all" })
        const job = yield* ended(load(begun.headers.get("location")!))
        assert.match(job.text, /removed<\/dt><dd><span class="strong">3</)
        assert.match((yield* submit(page, "/delayed")).text, /Nothing waits/)
      })
    )
  }
})
