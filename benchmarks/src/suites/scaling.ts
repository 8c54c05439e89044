import { entries, type Entries, type Job } from "../Contender.ts"
import type { Case, Suite, VenueName } from "../Suite.ts"

const usual = { queue: "work", inFlight: 100, queues: 1, headers: 0, size: 256, filled: false }

/** Values of one number in a job, the others as usual. */
interface Dimension extends Pick<Case, "messages" | "warmUp"> {
  readonly name: string
  readonly workload?: "roundTrips" | "sends"
  readonly values: readonly [number, ...Array<number>]
  readonly job: (value: number) => Job
}

const dimensions: ReadonlyArray<Dimension> = [
  {
    name: "in flight",
    messages: 12_000,
    warmUp: 4000,
    values: [100, 1, 10, 1000, 10_000],
    job: (inFlight) => ({ inFlight })
  },
  {
    name: "queues of a producer",
    workload: "sends",
    messages: 10_000,
    warmUp: 10_000,
    values: [10, 1, 100, 1000, 10_000],
    job: (queues) => ({ queues })
  },
  {
    name: "consumers of a process",
    messages: 20_000,
    warmUp: 10_000,
    values: [10, 1, 100, 1000],
    job: (queues) => ({ queues, inFlight: queues * 10, isConsumed: true })
  },
  {
    name: "bytes of a body",
    messages: 1000,
    warmUp: 500,
    values: [1000, 10_000, 100_000, 1_000_000],
    job: (size) => ({ size, inFlight: 10 })
  },
  { name: "headers", messages: 5000, warmUp: 2000, values: [10, 0, 50], job: (headers) => ({ headers }) }
]

/** The cost of a message must not grow faster than what grows. */
const scaling = (broker: string, venue?: VenueName, mostQueues = 10_000): Suite => ({
  name: `${broker}-scaling`,
  summary: "cost per message with 1 to 10,000 in flight, queues and consumers, up to 1 MB and 50 headers",
  byDefault: false,
  venue,
  rounds: 2,
  inOneTable: true,
  cases: (size) =>
    dimensions.map(({ job, messages, name, values, warmUp, workload = "roundTrips" }) => ({
      name,
      messages: size(messages),
      warmUp: size(warmUp),
      job: usual,
      entries: values
        .filter((value) => Number(job(value)["queues"] ?? 1) <= mostQueues)
        .map((value) =>
          entries(broker)(workload, "requeue", value.toLocaleString("en"), job(value))
        ) as unknown as Entries // values has one at least
    }))
})

export const scalings: ReadonlyArray<Suite> = [
  scaling("memory"),
  scaling("sqlite"),
  scaling("postgres", "postgres"),
  scaling("rabbitmq", "rabbitmq"),
  // nsqd writes the list of all its topics whenever it gets another, so more take it minutes.
  scaling("nsq", "nsq", 1000),
  scaling("sqs", "sqs")
]
