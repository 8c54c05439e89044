import { type Entries, entries, type Job } from "../Contender.ts"
import type { Suite, VenueName } from "../Suite.ts"

const [rabbitmq, nsq, sqs, redis] = [entries("rabbitmq"), entries("nsq"), entries("sqs"), entries("redis")]

/** The rates are about 10, 50 and 90 % of what the baseline sends and handles in one process on two cores. */
const suite = (venue: VenueName, rates: ReadonlyArray<number>, all: Entries, job: Job = {}): Suite => ({
  name: `${venue === "redis" ? "peers" : venue}-transit`,
  summary: `from send to handler, in one process, at ${rates.map((rate) => rate.toLocaleString("en")).join(", ")} messages a second`,
  byDefault: venue !== "redis",
  venue,
  rounds: 3,
  cases: (size) =>
    rates.map((perSecond) => ({
      name: `${perSecond.toLocaleString("en")} a second`,
      messages: size(perSecond * 10),
      warmUp: size(perSecond * 2),
      job: { perSecond, size: 256, filled: false, ...job },
      entries: all
    }))
})

export const rabbitmqTransit = suite(
  "rabbitmq",
  [500, 2500, 4500],
  [
    rabbitmq("transit", "amqplib"),
    rabbitmq("transitAtOnce", "amqplib", "amqplib, noDelay"),
    rabbitmq("transit", "requeue"),
    rabbitmq("transit", "rabbitmqClient", "rabbitmq-client")
  ]
)

export const nsqTransit = suite("nsq", [2000, 10_000, 18_000], [nsq("transit", "nsqjs"), nsq("transit", "requeue")])

export const sqsTransit = suite(
  "sqs",
  [50, 250, 450],
  [sqs("transit", "awsSdk", "SDK"), sqs("transit", "requeue"), sqs("transit", "sqsConsumer", "sqs-consumer")],
  { polls: 4 }
)

/** A reference, like the suite of peers: another broker with other promises. */
export const peersTransit = suite(
  "redis",
  [500, 2500],
  [rabbitmq("transit", "requeue"), redis("transit", "bullmq", "BullMQ")]
)
