/** `requeue relay`: what it prints, how it ends, and what it refuses. */
import { MemoryBroker } from "@requeue/adapter-memory"
import { Broker, BrokerError, Store } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { TestClock } from "effect/testing"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, onTestFinished } from "vitest"
import { run } from "../src/commands/relay.ts"
import { Output, type Service } from "../src/Output.ts"
import { requeue } from "./requeue.ts"
import { until } from "./until.ts"

/** A folder with a broker, a store with messages in its outbox, and a config file. */
const project = async (...headers: ReadonlyArray<string>) => {
  const cwd = await mkdtemp(join(tmpdir(), "requeue-cli-"))
  onTestFinished(() => rm(cwd, { recursive: true }))
  const [live, db] = [`sqlite:${join(cwd, "live.db")}`, `sqlite:${join(cwd, "db.db")}`]
  await writeFile(
    join(cwd, "requeue.config.yaml"),
    `broker: live\nbrokers: { live: { url: "${live}", store: db }, db: "${db}" }\nqueues: { jobs: {} }\n`
  )
  const on = (...args: ReadonlyArray<string>) => requeue(args, { cwd })
  const send = (...args: ReadonlyArray<string>) => on("send", "--broker", "db", "-q", "requeue.outbox", ...args)
  for (const header of headers) await send("-H", header, "{}")
  const ready = async (broker: string, queue: string) => {
    const { stdout } = await on("status", "--broker", broker, "-q", queue, "--json")
    return (JSON.parse(stdout) as { queues: ReadonlyArray<{ ready: number }> }).queues[0]?.ready
  }
  return { cwd, live, db, on, send, ready }
}

const toJobs = 'requeue-outbox={"queue":"jobs"}'

const linesOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => {
      const { at: _, ...rest } = JSON.parse(line) as { readonly at: string }
      return rest
    })

describe("requeue relay --until-empty", () => {
  it("publishes what is due, and prints the sum", async () => {
    const { on, ready, send } = await project(toJobs, toJobs)
    await send("-H", toJobs, "--delay", "1h", "{}")
    const { code, stderr, stdout } = await on("relay", "--until-empty", "--batch", "1", "--concurrency", "2")
    assert.deepStrictEqual([code, stderr], [0, "requeue: note: 1 delayed messages stay in the outbox\n"])
    const [first, last, ...others] = stdout.trimEnd().split("\n")
    assert.match(first!, /^\S+Z {2}relaying from requeue\.outbox of db to live$/)
    assert.match(last!, /^\S+Z {2}in all: published 2, dead-lettered 0$/)
    assert.deepStrictEqual([others, await ready("live", "jobs"), await ready("db", "requeue.outbox")], [[], 2, 0])
  })

  it("ends with exit code 1 after a dead letter, without a config file", async () => {
    const { db, live, on, ready } = await project(toJobs, "a=b")
    const { code, stdout } = await on("relay", "--until-empty", "--url", live, "--store", db, "--json")
    assert.strictEqual(code, 1)
    assert.deepStrictEqual(linesOf(stdout), [
      { broker: "sqlite", store: "sqlite", queue: "requeue.outbox" },
      { sum: { published: 1, deadLettered: 1 } }
    ])
    assert.strictEqual(await ready("live", "jobs"), 1)
  })
})

it("requeue relay publishes the outbox of a namespace", async () => {
  const { db, live, on } = await project()
  const sent = await on("send", "--url", db, "-q", "requeue.outbox-eu", "-H", toJobs, "{}")
  assert.strictEqual(sent.code, 0, sent.stderr)
  const target = ["--url", live, "--store", db, "--store-namespace", "eu"]
  const { stdout } = await on("relay", "--until-empty", ...target, "--json")
  assert.deepStrictEqual(linesOf(stdout), [
    { broker: "sqlite", store: "sqlite", queue: "requeue.outbox-eu" },
    { sum: { published: 1, deadLettered: 0 } }
  ])
})

describe("requeue relay", () => {
  it("drains when it is interrupted, and ends with exit code 0", async () => {
    const { cwd, ready } = await project(toJobs)
    const interruption = () => until("the message is published", async () => (await ready("live", "jobs")) === 1)
    const { code, stdout } = await requeue(["relay", "--json"], { cwd, interruption })
    assert.strictEqual(code, 0)
    assert.deepStrictEqual(linesOf(stdout).at(-1), { sum: { published: 1, deadLettered: 0 } })
  })

  it.each<readonly [ReadonlyArray<string>, RegExp]>([
    [["--url", "memory:"], /^requeue: --url requires --store\. Give --store/],
    [["--store", "memory:"], /^requeue: --store requires --url\. Give --url, or write the store into the config file/],
    [["--store-namespace", "eu"], /^requeue: --store-namespace requires --url\. Give --url/],
    [["--url", "memory:", "--store", "memory:", "--store-namespace", "e u"], /must be 1 to 64 letters/],
    [["--broker", "db"], /gives the broker db no store, so it has no outbox\. Give --broker with one that has a store/],
    [["--broker", "bd"], /there is no broker named bd/],
    [["--url", "memory:", "--store", "sqs://eu-west-1"], /store: the broker sqs has no inbox\. Use a database/],
    [["--queue", "jobs"], /Unrecognized flag: --queue/],
    [["--batch", "101"], /from 1 to 100, got 101/]
  ])("%j is refused", async (flags, message) => {
    const { on } = await project()
    const { code, stderr, stdout } = await on("relay", ...flags)
    assert.deepStrictEqual([code, stdout], [2, ""])
    assert.match(stderr, message)
  })
})

describe("requeue status", () => {
  it("shows the outbox, with the age of its oldest message", async () => {
    const { on, send } = await project()
    await on("relay", "--until-empty")
    await send("-H", toJobs, "{}")
    const { code, stdout } = await on("status", "--broker", "db", "--json")
    const { queues } = JSON.parse(stdout) as { queues: ReadonlyArray<{ queue: string; ready: number; oldest: number }> }
    assert.strictEqual(code, 0)
    assert.deepStrictEqual(
      queues.map(({ oldest, queue, ready }) => [queue, ready, typeof oldest]),
      [["requeue.outbox", 1, "number"]]
    )
  })
})

it("prints every ten seconds what has moved, if anything has, and goes on after an outage of the store", async () => {
  const printed: Array<string> = []
  const output: Pick<Service, "line" | "note"> = {
    line: (_, text) => Effect.sync(() => void printed.push(text().replace(/^.*Z {2}/, ""))),
    note: () => Effect.void
  }
  await Effect.gen(function* () {
    const { broker, control } = yield* MemoryBroker.makeControlled()
    let isAway = true
    const away = new BrokerError.BrokerError({
      broker: "memory",
      operation: "counts",
      reason: "ConnectionFailed",
      detail: "it is away"
    })
    const admin: Broker.Admin = {
      ...broker.admin,
      counts: (queue) => (isAway ? Effect.fail(away) : broker.admin.counts(queue))
    }
    const store = Layer.succeed(Broker.Broker, { ...broker, admin })
    const joined = Context.get(yield* Layer.build(Store.layer(MemoryBroker.layer(), store)), Broker.Broker)
    const put = (header: object) => control.publishRaw("requeue.outbox", new Uint8Array(1), { ...header })
    const names = { broker: "live", store: "db" }
    const relaying = yield* run({ batch: 100, concurrency: 1, names, untilEmpty: true }).pipe(
      Effect.provideService(Broker.Broker, joined),
      Effect.provideService(Output, output as Service), // The other members are not used.
      Effect.exit,
      Effect.forkChild
    )
    yield* TestClock.adjust(15_000)
    yield* put({ "requeue-outbox": '{"queue":"jobs"}' })
    yield* TestClock.adjust(10_000)
    yield* put({})
    yield* TestClock.adjust(30_000)
    isAway = false
    yield* TestClock.adjust(1000)
    yield* Fiber.join(relaying)
  }).pipe(
    Effect.scoped,
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.provide(TestClock.layer()),
    Effect.runPromise
  )
  assert.deepStrictEqual(printed, [
    "relaying from requeue.outbox of db to live",
    "published 1, dead-lettered 0",
    "published 0, dead-lettered 1",
    "in all: published 1, dead-lettered 1"
  ])
})
