import { Metadata, Outgoing, Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert, test } from "vitest"
import type { Receipt, Received } from "../src/internal/consume/receipt.ts"
import * as Settle from "../src/internal/settle/settle.ts"

test("a copy that is withdrawn with its subscription answers its settlement: the server redelivers the original", async () => {
  const settler = { isOpen: () => true, barrier: () => undefined, claim: () => true }
  const receipt = {
    settler,
    message: { properties: {}, fields: { exchange: "", routingKey: "q" } }
  } as unknown as Receipt // All that is used.
  const delivery: Received = {
    body: new Uint8Array(),
    headers: {},
    attempts: 1,
    metadata: Metadata.make("m", 0),
    receipt
  }
  const copy = Outgoing.make({ queue: "q", id: "m", body: delivery.body, headers: {}, delay: 0 }, 0)
  const forked: Array<Fiber.Fiber<unknown>> = []
  const settle = Settle.make({
    queue: "q",
    toCommand: () => ({ _tag: "Copy", outgoing: copy }),
    publish: () => Effect.never,
    fork: (effect) => void forked.push(Effect.runFork(effect)),
    settled: () => {}
  })
  const settling = Effect.runPromise(
    settle([{ delivery, settlement: Settlement.Retry(1, { name: "E", message: "" }) }])
  )
  await Effect.runPromise(Fiber.interruptAll(forked))
  const [failure] = await settling
  assert.strictEqual(failure?.fate, "lost")
})
