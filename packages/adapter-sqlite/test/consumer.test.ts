/** Credit, leases and wake-ups, which cases see only through the core. */
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import * as VirtualDriver from "./driver.ts"
import { counts, newPath, openAt, outgoing, probe, run, send } from "./program.ts"

const soon = Effect.sleep(1)

/** Two brokers on one file, as two processes have them. */
const two = Effect.gen(function* () {
  const [driver, path] = [VirtualDriver.make(), yield* newPath]
  const one = yield* openAt(path, driver, "?lease=2s")
  const other = yield* openAt(path, driver, "?lease=2s")
  return [one.broker, other.broker] as const
})

describe("a consumer", () => {
  it("gets as many messages as its credit, and one more for each that it settles", () =>
    run(
      Effect.gen(function* () {
        const [broker] = yield* two
        yield* send(broker, ["a", "b", "c", "d"])
        const { inbox, settleAll } = yield* probe(broker, 2)
        yield* soon
        assert.strictEqual(inbox.length, 2)
        yield* settleAll(Settlement.Ack, inbox.slice(0, 1))
        yield* soon
        assert.deepStrictEqual(
          inbox.map(({ metadata }) => metadata.id),
          ["a", "b", "c"]
        )
        assert.deepStrictEqual(yield* counts(broker), [1, 2, 0])
      })
    ))

  it("keeps its credit when another job of the same transaction fails", () =>
    run(
      Effect.gen(function* () {
        const [broker] = yield* two
        yield* send(broker, ["a", "b"])
        const { credit, inbox, settleAll } = yield* probe(broker, 0)
        yield* soon
        // One transaction leases the message, is rolled back by the send, and runs again.
        credit(1)
        const missing = { ...outgoing("missing", "c"), create: false }
        const refused = yield* Effect.flip(broker.publish([missing]))
        assert.strictEqual(refused.reason, "QueueMissing")
        yield* soon
        yield* settleAll(Settlement.Ack)
        yield* soon
        assert.deepStrictEqual(
          inbox.map(({ metadata }) => metadata.id),
          ["b"]
        )
      })
    ))

  it("keeps its credit when the commit of its leases fails", () =>
    run(
      Effect.gen(function* () {
        const driver = VirtualDriver.make()
        const { broker } = yield* openAt(yield* newPath, driver)
        yield* send(broker, ["a", "b"])
        const { credit, inbox, settleAll } = yield* probe(broker, 0)
        yield* soon
        let commits = 0
        driver.faults = {
          statement: () => {},
          commit: () => {
            if (commits++ === 0) throw VirtualDriver.sqliteError(10, "disk I/O error")
          }
        }
        credit(1)
        yield* Effect.sleep(2000)
        yield* settleAll(Settlement.Ack)
        yield* soon
        assert.deepStrictEqual(
          inbox.map(({ metadata }) => metadata.id),
          ["b"]
        )
      })
    ))

  it("leases the next message if one is settled while its leases are extended", () =>
    run(
      Effect.gen(function* () {
        const [broker] = yield* two
        yield* send(broker, ["a", "b"])
        const { extend, inbox, settleAll } = yield* probe(broker, 1)
        yield* soon
        yield* Effect.all([extend([...inbox]), settleAll(Settlement.Ack)], { concurrency: "unbounded" })
        yield* soon
        assert.deepStrictEqual(
          inbox.map(({ metadata }) => metadata.id),
          ["b"]
        )
      })
    ))

  it("gets at once what another consumer of its process sends to its queue by a settlement", () =>
    run(
      Effect.gen(function* () {
        const [broker] = yield* two
        const { inbox: letters } = yield* probe(broker, 1, "q.dlq")
        yield* send(broker, ["a"])
        const { settleAll } = yield* probe(broker, 1)
        yield* soon
        yield* settleAll(Settlement.DeadLetter("permanent", "q.dlq", { name: "Error", message: "no" }))
        yield* soon
        assert.strictEqual(letters.length, 1)
      })
    ))

  it("names a returned message as before, and a retried one as another copy", () =>
    run(
      Effect.gen(function* () {
        const [broker] = yield* two
        yield* send(broker, ["a"])
        const { identify, inbox, settleAll } = yield* probe(broker, 1)
        const names: Array<string | undefined> = []
        for (const settlement of [Settlement.Release(), Settlement.Retry(0), Settlement.Ack]) {
          yield* soon
          names.push(identify(inbox[0]!))
          yield* settleAll(settlement)
        }
        assert.strictEqual(names[0], names[1])
        assert.notStrictEqual(names[1], names[2])
      })
    ))

  it("notices what another process sends", () =>
    run(
      Effect.gen(function* () {
        const [broker, other] = yield* two
        const { inbox } = yield* probe(broker, 1)
        yield* soon
        yield* send(other, ["a"])
        yield* soon
        assert.strictEqual(inbox.length, 1)
      })
    ))

  it("gets a message of another process when the lease ends, and not before", () =>
    run(
      Effect.gen(function* () {
        const [broker, other] = yield* two
        yield* send(broker, ["a"])
        const holder = yield* probe(broker, 1)
        yield* soon
        holder.credit(0)
        const heir = yield* probe(other, 1)
        // Its claims end the leases that are over.
        for (let count = 0; count < 19; count++) {
          yield* Effect.sleep(100)
          heir.credit(1)
        }
        assert.deepStrictEqual([holder.inbox.length, heir.inbox.length], [1, 0])
        yield* Effect.sleep(110)
        assert.deepStrictEqual([heir.inbox.length, heir.inbox[0]?.attempts], [1, 2])
        assert.deepStrictEqual(yield* holder.settleAll(Settlement.Ack), ["lost LeaseLost"])
      })
    ))
})
