import { expect, test } from "vitest"
import { connect } from "@requeue/core/promise"
import { openOutbox } from "../src/outbox.ts"
import { webhook } from "../src/payloads.ts"
import { queue } from "../src/policy.ts"

test("webhooks are stored and sent in one transaction: all of them, or none", async () => {
  using outbox = openOutbox()
  await using requeue = await connect("memory:", { store: outbox.url })
  const [first, second, third] = [0, 1, 2].map((index) => webhook(1, index))
  outbox.accept(requeue, [first!, second!])
  expect(() => outbox.accept(requeue, [third!, first!])).toThrow(/UNIQUE/)
  expect(outbox.count()).toBe(2)

  await using _ = await requeue.relay()
  outbox.accept(requeue, [{ ...third!, id: "last" }])
  const received = new Set<string>()
  const done = Promise.withResolvers<void>()
  await requeue.consume(queue, {}, ({ id }) => {
    received.add(id)
    if (received.size === outbox.count()) done.resolve()
  })
  await done.promise
  expect(received).toEqual(new Set([first!.id, second!.id, "last"]))
})
