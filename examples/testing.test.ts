// A test in virtual time. Run: node --test examples/testing.test.ts
import assert from "node:assert/strict"
import { test } from "node:test"
import * as Testing from "@requeue/adapter-memory/testing"
import { sequence } from "@requeue/core/promise"

test("a webhook is tried three times in 70 seconds", async () => {
  const broker = await Testing.open()
  await broker.requeue.consume(
    "webhooks",
    { retry: { maxRetries: 2, backoff: sequence(["10 seconds", "1 minute"]) } },
    () => {
      throw new Error("503")
    }
  )
  await broker.requeue.send("webhooks", {})
  await broker.waitUntilIdle()
  assert.equal(broker.now(), 70_000)
  const [letter] = await broker.deadLettersOf("webhooks")
  assert.equal(letter?.attempts, 3)
  await broker.close()
})
