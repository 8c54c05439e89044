/** Exports: letters as a file, exactly as they are where nothing is hidden, while they stay in their queue. */
import { assert, describe, it } from "@effect/vitest"
import { Broker } from "@requeue/core"
import { DeadLetters, LetterLine } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { gzipSync } from "node:zlib"
import { Authorization } from "../src/index.ts"
import * as Downloading from "./downloading.ts"
import * as Waiting from "./waiting.ts"
import * as World from "./world.ts"

/** A turn of Node's loop, in which streams go on. */
const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

setFlagsFromString("--expose-gc")
const collect: () => void = runInNewContext("gc")

/** Bytes of all that something still refers to. */
const kept = (): number => {
  collect()
  // V8 frees the buffers of one collection in the background, and has done so when the next one begins.
  collect()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

const made = (options: Parameters<typeof World.make>[0] = {}) =>
  Effect.gen(function* () {
    const world = yield* World.make({ authorize: Authorization.everybody("root", "purge"), ...options })
    const token = Downloading.tokenOf(yield* world.get(Waiting.page))
    const ask = (fields: Readonly<Record<string, string>> = {}) => Downloading.ask(world.console, { token, ...fields })
    const left = Effect.map(world.broker.admin.counts("orders.dlq"), ({ ready }) => ready)
    const job = Effect.map(world.get("/jobs"), (jobs) => World.linkTo(jobs, "/job"))
    return { ...world, ask, left, job: Effect.flatMap(job, (path) => world.get(path)) }
  })

const letters = (broker: Broker.Service) =>
  Effect.provideService(
    Effect.flatMap(DeadLetters.make("orders.dlq"), ({ list }) => list({ limit: 1000 })),
    Broker.Broker,
    broker
  )

describe("an export", () => {
  it.effect("has each letter as it is, in the form of the command line, and leaves it where it is", () =>
    Effect.gen(function* () {
      const { ask, audit, broker, job, left, publish } = yield* made()
      const bodies = [
        `{ "id": 12345678901234567890, "price": 1.10,\n "of": [] }`,
        "plain \u202e text",
        "\ufeff{}",
        gzipSync(`{"sku":"tea"}`),
        ""
      ]
      yield* publish(
        ...bodies.map((body, n) => ({
          id: `order-${n}`,
          body,
          headers: { tenant: "acme", ...(typeof body === "string" ? {} : { "content-encoding": "gzip" }) }
        }))
      )
      const response = yield* ask()
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers.get("content-type"), "application/x-ndjson; charset=utf-8")
      assert.match(
        response.headers.get("content-disposition")!,
        /^attachment; filename="orders\.dlq-1970-01-01T00-00-00\.jsonl"$/
      )
      const file = yield* Downloading.read(response)
      assert.isTrue(file.isWhole)
      const all = yield* letters(broker)
      assert.deepStrictEqual(
        Downloading.linesOf(file),
        all.map((letter) => LetterLine.format("orders.dlq", letter))
      )
      for (const [n, line] of Downloading.linesOf(file).entries()) {
        const read = LetterLine.parse(line)
        assert.deepInclude(read, { queue: "orders.dlq", metadata: all[n]!.metadata })
      }
      assert.strictEqual(yield* left, 5)
      const numbers = { queue: "orders.dlq", written: 5, redacted: 0, browsed: 5, total: 5 }
      assert.deepStrictEqual(
        audit.map(({ command, event, options, outcome, queues }) => [command, event, options, outcome, queues]),
        [
          ["console export", "begin", { letters: "all letters" }, undefined, ["orders.dlq"]],
          ["console export", "end", { letters: "all letters" }, "done", [numbers]]
        ]
      )
      assert.match((yield* job).text, /exported<\/dt><dd><span class="strong">5</)
    })
  )

  it.effect("marks a letter with hidden parts, which no import takes", () =>
    Effect.gen(function* () {
      const { ask, audit, publish } = yield* made()
      const large = JSON.stringify({ note: "x".repeat(300_000), password: "hunter2" })
      yield* publish(
        { id: "order-1", body: `{"sku":"tea","password":"hunter2"}` },
        { id: "order-2", headers: { cookie: "hunter2" } },
        { id: "order-3", error: "no login with password=hunter2" },
        { id: "order-4", body: `{"a":{"password":"hunter2"},"a":1}` },
        { id: "order-5", body: gzipSync(`{"password":"hunter2"}`), headers: { "content-encoding": "gzip" } },
        { id: "order-6", body: large },
        { id: "order-7", body: Uint8Array.from([0xff, ...Buffer.from("hunter2")]) },
        { id: "order-8" }
      )
      const file = yield* Downloading.read(yield* ask())
      assert.notInclude(file.text, "hunter2")
      const lines = Downloading.linesOf(file).map((line) => [JSON.parse(line), LetterLine.parse(line)])
      assert.deepStrictEqual(
        lines.map(([{ id, redacted }, parsed]) => [id, redacted, "detail" in parsed]),
        Array.from({ length: 8 }, (_, n) => [`order-${n + 1}`, n < 7 ? true : undefined, n < 7])
      )
      assert.deepStrictEqual(JSON.parse(lines[0]![0].body), { sku: "tea", password: "•••• redacted" })
      assert.include(JSON.stringify(audit.at(-1)), `"written":8,"redacted":7`)
    })
  )

  it.effect("of a cause has its letters alone", () =>
    Effect.gen(function* () {
      const { ask, get, publish, settled } = yield* made()
      yield* publish({ id: "order-1" }, { id: "order-2", error: "no sku" }, { id: "order-3" })
      const causes = yield* settled(World.deadLetters)
      const cause = new URLSearchParams(World.linkTo(causes, "/group").split("?")[1]).get("cause")!
      assert.match((yield* get(World.linkTo(causes, "/group"))).text, /Export the 2 letters of this cause/)
      const file = yield* Downloading.read(yield* ask({ cause }))
      assert.deepStrictEqual(
        Downloading.linesOf(file).map((line) => JSON.parse(line).id),
        ["order-1", "order-3"]
      )
    })
  )

  it.effect("that is aborted leaves all letters where they are, and its audit says so", () =>
    Effect.gen(function* () {
      const { ask, audit, broker, job, left, publish } = yield* made()
      yield* publish(...Array.from({ length: 200 }, (_, n) => ({ id: `order-${n}`, body: "x".repeat(2000) })))
      const { body } = yield* ask()
      yield* Effect.promise(async () => {
        const reader = body!.getReader()
        await reader.read()
        await reader.cancel()
      })
      for (let turns = 0; turns < 50; turns++) yield* turn
      assert.deepInclude(audit.at(-1), { event: "end", outcome: "reader" })
      assert.match((yield* job).text, /The browser stopped reading\. All letters are still in the queue/)
      assert.strictEqual(yield* left, 200)
      assert.lengthOf(yield* letters(broker), 200)
    })
  )

  it.effect("is read no faster than somebody takes it, and ends where nobody does", () =>
    Effect.gen(function* () {
      const { ask, audit, get, job, publish } = yield* made()
      yield* publish(...Array.from({ length: 300 }, (_, n) => ({ id: `order-${n}`, body: "x".repeat(2000) })))
      const response = yield* ask()
      for (let turns = 0; turns < 50; turns++) yield* turn
      assert.include((yield* job).text, "running")
      assert.notMatch((yield* job).text, /exported<\/dt><dd><span class="strong">/)
      assert.strictEqual((yield* ask()).status, 409)
      yield* TestClock.adjust("1 minute")
      for (let turns = 0; turns < 50; turns++) yield* turn
      assert.deepInclude(audit.at(-1), { event: "end", outcome: "reader" })
      assert.isFalse((yield* Downloading.read(response)).isWhole)
      assert.strictEqual((yield* get("/jobs")).status, 200)
    })
  )

  it.effect("is stopped by its button, and its file is not whole", () =>
    Effect.gen(function* () {
      const { ask, audit, job, publish, submit } = yield* made()
      yield* publish(...Array.from({ length: 300 }, (_, n) => ({ id: `order-${n}`, body: "x".repeat(2000) })))
      const response = yield* ask()
      yield* submit(yield* job, "/stop")
      assert.isFalse((yield* Downloading.read(response)).isWhole)
      for (let turns = 0; turns < 50; turns++) yield* turn
      assert.deepInclude(audit.at(-1), { command: "console export", event: "end", outcome: "abort" })
    })
  )

  it.live(
    "of many letters keeps none of those that were taken",
    () =>
      Effect.gen(function* () {
        const { ask, broker } = yield* made()
        const count = 15_000
        for (let n = 0; n < count; n += 1000) {
          const some = Array.from({ length: 1000 }, (_, m) => ({ id: `order-${n + m}`, body: "x".repeat(1000) }))
          yield* broker.publish(some.map((letter) => World.outgoing(letter, 0)))
        }
        const before = kept()
        const response = yield* ask()
        const found = yield* Effect.promise(async () => {
          let [lines, most, parts] = [0, 0, 0]
          for await (const part of response.body!) {
            lines += Buffer.from(part).toString("latin1").split("\n").length - 1
            if (++parts % 100 === 0) most = Math.max(most, kept() - before)
          }
          return { lines, most }
        })
        assert.strictEqual(found.lines, count)
        // A page of a look, and what is on its way.
        assert.isBelow(found.most, 10 * 2 ** 20)
      }),
    120_000
  )
})
