/** The way of an operator on real brokers: from letters that a consumer has given up to all of them handled. */
import { Configuration } from "@requeue/config"
import { type BrokerName, start } from "@requeue/brokers"
import { connect } from "@requeue/core/promise"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "@effect/vitest"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { BrokerSource, Console } from "../../src/index.ts"
import * as World from "../world.ts"

/** A queue of its own, where the server is used by others as well. */
const queue = `console-${Math.random().toString(36).slice(2, 10)}`

const opened = (name: BrokerName) =>
  Effect.acquireRelease(
    Effect.promise(() => start(name)),
    (broker) => Effect.promise(() => broker.dispose())
  )

/** Sends messages that a consumer gives up; the consumer that it answers takes them. */
const givenUp = async (url: string, count: number) => {
  const requeue = await connect(url, { logLevel: "None" })
  const dead = Promise.withResolvers<void>()
  let left = count
  const onEvent = ({ _tag }: { readonly _tag: string }) => {
    if (_tag === "DeadLettered" && --left === 0) dead.resolve()
  }
  const failing = await requeue.consume(queue, { retry: { maxRetries: 0 }, onEvent }, () => {
    throw new Error("HTTP 503 from the shop")
  })
  await requeue.sendBatch(
    queue,
    Array.from({ length: count }, (_, n) => ({ body: { order: n } }))
  )
  await dead.promise
  await failing.drain()
  const handled: Array<unknown> = []
  const take = () => requeue.consume(queue, { retry: { maxRetries: 0 } }, ({ body }) => void handled.push(body))
  return { requeue, handled, take }
}

const configured = (name: string, url: string) =>
  Effect.gen(function* () {
    const folder = mkdtempSync(join(tmpdir(), "requeue-console-"))
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
    const document = { brokers: { [name]: url }, queues: { [queue]: { retry: { maxRetries: 0 } } } }
    writeFileSync(join(folder, "requeue.config.json"), JSON.stringify(document))
    return yield* Configuration.load({ cwd: folder, environment: {} })
  })

/** Loads a page again until it is so. */
const until = (
  load: Effect.Effect<World.Arrived>,
  isSo: (page: World.Arrived) => boolean
): Effect.Effect<World.Arrived> =>
  Effect.gen(function* () {
    for (let loads = 0; loads < 600; loads++) {
      const page = yield* load
      if (isSo(page)) return page
      yield* Effect.sleep(100)
    }
    return yield* Effect.die(new Error("it did not come to that"))
  })

const isEnded = ({ text }: World.Arrived): boolean => !text.includes("data-live")

describe.concurrent("a console", () => {
  for (const name of ["rabbitmq", "nsq", "sqs"] as const) {
    it.live(`redrives what was given up on ${name}, and shows no password`, () =>
      Effect.gen(function* () {
        const broker = yield* opened(name)
        const { handled, take } = yield* Effect.acquireRelease(
          Effect.promise(() => givenUp(broker.url, 5)),
          ({ requeue }) => Effect.promise(() => requeue.close())
        )
        const brokers = yield* BrokerSource.ofConfiguration(yield* configured(name, broker.url))
        const audit: Array<string> = []
        const made = yield* Console.make({ brokers, audit: (line) => void audit.push(line), timeout: 20_000 })
        const { get: load, submit } = World.browser(made)
        // The first page comes after 0.2 s with what is known by then.
        const overview = yield* until(load("/"), ({ text }) => text.includes("/dead-letters?"))
        const path = World.linkTo(overview, "/dead-letters")
        const first = yield* until(load(path), isEnded)
        if (first.text.includes("Nobody has looked yet")) yield* submit(first, "/look", { limit: "100" })
        const causes = yield* until(load(path), isEnded)
        assert.match(causes.text, /Error: HTTP 503 from the shop/)
        const cause = yield* load(World.linkTo(causes, "/group"))
        const letter = yield* load(World.linkTo(cause, "/letter"))
        const shown = yield* submit(letter, "/letter")
        assert.match(World.decoded(shown.text), /"order": \d/)
        const plan = yield* submit(cause, "/plan")
        const counted = yield* until(load(plan.headers.get("location")!), isEnded)
        assert.include(counted.text, "Redrive 5 letters<")
        yield* Effect.promise(take)
        const begun = yield* submit(counted, "/redrive", { how: "at-once" })
        const done = yield* until(load(begun.headers.get("location")!), isEnded)
        assert.match(done.text, /published<\/dt><dd><span class="strong">5</)
        yield* until(load("/"), () => handled.length === 5)
        const password = new URL(broker.url).password
        if (password === "") return
        for (const { text } of [overview, causes, cause, letter, counted, done]) assert.notInclude(text, password)
        assert.notInclude(audit.join(""), password)
      })
    )
  }
})
