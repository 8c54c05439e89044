/** Letters that a look has, on real servers where they are leased: they are given back, and told where others work beside it. */
import { deadLetters } from "@requeue/operations/promise"
import { connect } from "@requeue/core/promise"
import { afterAll, assert, describe, test, vi } from "vitest"
import { open } from "../real/brokers.ts"
import { program } from "../requeue.ts"
import { until } from "../until.ts"

const count = 3000

describe.each(["sqs", "nsq"] as const)("on %s", async (name) => {
  const broker = await open(name)
  afterAll(() => broker.dispose())

  // Each signal ends the program in the same way: ../program.test.ts.
  test("an export that is interrupted gives back what it has", { timeout: 120_000 }, async () => {
    const queue = "letters"
    await using requeue = await connect(broker.url, { logLevel: "None" })
    for (let from = 0; from < count; from += 500) {
      await requeue.sendBatch(
        queue,
        Array.from({ length: 500 }, (_, at) => ({ body: from + at }))
      )
    }
    const args = ["dead-letters", "export", "--url", broker.url, "--dlq", queue]
    const interruption = (said: () => string) => until("letters", () => said().length > 20_000)
    const { code, stderr } = await program(args, { interruption, signal: "SIGTERM" })
    assert.strictEqual(code, 130, stderr)
    const isBack = async () => {
      const { inFlight, ready } = await requeue.counts(queue)
      assert.deepStrictEqual([ready, inFlight], [count, 0])
    }
    // Leases last a minute: it is not they that give the letters back.
    await vi.waitFor(isBack, { interval: 50, timeout: 20_000 })
  })

  test("a purge of all says how many letters another reader has", { timeout: 120_000 }, async () => {
    const queue = "beside.dlq"
    await using requeue = await connect(broker.url, { logLevel: "None" })
    await requeue.sendBatch(
      queue,
      Array.from({ length: 150 }, (_, at) => ({ body: at }))
    )
    const reader = deadLetters(requeue, queue).read()[Symbol.asyncIterator]()
    await reader.next()
    const { inFlight = 0 } = await requeue.counts(queue)
    assert.isTrue(inFlight > 0 && inFlight < 150, String(inFlight))
    const all = ["dead-letters", "purge", "--all", "--url", broker.url, "--dlq", queue]
    const told = `${150 - inFlight}; ${inFlight} more were counted, which another reader holds or which are delayed\n`
    assert.include(await program([...all, "--dry-run"]), { stdout: `${queue}: would remove ${told}` })
    assert.include(await program([...all, "--yes"]), { stdout: `${queue}: removed ${told}` })
    await reader.return!()
    assert.include(await program([...all, "--yes"]), { stdout: `${queue}: removed ${inFlight}\n` })
  })
})
