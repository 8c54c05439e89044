/** A consumer notices what a program's own connection commits, without waiting for its next check of the file. */
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { connect, type Event } from "@requeue/core/promise"
import { assert, it } from "vitest"
import { adapter } from "../../src/index.ts"

it(
  "a consumer gets 100 messages, one after the other, that transactions of its process send",
  { timeout: 120_000 },
  async () => {
    const folder = fs.mkdtempSync(join(tmpdir(), "requeue-sqlite-"))
    const path = join(folder, "queue.db")
    const requeue = await connect(`sqlite:${path}`, { adapters: [adapter], logger: false })
    const db = new DatabaseSync(path, { timeout: 60_000 })
    const bodies: Array<unknown> = []
    const ended = Promise.withResolvers<void>()
    const send = (body: number): void => {
      db.exec("BEGIN IMMEDIATE")
      void requeue.within(db).send("work", body)
      db.exec("COMMIT")
    }
    try {
      const onEvent = ({ _tag }: Event): void => {
        if (_tag !== "Succeeded") return
        // The consumer has tried to lease messages in the transaction of the ack, which has ended.
        if (bodies.length < 100) send(bodies.length)
        else ended.resolve()
      }
      await requeue.consume("work", { onEvent }, ({ body }) => void bodies.push(body))
      send(0)
      await ended.promise
      assert.deepStrictEqual(
        bodies,
        Array.from({ length: 100 }, (_, index) => index)
      )
    } finally {
      db.close()
      await requeue.close()
      fs.rmSync(folder, { recursive: true })
    }
  }
)
