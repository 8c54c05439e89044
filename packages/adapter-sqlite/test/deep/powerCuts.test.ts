/** A hundred power cuts in real time, on real files: whatever sectors the disk has written, no confirmed send is lost. */
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { assert, describe, it } from "vitest"
import { node } from "../../src/internal/client.ts"
import { migrate } from "../../src/internal/connect/schema.ts"
import * as Disk from "../disk.ts"
import * as VirtualDriver from "../driver.ts"
import { newPath, openAt, probe, send } from "../program.ts"

const cuts = 100

/** A body that soon fills the log, which SQLite then copies into the file. */
const body = new Uint8Array(4000)

/** The driver of one boot, whose syncs take the time of the real disk. */
const boot = (disk: Disk.Disk, path: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => node.log(disk.at(path))),
      ({ close }) => Effect.promise(close)
    ),
    ({ flush }) => Object.assign(VirtualDriver.make(disk), { flush, soon: node.soon })
  )

/** The ids in an undamaged file. */
const idsIn = (disk: Disk.Disk, path: string): ReadonlyArray<string> => {
  const db = VirtualDriver.make(disk).open(path)
  try {
    // The first cut may come before the tables are on the disk.
    migrate(db)
    assert.strictEqual(db.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok")
    const rows = db.prepare("SELECT metadata FROM requeue_message").all()
    return rows.map(({ metadata }): string => JSON.parse(String(metadata)).id)
  } finally {
    db.close()
  }
}

/** Cuts the power of a working machine again and again. Returns the sends that were confirmed, and those that are lost. */
const lostIn = (durability: string, rounds: number) =>
  Effect.gen(function* () {
    const disk = Disk.make()
    const path = yield* newPath
    const [confirmed, acked] = [new Set<string>(), new Set<string>()]
    const lost = new Set<string>()
    for (let round = 0; round < rounds; round++) {
      const work = Effect.gen(function* () {
        const { broker } = yield* openAt(path, yield* boot(disk, path), `?lease=2000&durability=${durability}`)
        const { inbox, settleAll } = yield* probe(broker, 20)
        const handle = Effect.suspend(() => {
          // Half of them stay in the file.
          const half = inbox.splice(0).filter((_, index) => index % 2 === 0)
          for (const { metadata } of half) acked.add(metadata.id)
          return settleAll(Settlement.Ack, half)
        })
        yield* Effect.forkScoped(Effect.forever(Effect.andThen(handle, Effect.sleep(1))))
        for (let sender = 0; sender < 20; sender++) {
          let count = 0
          const next = Effect.suspend(() => {
            const id = `${round}-${sender}-${count++}`
            return Effect.map(send(broker, [id], body), () => confirmed.add(id))
          })
          yield* Effect.forkScoped(Effect.forever(next))
        }
        yield* Effect.sleep(5 + Math.random() * 50)
        const before = new Set(confirmed)
        disk.powerCut(() => Math.random() < 0.5)
        const found = new Set(idsIn(disk, path))
        for (const id of before) if (!found.has(id) && !acked.has(id)) lost.add(id)
      })
      yield* Effect.ignore(Effect.scoped(work))
    }
    return { confirmed: confirmed.size, lost: lost.size }
  }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"), Effect.runPromise)

describe(`${cuts} power cuts`, () => {
  it("lose no confirmed send, and damage no file", { timeout: 600_000 }, async () => {
    const { confirmed, lost } = await lostIn("full", cuts)
    assert.isAbove(confirmed, cuts)
    assert.strictEqual(lost, 0)
  })

  it("lose sends that did not wait for the disk, so the cuts are real", { timeout: 600_000 }, async () => {
    const { lost } = await lostIn("normal", 5)
    assert.isAbove(lost, 0)
  })
})
