/** What is said of every wrong option, by every function of the Promise face: nothing is done, and the stack leads here. */
import { deadLetters } from "@requeue/operations/promise"
import { assert, describe, it } from "@effect/vitest"
import * as Cloudflare from "@requeue/cloudflare"
import {
  connect,
  type ConsumeOptions,
  deadLetterBudget,
  describe as describePolicy,
  queue,
  type Received,
  type Requeue,
  retryPolicy
} from "@requeue/core/promise"
import * as Testing from "../src/Testing.ts"
import { MemoryBroker } from "../src/index.ts"
import { open, turns, type VirtualBroker } from "./virtualBroker.ts"

/** Calls as JavaScript makes them. */
type Loose = any // What these tests are about is what a compiler would refuse.

const lettersOf: Loose = deadLetters

const rejection = async (call: () => unknown): Promise<Error> => {
  try {
    await call()
  } catch (error) {
    return error as Error
  }
  return assert.fail("it was accepted")
}

const handler = (): void => {}
const consumer =
  "retry, retryDelay, batch, concurrency, prefetch, rateLimit, shareLimits, handlerTimeout, consumerBackoff, deadLetterBudget, drainTimeout"
const redrive =
  "to, limit, filter, origin, dryRun, rate, maxRedrives, signal, audit, onProgress, stages, stopAt, wait, create, force, watch, operation"
const wrongLogger =
  'connect: logger must be "json", false, or a logger with the methods info, warn and error, such as pino(), a winston logger or console, got '
const duration = 'Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'

const noQueue = "queue must be a name or a definition, got undefined. Check the variable that holds the queue's name"

type Wrong = readonly [string, (requeue: Loose) => unknown, string]

const rows: ReadonlyArray<Wrong> = [
  [
    "a rate limit that is a number",
    (r) => r.consume("q", { rateLimit: 50 }, () => {}),
    'requeue.consume (queue q): rateLimit: options must be an object with max and per, got 50. Write { max: 50, per: "1 second" }'
  ],
  [
    "a rate limit that is a duration",
    (r) => r.consume("q", { rateLimit: "5 seconds" }, () => {}),
    'requeue.consume (queue q): rateLimit: options must be an object with max and per, got "5 seconds". Write { max: 10, per: "5 seconds" }'
  ],
  [
    "a rate limit that is null",
    (r) => r.consume("q", { rateLimit: null }, () => {}),
    'requeue.consume (queue q): rateLimit: options must be an object with max and per, got null. Write { max: 10, per: "1 second" }'
  ],
  [
    "limits of shares that are null",
    (r) => r.consume("q", { shareLimits: null }, () => {}),
    "requeue.consume (queue q): shareLimits: options must be an object with concurrency, rateLimit or both, got null. Write { concurrency: 1 }"
  ],
  [
    "limits of shares with a rate that is false",
    (r) => r.consume("q", { shareLimits: { rateLimit: false } }, () => {}),
    'requeue.consume (queue q): shareLimits: options must be an object with max and per, got false. Write { max: 10, per: "1 second" }'
  ],
  [
    "send, an id",
    (r) => r.send("q", 1, "invoice-17"),
    'requeue.send (queue q): options must be an object, got "invoice-17". Write { id: "invoice-17" }'
  ],
  ["send, no queue", (r) => r.send(undefined, 1), `requeue.send: ${noQueue}`],
  ["sendBatch, no queue", (r) => r.sendBatch(undefined, [{ body: 1 }]), `requeue.sendBatch: ${noQueue}`],
  ["consume, no queue", (r) => r.consume(undefined, {}, handler), `requeue.consume: ${noQueue}`],
  ["consumeBatch, no queue", (r) => r.consumeBatch(undefined, {}, handler), `requeue.consumeBatch: ${noQueue}`],
  ["puller, no queue", (r) => r.puller(undefined), `requeue.puller: ${noQueue}`],
  ["counts, no queue", (r) => r.counts(undefined), `requeue.counts: ${noQueue}`],
  [
    "queue, no name",
    () => queue(""),
    'queue: name must have 1 to 200 characters, got "". Check the variable that holds the queue\'s name'
  ],
  [
    "queue, an option",
    () => queue("q", { shema: 1 } as Loose),
    "queue (queue q): unknown option shema. Did you mean schema?"
  ],
  [
    "retryPolicy",
    () => retryPolicy({ retries: 3 } as Loose),
    "retryPolicy: unknown option retries. Did you mean maxRetries?"
  ],
  ["deadLetterBudget", () => deadLetterBudget({ max: 0 }), "deadLetterBudget: max must be a whole number >= 1, got 0"],
  [
    "describe",
    () => describePolicy({ immediate: 11 }),
    "describe: immediate must be a whole number from 0 to 10, got 11"
  ],
  [
    "connect, an option of the broker",
    () => connect("memory:", { maxBodySize: 10 } as Loose),
    "connect: unknown option maxBodySize. If it is an option of the broker, write connect({ url, maxBodySize: … })"
  ],
  [
    "connect, an option of a consumer",
    () => connect("memory:", { concurrency: 5 } as Loose),
    "connect: unknown option concurrency. It is an option of requeue.consume"
  ],
  [
    "a member of a rate limit",
    (r) => r.consume("q", { rateLimit: { max: 1, pre: 1 } }, () => {}),
    'requeue.consume (queue q): rateLimit: unknown option pre. Did you mean per? Write per: "10 seconds"'
  ],
  [
    "send, a name",
    (r) => r.send("q", 1, { delaySeconds: 2 }),
    'requeue.send (queue q): unknown option delaySeconds. Did you mean delay? Write delay: "10 seconds"'
  ],
  [
    "send, a group of SQS",
    (r) => r.send("q", 1, { messageGroupId: "g" }),
    'requeue.send (queue q): unknown option messageGroupId. It belongs in headers. Write headers: { "message-group-id": "g" }'
  ],
  [
    "send, native options that no adapter made",
    (r) => r.send("q", 1, { native: { messageGroupId: "g" } }),
    "requeue.send (queue q): native must be an object with options of a broker, such as RabbitMqNative.make(...), got an object. " +
      'messageGroupId belongs in headers. Write headers: { "message-group-id": … }'
  ],
  [
    "send, text",
    (r) => r.send("q", 1, "2 seconds"),
    'requeue.send (queue q): options must be an object, got "2 seconds". Write { delay: "2 seconds" }'
  ],
  [
    "send, a number",
    (r) => r.send("q", 1, 2000),
    "requeue.send (queue q): options must be an object, got 2000. Write { delay: 2000 }"
  ],
  [
    "send, null",
    (r) => r.send("q", 1, null),
    "requeue.send (queue q): options must be an object, got null. Write {} for the defaults"
  ],
  [
    "send, a delay",
    (r) => r.send("q", 1, { delay: "5 secs" }),
    'send.delay: a delay is a duration from 0 to 1d (a number counts milliseconds), got "5 secs". ' + duration
  ],
  [
    "send, headers",
    (r) => r.send("q", 1, { headers: "trace" }),
    'requeue.send (queue q): headers must be a plain object with text values, got "trace"'
  ],
  ...[new Map([["a", "b"]]), new Headers({ a: "b" }), new URLSearchParams("a=b")].map(
    (headers): Wrong => [
      `send, headers of ${headers.constructor.name}`,
      (r) => r.send("q", 1, { headers }),
      `requeue.send (queue q): headers must be a plain object with text values, got a ${headers.constructor.name}. Convert it with Object.fromEntries(…)`
    ]
  ),
  ...[new Date(0), Object.create({ a: "b" }), new AbortController()].map(
    (headers: unknown, index): Wrong => [
      `sendBatch, headers that are no literal (${index})`,
      (r) => r.sendBatch("q", [{ body: 1, headers }]),
      "requeue.sendBatch (queue q): entries[0]: headers must be a plain object with text values, got an instance of a class. Copy it into a plain object: { ...value }"
    ]
  ),
  [
    "sendBatch, bodies",
    (r) => r.sendBatch("q", [{ body: 1 }, 2]),
    "requeue.sendBatch (queue q): entries[1] must be an object with a body, got 2. Write { body: message } for each message"
  ],
  [
    "sendBatch, objects",
    (r) => r.sendBatch("q", [{ total: 2 }]),
    "requeue.sendBatch (queue q): entries[0] has no body. Write { body: message } for each message"
  ],
  [
    "sendBatch, a name of an entry",
    (r) => r.sendBatch("q", [{ body: 1, dealy: 2 }]),
    'requeue.sendBatch (queue q): entries[0]: unknown option dealy. Did you mean delay? Write delay: "10 seconds"'
  ],
  [
    "sendBatch, one entry",
    (r) => r.sendBatch("q", { body: 1 }),
    "requeue.sendBatch (queue q): entries must be an array, got an object"
  ],
  [
    "sendBatch, a name",
    (r) => r.sendBatch("q", [{ body: 1 }], { id: "x" }),
    "requeue.sendBatch (queue q): unknown option id. It belongs in each entry. Write { body, id }"
  ],
  [
    "consume, no options",
    (r) => r.consume("q", handler),
    "requeue.consume (queue q): handler must be a function, after the options, got undefined. Write requeue.consume(queue, {}, handler)"
  ],
  [
    "consume, undefined",
    (r) => r.consume("q", undefined, handler),
    `requeue.consume (queue q): options must be an object, got undefined. Write {} for the defaults`
  ],
  [
    "consume, a name",
    (r) => r.consume("q", { retries: 3 }, handler),
    "requeue.consume (queue q): unknown option retries. Did you mean retry?"
  ],
  [
    "consume, a near name",
    (r) => r.consume("q", { concurency: 3 }, handler),
    "requeue.consume (queue q): unknown option concurency. Did you mean concurrency?"
  ],
  [
    "consume, an inherited name",
    (r) => r.consume("q", { constructor: 3 }, handler),
    `requeue.consume (queue q): unknown option constructor. Allowed: ${consumer}, onLimit, stackTraces, onEvent`
  ],
  [
    "consume, retry",
    (r) => r.consume("q", { retry: 5 }, handler),
    "requeue.consume (queue q): retry must be an object such as { maxRetries: 5 }, or { maxRetries: 0 } for none, got 5"
  ],
  [
    "consume, no retry",
    (r) => r.consume("q", { retry: false }, handler),
    "requeue.consume (queue q): retry must be an object such as { maxRetries: 5 }, or { maxRetries: 0 } for none, got false"
  ],
  [
    "consume, a name in retry",
    (r) => r.consume("q", { retry: { retries: 5 } }, handler),
    "requeue.consume (queue q): retry: unknown option retries. Did you mean maxRetries?"
  ],
  [
    "consume, batch",
    (r) => r.consume("q", { batch: 5 }, handler),
    "requeue.consume (queue q): batch must be an object such as { maxBatchSize: 10 }, got 5"
  ],
  [
    "consume, backoff",
    (r) => r.consume("q", { consumerBackoff: "linear" }, handler),
    'requeue.consume (queue q): consumerBackoff must be true, false, or an object such as { form: "consecutive" }, got "linear"'
  ],
  [
    "consume, a budget",
    (r) => r.consume("q", { deadLetterBudget: 5 }, handler),
    "requeue.consume (queue q): deadLetterBudget must be a budget such as { max: 100 }, got 5"
  ],
  [
    "consume, a duration",
    (r) => r.consume("q", { handlerTimeout: "5 secs" }, handler),
    'requeue.consume (queue q): handlerTimeout must be a duration from 1ms to 12h or "unlimited", got "5 secs". ' +
      duration
  ],
  [
    "consume, no duration",
    (r) => r.consume("q", { drainTimeout: "soon" }, handler),
    `requeue.consume (queue q): drainTimeout must be a duration from 0ms to 1d, got "soon". ${duration}`
  ],
  [
    "consume, a word",
    (r) => r.consume("q", { onLimit: "clam" }, handler),
    'requeue.consume (queue q): onLimit must be one of "fail", "clamp", got "clam". Did you mean "clamp"?'
  ],
  [
    "consume, a hook",
    (r) => r.consume("q", { onEvent: "log" }, handler),
    'requeue.consume (queue q): onEvent must be a function, got "log"'
  ],
  [
    "consumeBatch, a name",
    (r) => r.consumeBatch("q", { concurency: 3 }, handler),
    "requeue.consumeBatch (queue q): unknown option concurency. Did you mean concurrency?"
  ],
  [
    "puller, a name",
    (r) => r.puller("q", { leas: 3 }),
    'requeue.puller (queue q): unknown option leas. Did you mean lease? Write lease: "10 seconds"'
  ],
  [
    "puller, a range",
    (r) => r.puller("q", { maxOpen: 0 }),
    "requeue.puller (queue q): maxOpen must be a whole number from 1 to 1000, got 0"
  ],
  [
    "pull, a name",
    async (r) => (await r.puller("q")).pull({ timeout: 5 }),
    "puller.pull (queue q): unknown option timeout. Allowed: wait"
  ],
  [
    "pull, text",
    async (r) => (await r.puller("q")).pull("5 seconds"),
    'puller.pull (queue q): options must be an object, got "5 seconds". Write { wait: "5 seconds" }'
  ],
  [
    "drain",
    async (r) => (await r.puller("q")).drain("5 secs"),
    'worker.drain (queue q): timeout must be a duration from 0ms to 1d, got "5 secs". ' + duration
  ],
  [
    "close",
    (r) => r.close("5 secs"),
    'requeue.close: timeout must be a duration from 0ms to 1d, got "5 secs". ' + duration
  ],
  ["run", (r) => r.run(async () => 1), "requeue.run: effect must be an Effect, got a function"],
  ["deadLetters", (r) => lettersOf(r, undefined), "deadLetters: queue must be text, got undefined"],
  [
    "list",
    (r) => lettersOf(r, "d").list({ limt: 5 }),
    "DeadLetters.list (queue d): unknown option limt. Did you mean limit?"
  ],
  [
    "list, a number",
    (r) => lettersOf(r, "d").list(5),
    "DeadLetters.list (queue d): options must be an object, got 5. Write { limit: 5 }"
  ],
  [
    "group",
    (r) => lettersOf(r, "d").group({ limit: "5" }),
    'DeadLetters.group (queue d): limit must be a whole number >= 1, got "5"'
  ],
  [
    "redrive, a name",
    (r) => lettersOf(r, "d").redrive({ dryrun: true }),
    "DeadLetters.redrive (queue d): unknown option dryrun. Did you mean dryRun?"
  ],
  [
    "redrive, another name",
    (r) => lettersOf(r, "d").redrive({ where: handler }),
    `DeadLetters.redrive (queue d): unknown option where. Allowed: ${redrive}`
  ],
  [
    "redrive, a function",
    (r) => lettersOf(r, "d").redrive(handler),
    `DeadLetters.redrive (queue d): options must be an object, got a function. Allowed: ${redrive}`
  ],
  [
    "redrive, a kind",
    (r) => lettersOf(r, "d").redrive({ dryRun: "yes" }),
    'DeadLetters.redrive (queue d): dryRun must be true or false, got "yes"'
  ],
  [
    "purge, a name",
    (r) => lettersOf(r, "d").purge({ dryrun: true }),
    "DeadLetters.purge (queue d): unknown option dryrun. Did you mean dryRun?"
  ],
  [
    "purge, where",
    (r) => lettersOf(r, "d").purge({ where: handler }),
    "DeadLetters.purge (queue d): unknown option where. Allowed: all, filter, origin, dryRun, force, audit, signal"
  ],
  [
    "purge, reason",
    (r) => lettersOf(r, "d").purge({ reason: "permanent" }),
    "DeadLetters.purge (queue d): unknown option reason. Allowed: all, filter, origin, dryRun, force, audit, signal"
  ],
  [
    "purge, a function",
    (r) => lettersOf(r, "d").purge(() => false),
    "DeadLetters.purge (queue d): options must be an object, got a function. Allowed: all, filter, origin, dryRun, force, audit, signal"
  ],
  ...[undefined, {}, { dryRun: true }, { filter: undefined }].map(
    (options) =>
      [
        "purge, nothing said",
        (r: Loose) => lettersOf(r, "d").purge(options),
        "DeadLetters.purge (queue d): nothing says which dead letters to remove. Pass { filter } for some of them, or { all: true } for all"
      ] as const
  ),
  [
    "purge, not all",
    (r) => lettersOf(r, "d").purge({ all: false }),
    "DeadLetters.purge (queue d): all must be true, got false"
  ],
  [
    "purge, both",
    (r) => lettersOf(r, "d").purge({ all: true, filter: handler }),
    "DeadLetters.purge (queue d): give all or filter, not both"
  ],
  [
    "connect, a name",
    () => connect(MemoryBroker.layer(), { telemtry: {} } as Loose),
    "connect: unknown option telemtry. Did you mean telemetry?"
  ],
  [
    "connect, a level",
    () => connect(MemoryBroker.layer(), { logLevel: "debug" } as Loose),
    'connect: logLevel must be one of "All", "Fatal", "Error", "Warn", "Info", "Debug", "Trace", "None", got "debug". Did you mean "Debug"?'
  ],
  ["connect, a logger", () => connect(MemoryBroker.layer(), { logger: "jsno" } as Loose), `${wrongLogger}"jsno"`],
  [
    "connect, the function that makes a logger",
    () => connect(MemoryBroker.layer(), { logger: () => console } as Loose),
    `${wrongLogger}a function. Call the function first, as in pino()`
  ],
  [
    "connect, an object that is no logger",
    () => connect(MemoryBroker.layer(), { logger: { warn: () => {} } } as Loose),
    `${wrongLogger}an object`
  ],
  [
    "connect, true for a logger",
    () => connect(MemoryBroker.layer(), { logger: true } as Loose),
    `${wrongLogger}true. Leave it out: lines go to standard error by default`
  ],
  [
    "connect, telemetry",
    () => connect(MemoryBroker.layer(), { telemetry: true } as Loose),
    "connect: telemetry must be the result of OpenTelemetry.make(), or an object with the functions send and consumer, got true"
  ],
  [
    "connect, text",
    () => connect(MemoryBroker.layer(), "Debug" as Loose),
    'connect: options must be an object, got "Debug". Allowed: publishTimeout, maxPending, adapters, logger, logLevel, waitForBroker, inboxRetention, storeNamespace, store, telemetry'
  ],
  [
    "MemoryBroker",
    () => MemoryBroker.layer({ maxMessage: 5 } as Loose),
    "MemoryBroker.make: unknown option maxMessage. Did you mean maxMessages?"
  ],
  [
    "Cloudflare.producer, a name",
    (r) => Cloudflare.producer(r, { queue: "q", delivery_dealy: 5 } as Loose),
    "Cloudflare.producer (queue q): unknown option delivery_dealy. Did you mean delivery_delay?"
  ],
  [
    "a binding's send",
    (r) => Cloudflare.producer(r, "q").send(1, { delay: 5 } as Loose),
    "queue.send (queue q): unknown option delay. Allowed: contentType, delaySeconds"
  ],
  [
    "a binding's send, a number",
    (r) => Cloudflare.producer(r, "q").send(1, 5 as Loose),
    "queue.send (queue q): options must be an object, got 5. Allowed: contentType, delaySeconds"
  ],
  [
    "a binding's sendBatch",
    (r) => Cloudflare.producer(r, "q").sendBatch([1 as Loose]),
    "queue.sendBatch (queue q): messages[0] must be an object with a body, got 1. Write { body: message } for each message"
  ],
  [
    "Cloudflare.consume, a name",
    (r) => Cloudflare.consume(r, { queue: "q", max_retires: 5 } as Loose, { queue: handler }, {}),
    "Cloudflare.consume (queue q): unknown option max_retires. Did you mean max_retries?"
  ],
  [
    "Cloudflare.consume, a kind",
    (r) => Cloudflare.consume(r, { queue: "q", max_batch_size: "5" } as Loose, { queue: handler }, {}),
    'Cloudflare.consume (queue q): max_batch_size must be a whole number from 1 to 100, got "5"'
  ],
  [
    "Cloudflare.consume, a queue's name",
    (r) => Cloudflare.consume(r, { queue: "q", dead_letter_queue: "" }, { queue: handler }, {}),
    'Cloudflare.consume (queue q): dead_letter_queue must be a queue\'s name of 1 to 200 characters without broken surrogates, got ""'
  ],
  [
    "Testing.open",
    () => Testing.open({ promiseTimout: 5 } as Loose),
    "Testing.open: unknown option promiseTimout. Did you mean promiseTimeout?"
  ],
  [
    "Testing.layer",
    () => Testing.layer({ logLevel: "Debug" } as Loose),
    "Testing.layer: unknown option logLevel. Allowed: maxMessages, maxBodySize, faults, promiseTimeout"
  ]
]

it.each(rows)("%s", async (_, call, message) => {
  await using broker = await open()
  const error = await rejection(() => call(broker.requeue))
  assert.strictEqual(error.message, message)
  assert.match(error.stack!.replace(message, ""), /wrongOptions\.test\.ts/)
  await turns()
  const { delayed, inFlight, ready } = await broker.requeue.counts("q")
  assert.deepStrictEqual([ready, inFlight, delayed], [0, 0, 0])
})

it("an option of connect among those of the broker names connect", async () => {
  const error = await rejection(() => connect({ url: "memory:", waitForBroker: 5 }))
  assert.strictEqual(
    error.message,
    "waitForBroker (broker memory): unknown option. Move it to the options of connect: connect(broker, { waitForBroker: … })"
  )
})

describe("a retry with a wrong argument", () => {
  const said = async (
    argument: Loose,
    begin: (broker: VirtualBroker, retry: (call: (options: Loose) => void) => void) => Promise<unknown>
  ) => {
    await using broker = await open()
    const errors: Array<unknown> = []
    await begin(broker, (call) => {
      try {
        call(argument)
      } catch (error) {
        errors.push(error)
        throw error
      }
    })
    await broker.requeue.send("q", 1)
    await broker.advance("1 minute")
    const [letter] = await deadLetters(broker.requeue, "q.dlq").list()
    return [errors.map(String), letter?.origin?.error.message]
  }
  const options: ConsumeOptions = { retry: { maxRetries: 0 } }
  const single = (broker: VirtualBroker, retry: (call: (options: Loose) => void) => void) =>
    broker.requeue.consume("q", options, (message: Received<unknown>) => retry((given) => message.retry(given)))

  it.each<readonly [Loose, string]>([
    ["2 seconds", 'options must be an object, got "2 seconds". Write { delay: "2 seconds" }'],
    [2000, "options must be an object, got 2000. Write { delay: 2000 }"],
    [{ delaySeconds: 2 }, 'unknown option delaySeconds. Did you mean delay? Write delay: "10 seconds"'],
    [{ backoff: 0 }, "backoff must be true or false, got 0"]
  ])("fails the handler, and its error travels with the dead letter: %o", async (argument, message) => {
    const text = `message.retry: ${message}`
    assert.deepStrictEqual(await said(argument, single), [[`RangeError: ${text}`], text])
    const batch = await said(argument, (broker, retry) =>
      broker.requeue.consumeBatch("q", { ...options, batch: { maxBatchTimeout: 0 } }, (messages) =>
        retry((given) => messages.retryAll(given))
      )
    )
    const ofBatch = `batch.retryAll (queue q): ${message}`
    assert.deepStrictEqual(batch, [[`RangeError: ${ofBatch}`], ofBatch])
  })

  it("tells how a duration is written", async () => {
    const [errors] = await said({ delay: "5 secs" }, single)
    assert.match(String(errors), /InvalidDelay: message.retry.delay: .*got "5 secs". Write a number/)
  })
})

describe("a Cloudflare handler's retry", () => {
  it.each<readonly [number | string | null, number]>([
    [810_000, 86_400_000],
    [-1, 0],
    [Number.NaN, 7000],
    ["30", 30_000],
    [null, 7000]
  ])("brings delaySeconds %s into its range, so that the others of its batch go on", async (delaySeconds, delay) => {
    await using broker = await open()
    const seen: Array<number> = []
    const worker: Cloudflare.QueueWorker = {
      queue: ({ messages }) => {
        seen.push(broker.now())
        messages[0]!.retry({ delaySeconds: delaySeconds as number })
      }
    }
    await Cloudflare.consume(
      broker.requeue,
      { queue: "q", max_batch_timeout: 0, max_retries: 1, retry_delay: 7 },
      worker,
      {}
    )
    await broker.requeue.send("q", 1)
    await broker.advance(delay)
    await turns()
    assert.deepStrictEqual(seen, [0, delay])
  })

  it("is cut to what the broker can keep", async () => {
    await using broker = await open({ faults: { capabilities: { retryDelay: { native: 60_000, beyond: undefined } } } })
    await Cloudflare.consume(
      broker.requeue,
      { queue: "q", max_batch_timeout: 0 },
      { queue: (batch) => batch.retryAll({ delaySeconds: 600 }) },
      {}
    )
    await broker.requeue.send("q", 1)
    await turns()
    assert.deepStrictEqual(await broker.later("q"), [[1, 60_000]])
  })

  it("is refused when its options are no object, but never throws after its batch", async () => {
    await using broker = await open()
    const errors: Array<unknown> = []
    let late = (_options: Loose): void => assert.fail("no batch came")
    const worker: Cloudflare.QueueWorker = {
      queue: (batch) => {
        late = (options) => batch.retryAll(options)
        try {
          late("2 seconds")
        } catch (error) {
          errors.push(error)
        }
      }
    }
    await Cloudflare.consume(broker.requeue, { queue: "q", max_batch_timeout: 0 }, worker, {})
    await broker.requeue.send("q", 1)
    await turns()
    late("2 seconds")
    late({ delaySeconds: -1 })
    assert.deepStrictEqual(errors.map(String), [
      'TypeError: retry: options must be an object with delaySeconds, got "2 seconds". Write { delaySeconds: 2 }'
    ])
  })
})

describe("Testing", () => {
  it("refuses a missing handler, and a wrong wait", async () => {
    await using broker = await Testing.open()
    const requeue: Loose = broker.requeue
    const text = "requeue.consume (queue q): handler must be a function, after the options, got undefined"
    assert.strictEqual((await rejection(() => requeue.consume("q", {}))).message, text)
    const wait = await rejection(() => broker.waitUntilIdle("1 hour" as Loose))
    assert.strictEqual(
      wait.message,
      'waitUntilIdle: options must be an object, got "1 hour". Write { within: "1 hour" }'
    )
  })

  it("hands telemetry to the connection", async () => {
    const queues: Array<string> = []
    const watch = {
      onEvent: () => {},
      run: () => assert.fail("no message was sent"),
      settle: (_: Loose, settle: Loose) => settle,
      close: () => {}
    }
    const telemetry = {
      send: (_: string, messages: Loose, publish: Loose) => publish(messages),
      consumer: ({ queue }: { readonly queue: string }) => {
        queues.push(queue)
        return watch
      }
    }
    await using broker = await Testing.open({ telemetry })
    await broker.requeue.consume("q", {}, handler)
    assert.deepStrictEqual(queues, ["q"])
  })
})

it("an entry of wrangler's file is taken as it is", async () => {
  await using broker = await open()
  const requeue: Requeue = broker.requeue
  Cloudflare.producer(requeue, { binding: "ARCHIVE", queue: "q", delivery_delay: 5 })
  await Cloudflare.consume(requeue, { queue: "q", type: "worker", max_concurrency: null }, { queue: handler }, {})
})
