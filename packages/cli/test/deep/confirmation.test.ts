/** What is asked on a terminal before something is removed, of letters on a real RabbitMQ. */
import { deadLetters } from "@requeue/operations/promise"
import { spawnSync } from "node:child_process"
import { connect } from "@requeue/core/promise"
import { assert, describe, it } from "vitest"
import { clear, rabbitmq } from "../real/brokers.ts"
import { quoted, spawned } from "../requeue.ts"

const isThere = (command: string): boolean => spawnSync(command, ["--version"]).error === undefined

describe.skipIf(!isThere("script"))("on a terminal", () => {
  it.each([
    ["n", /nothing was removed/, 2],
    ["y", /asked\.dlq: removed 2/, 0]
  ])("a purge shows the count, asks, and hears %s", async (answer, outcome, left) => {
    const { url } = await rabbitmq()
    await using connection = await connect(url, { logLevel: "None" })
    const letters = deadLetters(connection, "asked.dlq")
    await clear(connection, "asked.dlq")
    await connection.sendBatch("asked.dlq", [{ body: 1 }, { body: 2 }])
    const command = `${quoted} dead-letters purge --url ${JSON.stringify(url)} --dlq asked.dlq --all`
    const { both, code } = await spawned("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
      input: `${answer}\n`
    })
    assert.strictEqual(code, 0, both)
    assert.match(both, /Remove all dead letters of asked\.dlq \(2 wait\) for good\? \[y\/N\]/)
    assert.match(both, outcome)
    assert.strictEqual(await letters.count(), left)
  })
})
