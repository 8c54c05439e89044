/**
 * The tables of the page. `file` and `type` name the declaration of the options. `kinds` is the constant that rejects wrong ones,
 * in `file` or `kindsIn`. Defaults are read from `file` and `code`, or from its constant `defaults`. `like` is an earlier table,
 * whose rows are not repeated.
 */
const core = (path) => `packages/core/src/${path}.ts`
const internal = core("faces/internal/options")

const connect = {
  title: "`connect(broker, options)`",
  file: internal,
  type: "ConnectOptions",
  kinds: "connectKinds",
  code: [core("faces/internal/layerOf")]
}
const consume = {
  title: "`consume(queue, options, handler)`, `consumeBatch`, `Consumer.start`",
  file: internal,
  type: "ConsumeOptions",
  kinds: "consumeKinds",
  code: [core("consume/Consumer")]
}

export const groups = [
  {
    title: "Connect and send",
    tables: [
      connect,
      {
        title: "`send(queue, body, options)`, and each entry of `sendBatch`",
        file: core("produce/internal/checks"),
        type: "SendOptions",
        kinds: "sendKinds"
      },
      { title: "`queue(name, options)`", file: core("message/QueueDefinition"), type: "Options", kinds: "kinds" },
      {
        title: "`Producer.make(queue, options)`",
        file: core("produce/internal/limits"),
        type: "Options",
        kinds: "kinds",
        like: connect
      }
    ]
  },
  {
    title: "Consume",
    tables: [
      consume,
      {
        title: "`puller(queue, options)`, `Puller.make`",
        file: internal,
        type: "PullerOptions",
        kinds: "pullerKinds",
        like: consume
      },
      { title: "`pull(options)`", file: core("consume/Puller"), type: "PullOptions", kinds: "pullKinds" }
    ]
  },
  {
    title: "Policies",
    tables: [
      {
        title: "`retry`: `RetryPolicy.make(options)`",
        file: core("policy/RetryPolicy"),
        type: ["Limit", "Options"],
        kinds: "kinds"
      },
      { title: "`retry.backoff`: options of every backoff", file: core("policy/Backoff"), type: "ExponentialOptions" },
      { title: "`retry.classify`", file: core("policy/Classifier"), type: "Options" },
      { title: "`retry.deadLetter`", file: core("policy/DeadLetterRouting"), type: "Options" },
      {
        title: "`batch`: `BatchPolicy.make(options)`",
        file: core("policy/BatchPolicy"),
        type: "Options",
        kinds: "kinds"
      },
      {
        title: "`consumerBackoff`: `ConsumerBackoff.make(options)`",
        file: core("policy/ConsumerBackoff"),
        type: ["Options", "ConsecutiveOptions", "RatioOptions"],
        kinds: "kinds"
      },
      {
        title: "`rateLimit`: `RateLimit.make(options)`",
        file: core("policy/RateLimit"),
        type: "Options",
        kinds: "kinds"
      },
      {
        title: "`shareLimits`: `ShareLimits.make(options)`",
        file: core("policy/ShareLimits"),
        type: "Options",
        kinds: "kinds"
      },
      { title: "`deadLetterBudget`", file: core("policy/DeadLetterBudget"), type: "Options", kinds: "kinds" }
    ]
  },
  {
    title: "Brokers",
    tables: [
      {
        title: "Memory",
        file: "packages/adapter-memory/src/Options.ts",
        type: "Options",
        kinds: "kinds",
        more: "../packages/adapter-memory"
      },
      {
        title: "SQLite",
        file: "packages/adapter-sqlite/src/SqliteOptions.ts",
        type: "Options",
        kinds: "fields",
        more: "../packages/adapter-sqlite"
      },
      {
        title: "PostgreSQL",
        file: "packages/adapter-postgres/src/PostgresOptions.ts",
        type: "Options",
        kinds: "fields",
        more: "../packages/adapter-postgres"
      },
      ...[
        ["RabbitMQ", "rabbitmq", "RabbitMqOptions"],
        ["NSQ", "nsq", "NsqOptions"],
        ["SQS", "sqs", "SqsOptions"]
      ].map(([title, folder, module]) => ({
        title,
        file: `packages/adapter-${folder}/src/${module}.ts`,
        type: "Options",
        kinds: "fields",
        kindsIn: `packages/adapter-${folder}/src/${folder === "sqs" ? module : "internal/fields"}.ts`,
        defaults: "defaults",
        more: `${folder}.md`
      }))
    ]
  }
]
