/** Settings that are changed while messages come in: the path that docs/rabbitmq.md describes, followed under load. */
import { Backoff, type Broker, Consumer, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, describe, test } from "vitest"
import { clean, stale } from "../../src/clean.ts"
import type { RabbitMqOptions } from "../../src/index.ts"
import { server } from "../real/server.ts"
import { consume, no, raw, type Run } from "./traps/trap.ts"
import { drainIds, on, outgoing, queueName, reasonOf, until } from "../world.ts"

const { broker, url } = await server()
const management = broker.managementUrl

type Changed = (prefix: string) => RabbitMqOptions.Options

const changes: ReadonlyArray<readonly [string, Changed]> = [
  ["a smaller delivery limit", () => ({ deliveryLimit: 50 })],
  ["a larger delivery limit", () => ({ deliveryLimit: 5000 })],
  ["another prefix", (prefix) => ({ prefix: `${prefix}-2` })],
  ["another type of queue", () => ({ queueType: "classic" })],
  ["all of these", (prefix) => ({ deliveryLimit: 50, prefix: `${prefix}-2`, queueType: "classic" })]
]

/** Each message fails once at once, then with a delay, and then succeeds; every tenth is given up. */
const retry = RetryPolicy.make({ maxRetries: 2, backoff: Backoff.sequence([0, 400]) })
const isLost = (id: string): boolean => Number(id.slice(1)) % 10 === 0

const handler =
  (ends: Set<string>) =>
  ({ attempts, id }: { readonly attempts: number; readonly id: string }) => {
    if (attempts < 3 || isLost(id)) return no()
    ends.add(id)
    return undefined
  }

/** Sends until it is told to stop. */
const sending = (one: Broker.Service, queue: string, sent: Array<string>, isOver: () => boolean) =>
  Effect.gen(function* () {
    while (!isOver()) {
      const id = `m${sent.length}`
      sent.push(id)
      yield* one.publish([outgoing(queue, id, sent.length % 5 === 0 ? { delay: 700 } : {})])
      yield* Effect.sleep(3)
    }
  })

/**
 * A program with these settings, which consumes and sends until it is told to stop; it ends when `isDone`. Programs that
 * run at the same time share their books.
 */
const program = (
  options: RabbitMqOptions.Options,
  { ends, queue, runs, sent }: Books,
  isSending: () => boolean,
  isDone: () => boolean
) =>
  on(options, (one) =>
    Effect.gen(function* () {
      yield* consume(queue, runs, { retry, concurrency: 20 }, handler(ends))
      yield* sending(one, queue, sent, () => !isSending())
      yield* until(() => `the end of a program, after ${ends.size} of ${sent.length} messages`, isDone)
    })
  )

interface Books {
  readonly queue: string
  readonly sent: Array<string>
  readonly runs: Array<Run>
  readonly ends: Set<string>
}

const seen = (what: string, is: () => boolean) => Effect.runPromise(until(what, is))

describe.concurrent("the settings of a queue that is in use become", () => {
  test.each(changes)("%s, and its books balance", { timeout: 120_000 }, async (_, changed) => {
    const [queue, prefix] = [queueName("changed"), queueName("p").slice(0, 20)]
    const former = { url, prefix }
    const later = { ...former, ...changed(prefix) }
    const books: Books = { queue, sent: [], runs: [], ends: new Set() }
    const { ends, sent } = books
    let phase = 0
    const all = () => sent.filter((id) => !isLost(id)).every((id) => ends.has(id))
    // As in a rolling deployment: the later program starts while the former one runs, which then ends.
    const older = program(
      former,
      books,
      () => phase < 2,
      () => true
    )
    await seen("ends of the former program", () => ends.size > 30)
    const newer = program(later, books, () => phase < 3, all)
    await seen("a second program", () => ends.size > 100)
    phase = 2
    await older
    const before = ends.size
    await seen("ends of the later program alone", () => ends.size > before + 50)
    phase = 3
    await newer
    const lost = new Set(sent.filter(isLost))
    const letters = new Set<string>()
    const gathered = until(
      () => `${lost.size} dead letters, there were ${letters.size}`,
      async () => {
        for (const id of await drainIds(url, `${queue}.dlq`)) letters.add(id)
        return letters.size === lost.size
      }
    )
    await Effect.runPromise(gathered)
    assert.deepStrictEqual(letters, lost)
    for (const id of sent) {
      const attempts = books.runs.filter((run) => run.id === id).map((run) => run.attempts)
      // What the former program had taken and not run when it ended may be counted, also more than once; nothing is counted
      // too low.
      assert.isAtLeast(attempts.length, 1, `runs of ${id}`)
      assert.deepStrictEqual(
        attempts,
        [...new Set(attempts)].toSorted((a, b) => a - b),
        `attempts of ${id}`
      )
    }
    assert.strictEqual((await raw(url, (channel) => channel.checkQueue(queue))).messageCount, 0)
    if (management === undefined || later.prefix === undefined || later.prefix === prefix) return
    // What the former prefix has left is removed; the queue still leads its own dead letters there.
    const options = { ...later, management }
    const whole = { isWhole: true, prefix }
    const report = await Effect.runPromise(clean([{ queue, retry }], options, whole))
    assert.deepStrictEqual(
      report.objects.filter(({ outcome }) => outcome === "kept"),
      []
    )
    assert.include(
      report.objects.map(({ name }) => name),
      `${prefix}.v1.deliver`
    )
    await raw(url, (channel) => channel.checkExchange(`${prefix}.v1.dead`))
    assert.deepStrictEqual((await Effect.runPromise(stale([{ queue, retry }], options, whole))).objects, [])
  })
})

test("another dead-letter queue gets the letters, and the server's own once clean has removed the former binding", async () => {
  const [queue, prefix] = [queueName("letters"), queueName("p").slice(0, 20)]
  const options = { url, prefix, ...(management === undefined ? {} : { management }) }
  const named = (name: string) => RetryPolicy.make({ deadLetter: { queue: name } })
  for (const name of ["old", "new"])
    await on(options, () => Consumer.start(queue, { retry: named(`${queue}.${name}`) }, () => {}))
  if (management === undefined) return
  const requests = [{ queue, retry: named(`${queue}.new`) }]
  const binding = `${prefix}.v1.dead -> ${queue}.old`
  const { objects } = await Effect.runPromise(stale(requests, options))
  assert.deepStrictEqual(
    objects.map(({ name }) => name),
    [binding]
  )
  await Effect.runPromise(clean(requests, options))
  await raw(url, async (channel) =>
    channel.publish(`${prefix}.v1.dead`, queue, Buffer.from("x"), { messageId: "given up" })
  )
  assert.deepStrictEqual(await drainIds(url, `${queue}.old`), [])
  assert.deepStrictEqual(await drainIds(url, `${queue}.new`), ["given up"])
})

test("arguments that no settings of ours explain are refused as before", async () => {
  const queue = queueName("theirs")
  await raw(url, (channel) =>
    channel.assertQueue(queue, { arguments: { "x-queue-type": "quorum", "x-delivery-limit": 50 } })
  )
  const error = await on({ url }, (one) => Effect.flip(one.publish([outgoing(queue, "a")])))
  assert.strictEqual(reasonOf(error), "QueueMismatch")
})

test(
  "classic queues that were made before their type was written are used as they are",
  { timeout: 120_000 },
  async () => {
    const [queue, prefix] = [queueName("untyped"), queueName("p").slice(0, 20)]
    const settings = { url, prefix, queueType: "classic" } as const
    const dead = { "x-dead-letter-exchange": `${prefix}.v1.dead` }
    const rung = { "x-message-ttl": 400, "x-dead-letter-exchange": `${prefix}.v1.deliver` }
    await raw(url, async (channel) => {
      for (const name of [queue, `${queue}.dlq`])
        await channel.assertQueue(name, { arguments: { ...dead, "x-dead-letter-routing-key": name } })
      await channel.assertQueue(`${prefix}.v1.c.undelivered`)
      await channel.assertQueue(`${prefix}.v1.c.delay.400`, { arguments: rung })
    })
    const runs: Array<Run> = []
    await on(settings, (one) =>
      Effect.gen(function* () {
        yield* consume(queue, runs, { retry }, handler(new Set()))
        yield* one.publish([outgoing(queue, "m1")])
        yield* until("all of its runs", () => runs.length === 3)
      })
    )
  }
)
