/** What a send waits for, and how transactions are shared. */
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import * as Disk from "./disk.ts"
import * as VirtualDriver from "./driver.ts"
import { counts, newPath, openAt, probe, run, send } from "./program.ts"

/** A driver whose disk answers when the test says so. */
const slowDisk = () => {
  const driver = VirtualDriver.make()
  const flushes: Array<(error?: Error) => void> = []
  driver.flush = () =>
    new Promise((resolve, reject) => void flushes.push((error) => (error === undefined ? resolve() : reject(error))))
  return { driver, flushes }
}

const turns = Effect.sleep(1)

describe("durability: full", () => {
  it("confirms a send when the disk has it, and gathers sends while the disk is busy", () =>
    run(
      Effect.gen(function* () {
        const { driver, flushes } = slowDisk()
        const { broker } = yield* openAt(yield* newPath, driver)
        const first = yield* Effect.forkChild(send(broker, ["a"]))
        yield* turns
        const others = yield* Effect.forEach(["b", "c"], (id) => Effect.forkChild(send(broker, [id])))
        yield* turns
        assert.strictEqual(flushes.length, 1)
        assert.isUndefined(first.pollUnsafe())
        flushes[0]!()
        yield* turns
        assert.isDefined(first.pollUnsafe())
        assert.deepStrictEqual([flushes.length, others.map((each) => each.pollUnsafe())], [2, [undefined, undefined]])
        flushes[1]!()
        yield* turns
        assert.isTrue(others.every((each) => each.pollUnsafe() !== undefined))
      })
    ))

  it("claims and settlements do not wait for the disk", () =>
    run(
      Effect.gen(function* () {
        const { driver, flushes } = slowDisk()
        const { broker } = yield* openAt(yield* newPath, driver)
        yield* Effect.forkChild(send(broker, ["a"]))
        const { inbox, settleAll } = yield* probe(broker, 1)
        yield* turns
        // The other process may already have it: it exists, though its sender does not know yet.
        flushes[0]!()
        yield* turns
        assert.strictEqual(inbox.length, 1)
        assert.deepStrictEqual(yield* settleAll(Settlement.Retry(5)), [])
        assert.strictEqual(flushes.length, 1)
      })
    ))

  it("a disk that fails, or does not answer in time, leaves the outcome unknown", () =>
    run(
      Effect.gen(function* () {
        const { driver, flushes } = slowDisk()
        const { broker } = yield* openAt(yield* newPath, driver, "?timeout=1s")
        const failed = yield* Effect.forkChild(Effect.flip(send(broker, ["a"])))
        yield* turns
        flushes[0]!(new Error("EIO: i/o error, fdatasync"))
        yield* turns
        assert.match(String(failed.pollUnsafe()), /ConnectionLost/)
        const late = yield* Effect.flip(send(broker, ["b"]))
        assert.strictEqual(late.reason, "Timeout")
        flushes[1]!()
        driver.flush = undefined
        yield* send(broker, ["c"])
        assert.deepStrictEqual(yield* counts(broker), [3, 0, 0])
      })
    ))

  it.each(["normal", "off"])("%s does not wait for the disk", (durability) =>
    run(
      Effect.gen(function* () {
        const { driver, flushes } = slowDisk()
        const { broker, store } = yield* openAt(yield* newPath, driver, `?durability=${durability}`)
        yield* send(broker, ["a"])
        const mode = yield* store.read({ operation: "test" }, ({ db }) => db.prepare("PRAGMA synchronous").get())
        assert.deepStrictEqual([flushes.length, mode?.["synchronous"]], [0, durability === "off" ? 0 : 1])
      })
    )
  )
})

describe("after a power cut", () => {
  /** What is left of a message that was sent, and one that was sent later. */
  const left = (durability: string, pause: number) =>
    Effect.gen(function* () {
      const disk = Disk.make()
      const path = yield* newPath
      const { broker } = yield* openAt(path, VirtualDriver.make(disk), `?durability=${durability}`)
      yield* send(broker, ["a"])
      yield* Effect.sleep(pause)
      yield* send(broker, ["b"])
      disk.powerCut()
      const { broker: next } = yield* openAt(path, VirtualDriver.make(disk), `?durability=${durability}`)
      const { inbox } = yield* probe(next, 2)
      yield* turns
      return inbox.map(({ metadata }) => metadata.id)
    })

  it.each<readonly [string, number, ReadonlyArray<string>]>([
    ["full", 0, ["a", "b"]],
    ["normal", 1001, ["a"]],
    ["normal", 900, []],
    ["off", 60_000, []]
  ])("%s keeps of two sends, %i ms apart, %j", (durability, pause, ids) =>
    run(Effect.map(left(durability, pause), (found) => assert.deepStrictEqual(found, ids)))
  )
})

describe("transactions", () => {
  it("all sends of a turn share one", () =>
    run(
      Effect.gen(function* () {
        const driver = VirtualDriver.make()
        const { broker } = yield* openAt(yield* newPath, driver)
        let commits = 0
        driver.faults = { statement: () => {}, commit: () => void commits++ }
        yield* Effect.forEach(["a", "b", "c"], (id) => send(broker, [id]), { concurrency: 3 })
        assert.strictEqual(commits, 1)
      })
    ))

  it("a broker that is closed has stored what was sent before, and refuses what comes after", () =>
    run(
      Effect.gen(function* () {
        const path = yield* newPath
        const closed = yield* Effect.scoped(
          Effect.gen(function* () {
            const { broker } = yield* openAt(path, VirtualDriver.make())
            yield* send(broker, ["a"])
            return broker
          })
        )
        const error = yield* Effect.flip(send(closed, ["b"]))
        assert.strictEqual(error.reason, "ConnectionFailed")
        assert.strictEqual(closed.connection().state, "down")
        const { broker } = yield* openAt(path, VirtualDriver.make())
        assert.deepStrictEqual(yield* counts(broker), [1, 0, 0])
      })
    ))

  it("the file shrinks when most of it is unused", () =>
    run(
      Effect.gen(function* () {
        const { broker, store } = yield* openAt(yield* newPath, VirtualDriver.make())
        const pages = store.read({ operation: "test" }, ({ db }) =>
          Number(db.prepare("PRAGMA page_count").get()?.["page_count"])
        )
        yield* send(broker, ["a", "b", "c", "d", "e"], new Uint8Array(2 ** 20))
        yield* broker.admin.purge("q")
        const before = yield* pages
        yield* Effect.sleep(20_000)
        assert.isAtLeast(before, 1280)
        // At most 4 MiB, which the next messages need.
        assert.isAtMost(yield* pages, 1100)
      })
    ))
})
