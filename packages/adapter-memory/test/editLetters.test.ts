/** Dead letters that are edited: the original stays until the copy has succeeded. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, it } from "@effect/vitest"
import { DeadLetters } from "@requeue/operations"
import * as Effect from "effect/Effect"
import { open, text, turns, type VirtualBroker } from "./virtualBroker.ts"

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

const bury = async (broker: VirtualBroker) => {
  const worker = await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("bad")))
  await broker.requeue.send("q", { pieces: "two" }, { id: "a", headers: { tenant: "acme" } })
  await broker.requeue.send("q", { pieces: 1 }, { id: "b" })
  await turns(50)
  await broker.finish(worker.drain())
  const letters = deadLetters(broker.requeue, "q.dlq")
  const [letter] = await broker.finish(letters.list())
  return { letters, letter: letter! }
}

it("removes the original when the copy has succeeded", async () => {
  await using broker = await open()
  const { letter, letters } = await bury(broker)
  const seen: Array<unknown> = []
  await broker.requeue.consume("q", {}, ({ attempts, body, headers, id }) => {
    seen.push([id, body, headers["tenant"], attempts])
  })
  const headers = { "content-type": "application/json", tenant: "globex" }
  const report = await broker.finish(letters.edit(letter, { body: encode({ pieces: 2 }), headers, operation: "mine" }))
  assert.deepStrictEqual(report, { operation: "mine", outcome: "succeeded", isRemoved: true })
  assert.deepStrictEqual(seen, [["a", { pieces: 2 }, "globex", 1]])
  assert.deepStrictEqual(
    (await broker.finish(letters.list())).map(({ id }) => id),
    ["b"]
  )
})

it("keeps the original when the copy comes back, and tells the two apart", async () => {
  await using broker = await open()
  const { letter, letters } = await bury(broker)
  await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("worse")))
  const report = await broker.finish(letters.edit(letter, { body: encode({ pieces: 3 }) }))
  assert.deepInclude(report, { outcome: "came-back", isRemoved: false })
  const left = await broker.finish(letters.list())
  assert.deepStrictEqual(
    left.map((each) => [each.id, text(each), each.redrives, each.operation]),
    [
      ["a", '{"pieces":"two"}', 0, undefined],
      ["b", '{"pieces":1}', 0, undefined],
      ["a", '{"pieces":3}', 1, report.operation]
    ]
  )
})

it("keeps the original while the copy waits, and when nobody can tell", async () => {
  for (const [delayed, outcome] of [
    [0, "waiting"],
    [undefined, "unknown"]
  ] as const) {
    await using broker = await open({}, (broker) => ({
      ...broker,
      admin: {
        ...broker.admin,
        counts: (queue) => Effect.map(broker.admin.counts(queue), (counts) => ({ ...counts, delayed }))
      }
    }))
    const { letter, letters } = await bury(broker)
    const report = await broker.finish(letters.edit(letter, { body: encode(0), wait: "5 seconds" }))
    assert.deepInclude(report, { outcome, isRemoved: false })
    assert.strictEqual(await broker.finish(letters.count()), 2)
    assert.deepStrictEqual(await broker.waiting("q"), ["0"])
  }
})

it("keeps the original while the copy waits for a parked letter of its key", async () => {
  await using broker = await open()
  for (const [id, afterDeadLetter] of [
    ["first", "continue"],
    ["parked", "park"]
  ] as const) {
    const retry = { maxRetries: 0, afterDeadLetter }
    const worker = await broker.requeue.consume("q", { retry }, () => Promise.reject(new Error("bad")))
    await broker.requeue.send("q", 1, { id, key: "a" })
    await turns(50)
    await broker.finish(worker.drain())
  }
  await broker.requeue.consume("q", {}, () => undefined)
  const letters = deadLetters(broker.requeue, "q.dlq")
  const [first] = await broker.finish(letters.list())
  const report = await broker.finish(letters.edit(first!, { body: encode(2), wait: "5 seconds" }))
  assert.deepInclude(report, { outcome: "waiting", isRemoved: false })
  const redriven = await broker.finish(
    letters.redrive({ filter: ({ metadata }) => metadata.id === "first", stages: [1] })
  )
  assert.deepInclude(redriven, { published: 1, succeeded: 0, waiting: 1 })
  const rest = await broker.finish(letters.redrive({ stages: [1] }))
  assert.deepInclude(rest, { published: 1, succeeded: 1, waiting: 0 })
  assert.deepStrictEqual(await broker.requeue.counts("q"), { ready: 0, inFlight: 0, delayed: 0 })
})

it("keeps the original when the wait is aborted", async () => {
  await using broker = await open()
  const { letter, letters } = await bury(broker)
  const stop = new AbortController()
  const editing = letters.edit(letter, { body: encode(0), signal: stop.signal })
  await broker.advance(1500)
  stop.abort()
  assert.deepInclude(await broker.finish(editing), { outcome: "waiting", isRemoved: false })
  assert.strictEqual(await broker.finish(letters.count()), 2)
})

it("publishes nothing for a letter that is not there any more", async () => {
  await using broker = await open()
  const { letter, letters } = await bury(broker)
  await broker.finish(letters.purge({ filter: ({ metadata }) => metadata.id === "a" }))
  assert.deepInclude(await broker.finish(letters.edit(letter, { body: encode(0) })), {
    outcome: "missing",
    isRemoved: false
  })
  assert.deepStrictEqual(await broker.waiting("q"), [])
})

it("refuses wrong options, and letters of unknown origin", async () => {
  await using broker = await open()
  const { letter, letters } = await bury(broker)
  const { origin: _, ...stray } = letter
  const wrong = [
    [letter, { body: "text" }, 'body must be a Uint8Array, got "text"'],
    [
      letter,
      { headers: { a: 1 } },
      'headers must be a plain object with text values, got an object. Its header "a" must be text, got 1'
    ],
    [
      letter,
      { headers: { requeue: "x" } },
      'headers must be a plain object with text values, got an object. Its header "requeue" is reserved: remove it'
    ],
    [
      letter,
      { headers: new Map([["a", "b"]]) },
      "headers must be a plain object with text values, got a Map. Convert it with Object.fromEntries(…)"
    ],
    [letter, { to: "q.dlq" }, 'to must be another queue, got "q.dlq"'],
    [
      letter,
      { to: "discard" },
      'to must name a queue, got "discard", which in a policy means that no letters are kept. To remove letters, use purge'
    ],
    ...[{}, { to: "elsewhere" }, { body: letter.body, headers: { ...letter.headers } }].map(
      (same) =>
        [
          letter,
          same,
          "the copy must differ from the letter. Use another body or headers; to send the letter back unchanged, use redrive with a filter"
        ] as const
    ),
    [{ ...stray, origin: undefined }, {}, 'the queue that the letter came from is unknown. Use { to: "NAME" }'],
    [{}, {}, "the letter must be one that list has returned"]
  ] as const
  for (const [subject, options, message] of wrong) {
    const error = await letters
      .edit(subject as DeadLetters.DeadLetter, options as DeadLetters.EditOptions)
      .catch((error: unknown) => error)
    assert.instanceOf(error, RangeError)
    assert.strictEqual((error as Error).message, `DeadLetters.edit (queue q.dlq): ${message}`)
  }
})
