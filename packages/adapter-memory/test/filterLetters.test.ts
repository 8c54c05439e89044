/** Filters of dead letters and delayed messages: what they get, and what becomes of a call whose function throws. */
import { assert, describe, it } from "@effect/vitest"
import { DeadLetters, DelayedMessages } from "@requeue/core"
import * as Effect from "effect/Effect"
import { open, text, type VirtualBroker } from "./virtualBroker.ts"

const lettersOf = (broker: VirtualBroker) => broker.requeue.deadLetters("q.dlq")

/** Sends as many messages to a consumer that always fails. */
const bury = async (broker: VirtualBroker, ...ids: ReadonlyArray<string>): Promise<void> => {
  const worker = await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("no")))
  await broker.requeue.sendBatch(
    "q",
    ids.map((id) => ({ body: id, id, headers: { tenant: "t" } }))
  )
  await broker.finish(worker.drain())
}

const stored = async (broker: VirtualBroker, queue: string) => {
  const { ready } = await Effect.runPromise(broker.control.snapshot(queue))
  return ready.map(({ body, headers, metadata }) => [
    metadata.id,
    text({ body }),
    headers["tenant"],
    metadata.redrives,
    metadata.deadLetter?.queue,
    metadata.deadLetter?.error.message
  ])
}

/** Writes into all of a letter that can be written. */
const scrawl = (letter: any): void => {
  letter.body.fill(66)
  letter.id = "forged"
  letter.redrives = 99
  Object.assign(letter.metadata, { id: "forged", redrives: 99 })
  Object.assign(letter.metadata.deadLetter, { queue: "elsewhere" })
  letter.origin.error.message = "forged"
  letter.metadata.history.push("forged")
  for (const fixed of [letter.headers, letter.native]) assert.throws(() => Object.assign(fixed, { tenant: "forged" }))
}

describe("what a filter or an audit writes into its letter changes no message", () => {
  const calls: ReadonlyArray<
    readonly [string, (broker: VirtualBroker, filter: (letter: DeadLetters.DeadLetter) => boolean) => Promise<unknown>]
  > = [
    ["list", (broker, filter) => lettersOf(broker).list({ filter })],
    ["group", (broker, filter) => lettersOf(broker).group({ filter })],
    ["a dry run", (broker, filter) => lettersOf(broker).redrive({ filter, dryRun: true })],
    ["redrive", (broker, filter) => lettersOf(broker).redrive({ filter })],
    ["redrive in stages", (broker, filter) => lettersOf(broker).redrive({ filter, stages: [1], wait: "1 second" })],
    ["park", (broker, filter) => lettersOf(broker).park({ filter })],
    ["purge", (broker, filter) => lettersOf(broker).purge({ filter })],
    ["park with an audit", (broker, filter) => lettersOf(broker).park({ audit: (all) => void all.forEach(filter) })]
  ]
  for (const [name, call] of calls) {
    it(name, async () => {
      await using broker = await open()
      await bury(broker, "a", "b")
      const before = await stored(broker, "q.dlq")
      const told: Array<string> = []
      const filter = (letter: DeadLetters.DeadLetter): boolean => {
        const { id } = letter
        told.push(id)
        scrawl(letter)
        return id === "a"
      }
      await broker.finish(call(broker, filter))
      assert.includeMembers(told, name === "redrive in stages" ? ["a"] : ["a", "b"])
      const [a, b] = before
      const after = await stored(broker, "q.dlq")
      assert.deepInclude([...after, ...(await stored(broker, "q.dlq.parked"))], b)
      if (!name.startsWith("p") && !name.startsWith("redrive")) assert.deepStrictEqual(after, before)
      if (name.startsWith("park")) assert.deepInclude(await stored(broker, "q.dlq.parked"), a)
      if (name.startsWith("redrive"))
        assert.deepStrictEqual(await stored(broker, "q"), [["a", `"a"`, "t", 1, undefined, undefined]])
    })
  }

  it("nor does what is written into a listed letter, and list shows what the filter has not changed", async () => {
    await using broker = await open()
    await bury(broker, "a")
    const before = await stored(broker, "q.dlq")
    const filter = (letter: DeadLetters.DeadLetter) => {
      scrawl(letter)
      return true
    }
    const [listed] = await lettersOf(broker).list({ filter })
    assert.deepStrictEqual([listed!.id, text(listed!), listed!.origin?.error.message], ["a", `"a"`, "no"])
    scrawl(listed)
    assert.deepStrictEqual(await stored(broker, "q.dlq"), before)
  })

  it("nor does a filter of delayed messages", async () => {
    await using broker = await open()
    await broker.requeue.send("q", "a", { id: "a", delay: "1 minute" })
    const delayed = broker.requeue.delayed("q")
    const filter = (message: DelayedMessages.DelayedMessage) => {
      message.body.fill(66)
      return true
    }
    assert.deepStrictEqual(text((await delayed.list({ filter })).messages[0]!), `"a"`)
    assert.deepStrictEqual(text((await delayed.list()).messages[0]!), `"a"`)
  })
})

it("filters get the letters that list shows", async () => {
  await using broker = await open()
  await bury(broker, "a", "keep")
  const letters = lettersOf(broker)
  const listed = await letters.list()
  const seen: Array<DeadLetters.DeadLetter> = []
  const filter = (letter: DeadLetters.DeadLetter): boolean => {
    seen.push(letter)
    return letter.id !== "keep"
  }
  const calls: ReadonlyArray<Promise<unknown>> = [
    letters.list({ filter }),
    letters.group({ filter }),
    letters.redrive({ filter, dryRun: true }),
    letters.park({ filter, dryRun: true }),
    letters.purge({ filter })
  ]
  for (const call of calls) await broker.finish(call)
  assert.strictEqual(seen.length, 2 * calls.length)
  for (const letter of seen) assert.deepStrictEqual({ ...letter }, { ...listed.find(({ id }) => id === letter.id)! })
  assert.deepStrictEqual(
    (await letters.list()).map(({ id }) => id),
    ["keep"]
  )
})
