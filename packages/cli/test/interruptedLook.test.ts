/** A look that is interrupted gives all letters back, on real servers whose letters are leased. */
import { connect } from "@requeue/core/promise"
import { afterAll, assert, describe, test, vi } from "vitest"
import { open } from "./brokers.ts"
import { program } from "./requeue.ts"
import { until } from "./until.ts"

const count = 3000

describe.each(["sqs", "nsq"] as const)("an export on %s gives back what it has", async (name) => {
  const broker = await open(name)
  afterAll(() => broker.dispose())

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("after %s", { timeout: 120_000 }, async (signal) => {
    const queue = `letters-${signal}`
    await using requeue = await connect(broker.url, { logLevel: "None" })
    for (let from = 0; from < count; from += 500) {
      await requeue.sendBatch(
        queue,
        Array.from({ length: 500 }, (_, at) => ({ body: from + at }))
      )
    }
    const args = ["dead-letters", "export", "--url", broker.url, "--dlq", queue]
    const interruption = (said: () => string) => until("letters", () => said().length > 20_000)
    const { code, stderr } = await program(args, { interruption, signal })
    assert.strictEqual(code, 130, stderr)
    const isBack = async () => {
      const { inFlight, ready } = await requeue.counts(queue)
      assert.deepStrictEqual([ready, inFlight], [count, 0])
    }
    // Leases last a minute: it is not they that give the letters back.
    await vi.waitFor(isBack, { interval: 50, timeout: 20_000 })
  })
})
