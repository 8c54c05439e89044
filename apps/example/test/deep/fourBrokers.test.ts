/**
 * The example's handler on all brokers. Of everything that makes a run, one value differs: `broker` of the config
 * file, here by REQUEUE_BROKER. What happened to each message, in which order, is then the same on all of them.
 */
import { fileURLToPath } from "node:url"
import { start } from "@requeue/brokers"
import { loadConfig } from "@requeue/config"
import type { Event } from "@requeue/core/promise"
import { beforeAll, describe, expect, test } from "vitest"
import { makeHandler } from "../../src/handler.ts"
import { turn } from "../../src/ledger.ts"
import { webhook } from "../../src/payloads.ts"
import { type Receiver, startReceiver } from "../../src/receiver.ts"
import { inTime } from "../deadline.ts"

const file = fileURLToPath(new URL("../../requeue.config.yaml", import.meta.url))

/** With these, subscribers misbehave in every way that they know. */
const seed = 73
const webhooks = Array.from({ length: 40 }, (_, index) => webhook(seed, index))

const secret = "a secret of this test"

/** An event with all its fields. */
type Step = Readonly<Record<string, unknown>>

/** The steps of each message in their order. */
type Trail = Readonly<Record<string, ReadonlyArray<Step>>>

/**
 * The one field that time decides: how far away the date of a Retry-After is depends on when the answer came. It is held
 * to the 3 seconds in which the subscriber's dates lie; every other delay is compared to the millisecond.
 */
const timeless = (event: Event): Step => {
  if (event._tag !== "RetryScheduled" || event.error?.message !== "crm answered 503") return { ...event }
  return { ...event, delay: event.delay <= 3000 ? "until its date" : event.delay }
}

/** One run of the program that the config file and this environment make. */
const run = async (receiver: Receiver, environment: Readonly<Record<string, string>>): Promise<Trail> => {
  const { connect, queue } = await loadConfig({ file, environment })
  const deliveries = queue("deliveries")
  const events: Array<Event> = []
  const left = new Set(webhooks.map(({ id }) => id))
  const allEnded = Promise.withResolvers<void>()
  const onEvent = (event: Event): void => {
    events.push(event)
    if (event._tag === "Succeeded" || event._tag === "DeadLettered") left.delete(event.id)
    if (left.size === 0) allEnded.resolve()
  }

  await using requeue = await connect(undefined, { logLevel: "None" })
  const handler = makeHandler({ secret, urlOf: receiver.urlOf })
  const consumer = await requeue.consume(deliveries, { ...deliveries.options, onEvent }, handler)
  await requeue.sendBatch(deliveries, webhooks)
  await inTime(allEnded.promise, () => `on ${environment["REQUEUE_BROKER"]}, the end of ${[...left].join(", ")}`)
  await consumer.drain()
  const trails = Object.groupBy(events, (event) => ("id" in event ? event.id : "no message"))
  return Object.fromEntries(Object.entries(trails).map(([id, trail = []]) => [id, trail.map(timeless)]))
}

const real = ["postgres", "rabbitmq", "nsq", "sqs"] as const

/** The trails of seven runs at the same time, which share nothing but the receiver. */
const runAll = async () => {
  await using receiver = await startReceiver({ secret, seed })
  const started = await Promise.all(real.map((name) => start(name)))
  // What the config file wants to know: RABBITMQ_URL and so on.
  const urls = Object.fromEntries(real.map((name, index) => [`${name.toUpperCase()}_URL`, started[index]!.url]))
  try {
    const [memory, sqlite, postgres, rabbitmq, nsq, sqs, fewerRetries] = await Promise.all([
      run(receiver, { REQUEUE_BROKER: "memory" }),
      run(receiver, { SQLITE_URL: "sqlite::memory:", REQUEUE_BROKER: "sqlite" }),
      run(receiver, { ...urls, REQUEUE_BROKER: "postgres" }),
      run(receiver, { ...urls, REQUEUE_BROKER: "rabbitmq" }),
      run(receiver, { ...urls, REQUEUE_BROKER: "nsq" }),
      run(receiver, { ...urls, REQUEUE_BROKER: "sqs" }),
      run(receiver, { REQUEUE_BROKER: "memory", REQUEUE_QUEUES_DELIVERIES_RETRY_MAX_RETRIES: "2" })
    ])
    const answers = new Set(receiver.visits.map(({ answer }) => answer))
    const stalls = receiver.visits.filter(({ answer }) => answer === "Stall")
    const unanswered = [...new Set(stalls.map(({ attempt, id }) => turn(id, attempt)))].toSorted()
    return { memory, sqlite, postgres, rabbitmq, nsq, sqs, fewerRetries, answers, unanswered }
  } finally {
    await Promise.all(started.map((broker) => broker.dispose()))
  }
}

describe("the example's handler on all brokers", () => {
  let trails: Awaited<ReturnType<typeof runAll>>

  beforeAll(async () => {
    trails = await runAll()
    // Each wait has a deadline of its own, and says what it waited for.
  }, 30 * 60_000)

  test.each(["sqlite", ...real] as const)("the audit trail of every message on %s is that on memory", (broker) => {
    expect(trails[broker]).toEqual(trails.memory)
  })

  test("the trails have all that can happen to a webhook", () => {
    expect(Object.keys(trails.memory).toSorted()).toEqual(webhooks.map(({ id }) => id).toSorted())
    expect([...trails.answers].toSorted()).toEqual(["Accept", "Busy", "Fail", "Gone", "HangUp", "Stall"])
    const seen = (fields: object) =>
      expect(Object.values(trails.memory).flat()).toContainEqual(expect.objectContaining(fields))
    for (const delay of [500, 1000, 2000, "until its date"]) seen({ _tag: "RetryScheduled", delay })
    seen({ _tag: "Succeeded", attempts: 3 })
    seen({ _tag: "DeadLettered", attempts: 1, reason: "permanent", target: "deliveries.dlq" })
    seen({ _tag: "DeadLettered", attempts: 4, reason: "retries-exhausted", target: "deliveries.dlq" })
  })

  test("who never answers is timed out, and nobody else", () => {
    const timedOut = Object.values(trails.memory)
      .flat()
      .filter(({ _tag, error }) => _tag === "AttemptFailed" && (error as Error).name === "HandlerTimeout")
    expect(timedOut.map(({ attempts, id }) => turn(String(id), Number(attempts))).toSorted()).toEqual(trails.unanswered)
  })

  test("a value of the policy that differs is seen, in the messages that it concerns and in no other", () => {
    const differing = Object.keys(trails.memory).filter(
      (id) => JSON.stringify(trails.memory[id]) !== JSON.stringify(trails.fewerRetries[id])
    )
    const beyond = Object.keys(trails.memory).filter((id) => trails.memory[id]!.some(({ attempts }) => attempts === 4))
    expect(differing).toEqual(beyond)
    expect(beyond).not.toEqual([])
  })
})
