/** Filters of dead letters and delayed messages: what they get, and what becomes of a call whose function throws. */
import { deadLetters, delayedMessages } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import { DeadLetters, type DelayedMessages } from "@requeue/operations"
import type { DeadLetterQueue } from "@requeue/operations/promise"
import * as Effect from "effect/Effect"
import { open, text, turns, type VirtualBroker } from "./virtualBroker.ts"

const lettersOf = (broker: VirtualBroker) => deadLetters(broker.requeue, "q.dlq")

/** Sends as many messages to a consumer that always fails. */
const bury = async (broker: VirtualBroker, ...ids: ReadonlyArray<string>): Promise<void> => {
  const worker = await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("no")))
  await broker.requeue.sendBatch(
    "q",
    ids.map((id) => ({ body: id, id, headers: { tenant: "t" } }))
  )
  await turns()
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
    [
      "park with an audit",
      (broker, filter) => lettersOf(broker).park({ audit: (all) => all.forEach((each) => filter(each)) })
    ]
  ]
  it.each(calls)("%s", async (name, call) => {
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
    const delayed = delayedMessages(broker.requeue, "q")
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

describe("a function that throws midway ends the call with what it has done", () => {
  const boom = new Error("boom")
  const digits = Array.from({ length: 10 }, (_, index) => `${index}`)
  /** Throws in its sixth call, and answers true before. */
  const sixth = () => {
    let calls = 0
    return (): boolean => {
      if (++calls === 6) throw boom
      return true
    }
  }
  type Call = (letters: DeadLetterQueue) => Promise<unknown>
  const onProgress = ({ redriven }: DeadLetters.RedriveReport) => {
    if (redriven === 5) throw boom
  }
  const calls: ReadonlyArray<readonly [string, "filter" | "onProgress" | "watch", "purge" | "park" | "redrive", Call]> =
    [
      ["filter of purge", "filter", "purge", (letters) => letters.purge({ filter: sixth() })],
      ["filter of park", "filter", "park", (letters) => letters.park({ filter: sixth() })],
      ["filter of redrive", "filter", "redrive", (letters) => letters.redrive({ filter: sixth(), operation: "mine" })],
      ["filter in stages", "filter", "redrive", (letters) => letters.redrive({ filter: sixth(), stages: [8] })],
      ["onProgress of park", "onProgress", "park", (letters) => letters.park({ onProgress, rate: 1 })],
      ["onProgress of redrive", "onProgress", "redrive", (letters) => letters.redrive({ onProgress, rate: 1 })],
      ["onProgress in stages", "onProgress", "redrive", (letters) => letters.redrive({ onProgress, stages: [5] })],
      [
        "watch",
        "watch",
        "redrive",
        (letters) =>
          letters.redrive({
            stages: [1],
            watch: () => {
              throw boom
            }
          })
      ]
    ]
  it.each(calls)("%s", async (name, option, operation, call) => {
    await using broker = await open()
    await bury(broker, ...digits)
    const letters = lettersOf(broker)
    const error: unknown = await broker.finish(call(letters).catch((thrown: unknown) => thrown))
    if (!(error instanceof DeadLetters.DeadLettersStopped)) throw error
    const { cause, removed, report } = error
    const left = await stored(broker, "q.dlq")
    assert.deepStrictEqual([error.operation, removed + left.length], [operation, 10])
    if (option === "watch") assert.strictEqual(removed, 0)
    else assert.isTrue(removed > 0 && removed < 10, `${removed} removed`)
    if (!(cause instanceof DeadLetters.CallbackFailed)) throw cause
    assert.deepStrictEqual([cause.option, cause.queue, cause.cause], [option, "q.dlq", boom])
    if (operation === "purge") assert.isUndefined(report)
    else assert.deepInclude(report, { redriven: removed, queued: left.length })
    if (name === "filter of redrive") assert.strictEqual(report!.operation, "mine")
    const fix = `The option ${option} threw Error: boom. Fix ${option}, then call it again to go on`
    const still = operation === "purge" ? "" : `, ${left.length} are still there`
    assert.strictEqual(error.message, `${operation} of q.dlq stopped: ${removed} letters removed${still}. ${fix}`)
    assert.deepStrictEqual((await Effect.runPromise(broker.control.snapshot("q.dlq"))).inFlight, [])
    // Another call goes on with the others.
    assert.strictEqual(await broker.finish(letters.purge({ filter: () => true })), left.length)
  })

  it("a dry run moves nothing, and says so", async () => {
    await using broker = await open()
    await bury(broker, ...digits)
    const letters = lettersOf(broker)
    const options = () => ({ filter: sixth(), dryRun: true })
    const calls = [
      () => letters.redrive(options()).then(String),
      () => letters.park(options()).then(String),
      () => letters.purge(options()).then(String)
    ]
    for (const call of calls) {
      const error: unknown = await broker.finish(call().catch((thrown: unknown) => thrown))
      assert.include(error, { _tag: "DeadLettersStopped", removed: 0 })
    }
    assert.strictEqual((await stored(broker, "q.dlq")).length, 10)
  })
})
