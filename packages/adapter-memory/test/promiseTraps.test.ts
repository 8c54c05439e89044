/** Mistakes that plain JavaScript lets through are told where they are made, and cost no message. */
import { deadLetters, deadLettersOf, delayedMessages } from "@requeue/operations/promise"
import { assert, describe, it, onTestFinished } from "@effect/vitest"
import { type ConsumeOptions, DropError, type Event, PermanentError } from "@requeue/core/promise"
import type { RedriveOptions } from "@requeue/operations/promise"
import { open, turns } from "./virtualBroker.ts"

const nothing: any = undefined

const rejection = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => assert.fail("it was accepted"),
    (error: unknown) => error as Error
  )

/** Rejections that nobody handles, which would end a process. */
const unhandled = (): ReadonlyArray<unknown> => {
  const seen: Array<unknown> = []
  const listen = (error: unknown) => void seen.push(error)
  process.on("unhandledRejection", listen)
  onTestFinished(() => void process.off("unhandledRejection", listen))
  return seen
}

describe("start", () => {
  it.each<readonly [string, any, string]>([
    ["the retry policy", { retry: { retries: 9 } }, "retry: unknown option retries. Did you mean maxRetries?"],
    [
      "the retry policy, but its backoff does",
      { retry: { delay: "5 seconds" } },
      'retry: unknown option delay. It belongs in backoff. Write backoff: constant("5 seconds")'
    ],
    [
      "the consumer, but its retry policy does",
      { backoff: {} },
      "unknown option backoff. It belongs in retry. Write retry: { backoff: … }"
    ],
    ["the batch policy", { batch: { size: 9 } }, "batch: unknown option size. Allowed: maxBatchSize, maxBatchTimeout"],
    [
      "the consumer backoff",
      { consumerBackoff: { max: 9 } },
      "consumerBackoff: unknown option max. Allowed: form, failures, multiplier, maxBackoffDuration, "
    ],
    [
      "the consumer",
      { maxRetries: 9 },
      "unknown option maxRetries. It belongs in retry. Write retry: { maxRetries: 9 }"
    ]
  ])("an option that %s does not know is refused", async (_, options, text) => {
    await using broker = await open()
    const error = await rejection(broker.requeue.consume("q", options, () => {}))
    assert.instanceOf(error, RangeError)
    assert.include(error.message, `requeue.consume (queue q): ${text}`)
  })

  it.each<readonly [string, any, string]>([
    [
      "retry: false",
      { retry: false },
      "retry must be an object such as { maxRetries: 5 }, or { maxRetries: 0 } for none, got false"
    ],
    [
      "retry: 5",
      { retry: 5 },
      "retry must be an object such as { maxRetries: 5 }, or { maxRetries: 0 } for none, got 5"
    ],
    [
      "retry: null",
      { retry: null },
      "retry must be an object such as { maxRetries: 5 }, or { maxRetries: 0 } for none, got null"
    ],
    ["batch: 0", { batch: 0 }, "batch must be an object such as { maxBatchSize: 10 }, got 0"],
    [
      "a word for a consumer backoff",
      { consumerBackoff: "linear" },
      'consumerBackoff must be true, false, or an object such as { form: "consecutive" }, got "linear"'
    ],
    ["deadLetter: null", { retry: { deadLetter: null } }, "retry: deadLetter must be a queue's name"],
    ["deadLetter: false", { retry: { deadLetter: false } }, "retry: deadLetter must be a queue's name"],
    [
      "a discard besides a queue",
      { retry: { maxRetries: 1, deadLetter: { queue: "x", discard: true } } },
      'retry: deadLetter must have no options but queue, routes and redact, got "discard"'
    ],
    [
      "a budget that is a number",
      { deadLetterBudget: 5 },
      "deadLetterBudget must be a budget such as { max: 100 }, got 5"
    ],
    [
      "a budget without a max",
      { deadLetterBudget: {} },
      "deadLetterBudget must be a budget such as { max: 100 }, got an object"
    ]
  ])("%s is refused", async (_, options, text) => {
    await using broker = await open()
    const error = await rejection(broker.requeue.consume("q", options, () => {}))
    assert.instanceOf(error, RangeError)
    assert.include(error.message, `requeue.consume (queue q): ${text}`)
  })

  it("a consumer without a handler is refused, and the queue keeps its messages", async () => {
    await using broker = await open()
    const { requeue } = broker
    await requeue.send("q", 1)
    const handler: any = () => {}
    for (const start of [requeue.consume, requeue.consumeBatch]) {
      const error = await rejection(start("q", handler, nothing))
      assert.instanceOf(error, RangeError)
      assert.include(error.message, "handler must be a function, after the options, got undefined")
    }
    assert.deepStrictEqual(await broker.waiting("q"), ["1"])
  })

  it("a generator function is no handler: nobody would run its lines", async () => {
    await using broker = await open()
    const handlers: ReadonlyArray<any> = [function* () {}, async function* () {}]
    for (const handler of handlers) {
      const error = await rejection(broker.requeue.consume("q", {}, handler))
      assert.include(error.message, "handler must be a plain or async function, got a generator function")
    }
  })

  it("the messages of a batch stay its messages", async () => {
    await using broker = await open()
    const thrown: Array<unknown> = []
    await broker.requeue.consumeBatch("q", {}, (batch) => {
      try {
        const messages: any = batch.messages
        messages.length = 0
      } catch (error) {
        thrown.push(error)
      }
    })
    await broker.requeue.send("q", 1)
    await broker.advance("1 minute")
    assert.instanceOf(thrown[0], TypeError)
  })

  it("a queue that is none is refused, wherever it is named", async () => {
    const rejections = unhandled()
    await using broker = await open()
    const { requeue } = broker
    const wrong: ReadonlyArray<readonly [any, string]> = [
      [undefined, "undefined"],
      [null, "null"],
      [5, "5"],
      [{ name: "q" }, "an object"]
    ]
    for (const [queue, got] of wrong) {
      const calls = [requeue.send(queue, 1), requeue.consume(queue, {}, () => {}), requeue.puller(queue)]
      for (const error of await Promise.all(calls.map(rejection))) {
        assert.instanceOf(error, RangeError)
        assert.include(error.message, `queue must be a name or a definition, got ${got}`)
      }
    }
    await turns()
    assert.deepStrictEqual(rejections, [])
  })

  it.each<readonly [any, string]>([
    ["exponential", 'got "exponential"'],
    [() => 1, "got a function"],
    [{ type: "exponential", base: 1000 }, 'got {"type":"exponential","base":1000}']
  ])("a backoff that was not built is refused: %o", async (backoff, got) => {
    await using broker = await open()
    const error = await rejection(broker.requeue.consume("q", { retry: { backoff } }, () => {}))
    assert.instanceOf(error, RangeError)
    assert.include(error.message, 'backoff must be built, for example by exponential("1 second")')
    assert.include(error.message, got)
  })

  it("an id that is no text is refused", async () => {
    await using broker = await open()
    const id: any = 5
    assert.include((await rejection(broker.requeue.send("q", 1, { id }))).message, "id: must be text, got number")
  })
})

describe("functions of a policy", () => {
  it("an audit hook may be async: what it rejects with ends no process", async () => {
    const rejections = unhandled()
    await using broker = await open()
    const seen: Array<Event["_tag"]> = []
    const onEvent: any = async (event: Event) => {
      seen.push(event._tag)
      throw new Error("the audit log is down")
    }
    await broker.requeue.consume("q", { onEvent }, () => {})
    await broker.requeue.send("q", 1)
    await turns()
    assert.deepStrictEqual(seen, ["Received", "Succeeded"])
    assert.deepStrictEqual(rejections, [])
  })

  const failing = async (retry: ConsumeOptions["retry"]) => {
    await using broker = await open()
    await broker.requeue.consume("q", { retry }, () => {
      throw new Error("secret")
    })
    await broker.requeue.send("q", 1)
    await turns()
    return deadLetters(broker.requeue, "q.dlq").list()
  }

  it("redact that answers no name and message withholds the message, and its dead letter is kept", async () => {
    const rejections = unhandled()
    const answers: ReadonlyArray<() => any> = [
      () => nothing,
      () => ({}),
      () => ({ name: 5, message: {} }),
      async () => ({ name: "a", message: "b" }),
      () => Promise.reject(new Error("the vault is away"))
    ]
    for (const redact of answers) {
      const [letter] = await failing({ maxRetries: 0, deadLetter: { redact } })
      assert.deepStrictEqual(letter?.origin?.error, { name: "Error", message: "(withheld: redact failed)" })
    }
    assert.deepStrictEqual(rejections, [])
  })

  it("a promise that a handler throws, or a classifier answers, ends no process when it is rejected", async () => {
    const rejections = unhandled()
    await using broker = await open()
    const retry = { maxRetries: 0, classify: { with: (): any => Promise.reject(new Error("no class")) } }
    await broker.requeue.consume("q", { retry }, () => {
      // oxlint-disable-next-line typescript/only-throw-error -- That is the trap.
      throw Promise.reject(new Error("503"))
    })
    await broker.requeue.send("q", 1)
    await turns()
    assert.strictEqual((await deadLetters(broker.requeue, "q.dlq").list())[0]?.origin?.error.name, "NonError(Promise)")
    assert.deepStrictEqual(rejections, [])
  })

  it("onProgress whose promise is rejected ends a redrive before its next letter", async () => {
    const rejections = unhandled()
    await using broker = await open()
    await broker.requeue.consume("q", { retry: { maxRetries: 0 } }, () => Promise.reject(new Error("no")))
    await broker.requeue.sendBatch("q", [{ body: 1 }, { body: 2 }])
    await turns()
    const onProgress: any = () => Promise.reject(new Error("the page is gone"))
    const error = await rejection(broker.finish(deadLetters(broker.requeue, "q.dlq").redrive({ onProgress })))
    assert.match(error.message, /The option onProgress threw Error: the page is gone/)
    assert.deepStrictEqual(rejections, [])
  })

  it("classify.with that answers what is no classification leaves it to the policy", async () => {
    const answers: ReadonlyArray<any> = [Promise.resolve("drop"), true, "deadletter"]
    for (const answer of answers) {
      const letters = await failing({ maxRetries: 1, immediate: 1, classify: { with: () => answer } })
      assert.deepStrictEqual(
        letters.map(({ origin }) => [origin?.reason, origin?.attempts]),
        [["retries-exhausted", 2]]
      )
    }
  })

  it("a redrive takes only letters for which its filter answers true, and no filter is async", async () => {
    await using broker = await open()
    await broker.requeue.consume("q", {}, () => {
      throw new PermanentError({ message: "no" })
    })
    await broker.requeue.send("q", 1)
    await turns()
    const answers: ReadonlyArray<any> = [undefined, 0]
    for (const answer of answers) {
      const options: RedriveOptions = { filter: () => answer, dryRun: true }
      const report = await broker.finish(deadLetters(broker.requeue, "q.dlq").redrive(options))
      assert.deepStrictEqual([report.redriven, report.filtered], [0, 1])
    }
    const wrong: any = async () => true
    const letters = deadLetters(broker.requeue, "q.dlq")
    const calls = [
      letters.redrive({ filter: wrong, dryRun: true }),
      letters.redrive({ filter: wrong }),
      letters.list({ filter: wrong }),
      letters.purge({ filter: wrong })
    ].map(rejection)
    for (const call of calls) {
      const error: any = await broker.finish(call)
      // What moves or removes letters reports what it has done.
      assert.instanceOf(error._tag === "DeadLettersStopped" ? error.cause.cause : error, TypeError)
      assert.match(String(error), /filter must return true or false, not a promise/)
    }
    assert.strictEqual(await broker.finish(letters.count()), 1)
  })
})

describe("options", () => {
  /** An object that inherits an option, one whose class has it, and one that may answer otherwise at each look. */
  const forms = (name: string, value: unknown): ReadonlyArray<any> => {
    let looks = 0
    const accessor = Object.defineProperty({}, name, { get: () => value })
    return [
      Object.create({ [name]: value }),
      Object.create(accessor),
      Object.defineProperty({}, name, { enumerable: true, get: () => (looks++ === 0 ? value : undefined) }),
      new Map([[name, value]]),
      Promise.resolve({ [name]: value })
    ]
  }

  it("that a copy would not have are refused by every call, and nothing is moved", async () => {
    await using broker = await open()
    const { requeue } = broker
    await requeue.sendBatch("q.dlq", [{ body: 1 }, { body: 2 }])
    const letters = deadLetters(requeue, "q.dlq")
    const [letter] = await letters.list()
    const delayed = delayedMessages(requeue, "q")
    const puller = await requeue.puller("p")
    const all = () => true
    const calls: ReadonlyArray<readonly [string, unknown, (options: any) => Promise<unknown>]> = [
      ["dryRun", true, letters.redrive],
      ["dryRun", true, letters.park],
      ["dryRun", true, letters.purge],
      ["filter", all, letters.purge],
      ["limit", 1, letters.redrive],
      ["limit", 1, letters.list],
      ["limit", 1, letters.group],
      ["limit", 1, async (options) => letters.read(options)],
      ["to", "q", (options) => letters.edit(letter!, options)],
      ["retry", {}, (options) => deadLettersOf(requeue, "q", options)],
      ["retry", {}, async (options) => delayedMessages(requeue, "q", options)],
      ["limit", 1, delayed.list],
      ["filter", all, delayed.count],
      ["filter", all, delayed.purge],
      ["delay", 1, (options) => requeue.send("q", 1, options)],
      ["body", 1, (entry) => requeue.sendBatch("q", [entry])],
      ["delay", 1, (options) => requeue.sendBatch("q", [{ body: 1 }], options)],
      ["concurrency", 2, (options) => requeue.consume("q", options, () => {})],
      ["maxRetries", 0, (retry) => requeue.consume("q", { retry }, () => {})],
      ["lease", 5000, (options) => requeue.puller("q", options)],
      ["wait", 1, puller.pull],
      ["timeout", 1, (options) => requeue.counts("q", options)]
    ]
    for (const [name, value, call] of calls) {
      for (const options of forms(name, value)) {
        const error = await broker.finish(rejection(call(options)))
        assert.instanceOf(error, RangeError, name)
        assert.match(error.message, /must be a plain property, got|must be an object\b|has no body/, name)
      }
    }
    assert.strictEqual(await broker.finish(letters.count()), 2)
  })

  it("are those of the call: what is changed behind it changes nothing", async () => {
    await using broker = await open()
    await broker.requeue.sendBatch("q.dlq", [{ body: 1 }, { body: 2 }])
    const letters = deadLetters(broker.requeue, "q.dlq")
    const options = { to: "q", dryRun: true }
    const redriving = letters.redrive(options)
    options.dryRun = false
    await broker.finish(redriving)
    const reading = { limit: 1 }
    const pages = letters.read(reading)
    reading.limit = 2
    const read: Array<unknown> = []
    for await (const letter of pages) read.push(letter)
    assert.lengthOf(read, 1)
    assert.strictEqual(await broker.finish(letters.count()), 2)
  })
})

describe("errors of ours", () => {
  it("take a text, or a text and its cause", async () => {
    const cause = new Error("why")
    assert.strictEqual(new PermanentError("gone").message, "gone")
    assert.strictEqual(new DropError("stale").message, "stale")
    assert.strictEqual(new PermanentError({ message: "gone", cause }).cause, cause)
  })
})
