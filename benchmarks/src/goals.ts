/** The goals of the project, as data: what each suite must show. The names are those of the suites' cases and entries. */
import type { Goal, Limit } from "./Goal.ts"
import type { Quantity } from "./results.ts"

const atMost = (limit: number): Limit => ({ atMost: limit })
const atLeast = (limit: number): Limit => ({ atLeast: limit })

const late: Quantity = { figure: "late p99, ms" }

type Row = readonly [contender: string, quantity: Quantity, limit: Limit, against?: string]

/** Goals of one case. */
const goals = (work: string, suite: string, name: string, ...rows: ReadonlyArray<Row>): ReadonlyArray<Goal> =>
  rows.map(([contender, quantity, limit, against]) => ({
    work,
    suite,
    case: name,
    contender,
    quantity,
    limit,
    ...(against === undefined ? {} : { against })
  }))

const rabbitmq: ReadonlyArray<Goal> = [
  ...goals(
    "RabbitMQ: publish, 100 in flight",
    "rabbitmq-publish",
    "confirms, 100 in flight",
    ["requeue", "cpu", atMost(0.95), "amqplib"],
    ["requeue", "rate", atLeast(1), "amqplib"],
    ["requeue", "brokerCpu", atMost(1.1), "amqplib"],
    ["requeue", "resident", atMost(1.3), "amqplib"]
  ),
  ...goals(
    "RabbitMQ: consume, prefetch 100, warm",
    "rabbitmq-consume",
    "bytes, prefetch 100",
    ["requeue", "cpu", atMost(1), "amqplib"],
    ["requeue, batches", "cpu", atMost(0.85), "amqplib"]
  ),
  ...goals(
    "RabbitMQ: the first 10,000 messages of a process",
    "rabbitmq-cold",
    "first 10,000, prefetch 100",
    ["requeue", "cpu", atMost(1.2), "amqplib"],
    ["requeue, batches", "cpu", atMost(1.1), "amqplib"]
  ),
  ...goals(
    "RabbitMQ: consume, prefetch 10",
    "rabbitmq-windows",
    "bytes, prefetch 10",
    ["requeue", "cpu", atMost(1.1), "amqplib"],
    ["requeue, batches", "cpu", atMost(1.1), "amqplib"]
  ),
  ...goals(
    "RabbitMQ: 500 a second, 10 % fail once",
    "rabbitmq-steady",
    "10 % fail once, 1 s",
    ["requeue, ladder", late, atMost(20)],
    ["requeue, levels", late, atMost(20)]
  ),
  ...goals("RabbitMQ: a burst of 2,000 retries", "rabbitmq-retry", "all fail once, 1 s", [
    "requeue",
    late,
    atMost(1.25),
    "amqplib, wait queue by hand, at least once"
  ]),
  ...goals(
    "RabbitMQ: mixed delays, from the first message of a process",
    "rabbitmq-delays",
    "mixed delays, cold",
    ...["100", "250", "500", "1000", "2000", "5000"].map(
      (delay): Row => [
        "requeue",
        { figure: `${delay} ms: late p99, ms` },
        atMost(1.5),
        "amqplib, a wait queue for each delay, at least once"
      ]
    )
  ),
  ...goals("RabbitMQ: 1 % fail once", "rabbitmq-failing", "1 % fail once", [
    "requeue",
    "cpu",
    atMost(1.15),
    "requeue, none fails"
  ]),
  ...goals("RabbitMQ: 10,000 queues known to a producer", "rabbitmq-queues", "publish to 10,000 queues", [
    "requeue",
    "cpu",
    atMost(1.1),
    "amqplib"
  ]).map((goal) => ({ ...goal, basis: "publish to 10 queues" })),
  ...goals("RabbitMQ: 1,000,000 waiting, against 10,000", "rabbitmq-growth", "behind it 1,000,000", [
    "requeue",
    "cpu",
    atMost(1.1),
    "amqplib"
  ]).map((goal) => ({ ...goal, basis: "behind it 10,000" }))
]

const nsq: ReadonlyArray<Goal> = [
  ...goals(
    "NSQ: publish, 100 in flight",
    "nsq-publish",
    "100 in flight",
    ["requeue", "cpu", atMost(1), "nsqjs"],
    ["requeue", "rate", atLeast(1), "nsqjs"]
  ),
  ...goals(
    "NSQ: consume, 100 in flight",
    "nsq-consume",
    "bytes, 100 in flight",
    ["requeue", "cpu", atMost(0.9), "nsqjs"],
    ["requeue, batches", "cpu", atMost(0.9), "nsqjs"]
  ),
  ...goals(
    "NSQ: consume, 10 in flight",
    "nsq-windows",
    "bytes, 10 in flight",
    ["requeue", "cpu", atMost(1.1), "nsqjs"],
    ["requeue, batches", "cpu", atMost(1.1), "nsqjs"]
  )
]

const calls: Quantity = { figure: "calls per delivery" }

const sqs: ReadonlyArray<Goal> = ["1 poll at a time", "4 polls at a time"].flatMap((name) =>
  goals(
    `SQS: ${name}`,
    "sqs-consume",
    name,
    ["requeue", calls, atMost(0.21)],
    ["requeue, batches", calls, atMost(0.21)],
    ["requeue", "rate", atLeast(2), "sqs-consumer"],
    ["requeue, batches", "rate", atLeast(0.97), "SDK, batches by hand"]
  )
)

const others = ["pg-boss", "graphile-worker", "BullMQ"]

/** Against each of the other libraries that can do it. */
const againstAll = (name: string, against: ReadonlyArray<string> = others): ReadonlyArray<Goal> =>
  goals(
    `PostgreSQL: ${name}`,
    "postgres",
    name,
    ...against.map((other): Row => ["requeue", "rate", atLeast(1.5), other])
  )

const postgres: ReadonlyArray<Goal> = [
  ...againstAll("send, 1 in flight"),
  ...againstAll("send, 100 in flight"),
  ...againstAll("send batches of 100"),
  ...againstAll("consume, 100 in progress"),
  ...againstAll("consume batches of 100", ["pg-boss"]),
  ...goals(
    "PostgreSQL: from a send to its handler",
    "postgres",
    "send and consume, 200 a second",
    ...others.map((other): Row => ["requeue", { figure: "p99, ms" }, atMost(1), other])
  )
]

const inProcess: ReadonlyArray<Goal> = [
  ...goals("memory: single promise handlers", "memory", "promise handlers, 64 at a time", [
    "requeue",
    "rate",
    atLeast(0.75),
    "fastq"
  ]).map((goal) => ({ ...goal, or: atLeast(2_000_000) })),
  ...goals("memory: 1,000,000 waiting, against 10,000", "growth", "memory broker", [
    "behind it 1,000,000",
    "cpu",
    atMost(1.1),
    "behind it 10,000"
  ]),
  ...goals("memory: each message of a batch acked", "batches", "each message acked", [
    "batches of 100",
    "cpu",
    atMost(1.1),
    "batches of 10"
  ]),
  ...goals("memory: 10,000 queues known to a producer", "memory-scaling", "queues of a producer", [
    "10,000",
    "cpu",
    atMost(1.1),
    "10"
  ]),
  ...goals("telemetry off, against code without it", "telemetry-off", "consume", [
    "off",
    "cpu",
    atMost(1.05),
    "without"
  ]),
  ...goals("import of @requeue/core/promise", "startup", "load", [
    "@requeue/core/promise",
    { figure: "import, ms" },
    atMost(1.15),
    "effect/Effect"
  ])
]

export const all: ReadonlyArray<Goal> = [...rabbitmq, ...nsq, ...sqs, ...postgres, ...inProcess]
