/** Compressed bodies, from a program's send to its handler. */
import { deadLetters } from "@requeue/operations/promise"
import { connect, json, queue } from "@requeue/core/promise"
import { CompressedCodec } from "@requeue/codecs"
import { assert, test } from "vitest"
import { MemoryBroker } from "../src/index.ts"

test("a compressed body comes as it was at each attempt, beside plain ones, and a broken one is a dead letter", async () => {
  const seen: Array<unknown> = []
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  await using requeue = await connect(MemoryBroker.layer())
  const pages = queue<{ readonly text: string }>("pages", { codec: CompressedCodec.gzip(json) })
  await requeue.consume(pages, { retry: { maxRetries: 1 }, retryDelay: 0 }, async ({ attempts, body, headers }) => {
    seen.push([body.text, headers["content-encoding"], headers["content-type"], attempts])
    if (seen.length === 3) end()
    if (attempts === 1 && body.text === "a".repeat(3000)) throw new Error("once more")
  })
  await requeue.send("pages", "x", { headers: { "content-encoding": "gzip" }, id: "broken" })
  await requeue.send(pages, { text: "a".repeat(3000) }, { headers: { "content-encoding": "identity" } })
  await requeue.send("pages", { text: "plain" })
  await ended
  assert.sameDeepMembers(seen, [
    ["a".repeat(3000), "gzip", "application/json", 1],
    ["plain", undefined, "application/json", 1],
    ["a".repeat(3000), "gzip", "application/json", 2]
  ])
  const [letter] = await deadLetters(requeue, "pages.dlq").list()
  assert.deepInclude(letter, { id: "broken" })
  assert.deepInclude(letter?.origin, { reason: "undecodable", attempts: 1 })
})
