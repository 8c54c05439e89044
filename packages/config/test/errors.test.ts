/** A bad file: each error shows its path in the file and what to do. */
import { Broker, BrokerError } from "@requeue/core"
import { Direct } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { execFile } from "node:child_process"
import { inspect, promisify } from "node:util"
import { assert, describe, it } from "vitest"
import { Configuration, ConfigFileError } from "../src/index.ts"
import { mask } from "../src/internal/masking.ts"
import { complaints, folder, sound } from "./folder.ts"

const file = "requeue.config.yaml: "

const cases: ReadonlyArray<readonly [what: string, yaml: string, expected: ReadonlyArray<string>]> = [
  [
    "an unknown key",
    "brokers: { main: 'memory:' }\nqueues: { orders: { retry: { maxRetires: 5 } } }",
    ["queues.orders.retry.maxRetires: unknown key. Did you mean maxRetries?"]
  ],
  [
    "keys that belong in retry",
    "brokers: { main: 'memory:' }\nqueues: { w: { maxRetries: 5, deadLetter: w.dead, backoff: { type: linear, step: 1 } } }",
    [
      "queues.w.maxRetries: unknown key: maxRetries belongs in retry. Write retry: { maxRetries: 5 }",
      'queues.w.deadLetter: unknown key: deadLetter belongs in retry. Write retry: { deadLetter: "w.dead" }',
      "queues.w.backoff: unknown key: backoff belongs in retry. Write retry: { backoff: … }"
    ]
  ],
  [
    "keys that belong in a backoff",
    "brokers: { main: 'memory:' }\npolicies: { a: { delay: 5 seconds }, b: { factor: 3 }, c: { jitter: full } }",
    [
      'policies.a.delay: unknown key: delay belongs in backoff. Write backoff: { type: "constant", delay: "5 seconds" }',
      'policies.b.factor: unknown key: factor belongs in backoff. Write backoff: { type: "exponential", base: …, factor: 3 }',
      'policies.c.jitter: unknown key: jitter belongs in backoff. Write backoff: { type: …, jitter: "full" }'
    ]
  ],
  [
    "a key that belongs in batch",
    "brokers: { main: 'memory:' }\nqueues: { w: { maxBatchSize: 5 } }",
    ["queues.w.maxBatchSize: unknown key: maxBatchSize belongs in batch. Write batch: { maxBatchSize: 5 }"]
  ],
  [
    "two queues that are one, with different policies",
    "brokers: { main: 'memory:' }\nqueues: { w: { name: x, retry: { maxRetries: 1 } }, v: { name: x } }",
    [
      "queues.v.name: w and v are both the queue x on main, with different retry policies. " +
        "Set the same retry for both queues, or another name for one queue"
    ]
  ],
  [
    "an unknown key at the top",
    "broker: main\nbrokers: { main: 'memory:' }\nqueue: {}",
    ["queue: unknown key. Did you mean queues?"]
  ],
  [
    "an option of connect at the top",
    "brokers: { main: 'memory:' }\nlogger: json\nlogLevel: Info",
    [
      "logger: a config file cannot have this option of connect. Remove the option, and write connect(undefined, { logger: … }) in the program",
      "logLevel: a config file cannot have this option of connect. Remove the option, and write connect(undefined, { logLevel: … }) in the program"
    ]
  ],
  [
    "a time to wait for the broker at the top",
    "brokers: { main: 'memory:' }\nwaitForBroker: 1 minute",
    [
      "waitForBroker: this option belongs in a broker of the config file. Write brokers: { NAME: { url: …, waitForBroker: … } }"
    ]
  ],
  [
    "a store at the top",
    "brokers: { main: 'memory:' }\nstore: db",
    ["store: this option belongs in a broker of the config file. Write brokers: { NAME: { url: …, store: … } }"]
  ],
  [
    "stores that are no other broker, or have a store",
    "broker: a\nbrokers: { a: { url: 'memory:', store: bb }, b: { url: 'memory:', store: b }, " +
      "c: { url: 'memory:', store: d }, d: { url: 'memory:', store: e }, e: 'memory:', f: { url: 'memory:', store: 'postgres://me:hunter2@host' } }",
    [
      "brokers.a.store: there is no broker named bb. Did you mean b?",
      "brokers.f.store: the value must be the name of a broker, got a URL. Allowed: a, b, c, d, e, f. To change the URL of a broker, set REQUEUE_BROKERS_<NAME>_URL",
      "brokers.b.store: a broker cannot be its own store. Write the name of another broker, or remove store: the transactions of a database need none",
      "brokers.c.store: the store d has a store. Remove store from brokers.d, or write the name of another broker"
    ]
  ],
  [
    "brokers with the same store",
    "broker: a\nbrokers: { a: { url: 'memory:', store: c }, b: { url: 'memory:', store: c }, c: 'memory:' }",
    [
      "brokers.a.store: b has the same store, so the relay of one broker would publish the messages of the other. Write a storeNamespace for one of them, which has not used the store yet",
      "brokers.b.store: a has the same store, so the relay of one broker would publish the messages of the other. Write a storeNamespace for one of them, which has not used the store yet"
    ]
  ],
  [
    "retentions of an inbox that is none, and that is short",
    "broker: a\nbrokers: { a: { url: 'memory:', inboxRetention: 60 days }, b: { url: 'memory:', store: a, inboxRetention: 5 } }",
    [
      "brokers.b.inboxRetention: must be a duration of at least 1h, or Infinity, got 5",
      "brokers.a.inboxRetention: without store, this option has no effect. Write it next to store, or remove it"
    ]
  ],
  [
    "a namespace of no store, and one that is none",
    "broker: a\nbrokers: { a: { url: 'memory:', storeNamespace: eu }, b: { url: 'memory:', store: a, storeNamespace: 'e u' } }",
    [
      'brokers.b.storeNamespace: must be 1 to 64 letters, digits, - and _, got "e u"',
      "brokers.a.storeNamespace: without store, this option has no effect. Write it next to store, or remove it"
    ]
  ],
  [
    "times to wait for brokers that are none",
    "broker: a\nbrokers: { a: { url: 'memory:', waitForBroker: -1 }, b: { url: 'memory:', waitForBroker: soon } }",
    [
      "brokers.a.waitForBroker: must be a duration from 0ms to 1d, got -1",
      'brokers.b.waitForBroker: must be a duration from 0ms to 1d, got "soon". ' +
        'Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'
    ]
  ],
  [
    "a time to wait for a broker from a variable that is not set",
    "brokers: { main: { url: 'memory:', waitForBroker: '${WAIT}' } }",
    ["brokers.main.waitForBroker: the environment variable WAIT is not set. Set WAIT"]
  ],
  [
    "a wrong unit",
    "brokers: { main: 'memory:' }\npolicies: { slow: { backoff: { type: constant, delay: 5 secs } } }",
    [
      'policies.slow.backoff.delay: must be a duration from 0ms to 1d, got "5 secs". ' +
        'Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'
    ]
  ],
  [
    "a wrong unit of a consumer's option",
    "brokers: { main: 'memory:' }\nqueues: { orders: { handlerTimeout: 3 fortnights } }",
    [
      'queues.orders.handlerTimeout: must be a duration from 1ms to 12h or "unlimited", got "3 fortnights". ' +
        'Write a number of milliseconds, or text such as "10 seconds" or "5 minutes"'
    ]
  ],
  [
    "a wrong type",
    "brokers: { main: 'memory:' }\nqueues: { orders: { concurrency: many } }",
    ['queues.orders.concurrency: must be a number, got "many"']
  ],
  [
    "a number out of range",
    "brokers: { main: 'memory:' }\nqueues: { orders: { batch: { maxBatchSize: 500 }, concurrency: 0 } }",
    [
      "queues.orders.batch.maxBatchSize: must be a whole number from 1 to 100, got 500",
      "queues.orders.concurrency: must be a whole number from 1 to 1000, got 0"
    ]
  ],
  [
    "every kind at once",
    "brokers: { main: 'memory:' }\npolicies: { p: { maxRetries: -1 } }\n" +
      "queues: { a: { retry: q, concurrency: many }, b: { concurrency: 0, prefetch: -1, handlerTimeout: x }, c: { broker: mian } }",
    [
      'policies.p.maxRetries: must be a whole number >= 0 or "unlimited", got -1',
      'queues.a.concurrency: must be a number, got "many"',
      "queues.a.retry: there is no policy named q",
      "queues.c.broker: there is no broker named mian. Did you mean main?",
      "queues.b.concurrency: must be",
      "queues.b.prefetch: must be",
      "queues.b.handlerTimeout: must be"
    ]
  ],
  [
    "a default broker that is none, which hides no problem and makes none",
    "broker: mian\nbrokers: { main: 'memory:', spare: 'memory:' }\nqueues: { orders: { concurrency: 0 } }",
    [
      "broker: there is no broker named mian. Did you mean main?",
      "queues.orders.concurrency: must be a whole number from 1 to 1000, got 0"
    ]
  ],
  [
    "an unknown policy",
    "brokers: { main: 'memory:' }\npolicies: { patient: {} }\nqueues: { orders: { retry: patiant } }",
    ["queues.orders.retry: there is no policy named patiant. Did you mean patient?"]
  ],
  [
    "an unknown broker",
    "brokers: { main: 'memory:', spare: 'memory:' }\nqueues: { orders: { broker: mian } }",
    ["queues.orders.broker: there is no broker named mian. Did you mean main?"]
  ],
  [
    "no broker",
    "brokers: { main: 'memory:', spare: 'memory:' }\nqueues: { orders: {} }",
    [
      "queues.orders.broker: the queue has no broker, and the file sets no default broker. " +
        "Write broker: and one of main, spare, for this queue or at the top of the file"
    ]
  ],
  ["no brokers", "queues: {}", ["brokers: the value is missing. Add it"]],
  [
    "a broker that is none",
    "brokers: { main: 5 }",
    ["brokers.main: must be a URL, or an object with a url and the adapter's options"]
  ],
  ["no object", "- 1", ["must be an object with brokers, policies or queues"]],
  [
    "a missing secret",
    "brokers: { main: 'memory:' }\nqueues: { orders: { name: 'orders-${STAGE}' } }",
    ["queues.orders.name: the environment variable STAGE is not set. Set STAGE"]
  ],
  [
    "several at once",
    "brokers: { main: 'memory:' }\nqueues: { a: { rety: 1 }, 'b.c': { codec: xml } }",
    [
      "queues.a.rety: unknown key. Did you mean retry?",
      'queues["b.c"].codec: must be one of "json", "text", "bytes", got "xml"'
    ]
  ],
  [
    "a URL without quotes, whose colon YAML takes for the end of a key",
    "brokers: { main: memory: }",
    [
      "there is a key without a value at line 1, column 18. " +
        'Put text that contains a colon in quotes, as in main: "memory:"'
    ]
  ],
  [
    "the same on a line of its own",
    "brokers:\n  main: memory:",
    [
      "there is a second key in one line at line 2, column 9. " +
        'Put text that contains a colon in quotes, as in main: "memory:"'
    ]
  ],
  ["an open brace", "brokers: { main: 'memory:'", ["a { is not closed at line 1, column 10. Add its }"]],
  [
    "an open brace after a closed one",
    "brokers:\n  a: { url: 'memory:' }\n  b: { url: 'memory:'\nqueues: {}",
    ["a { is not closed at line 3, column 6. Add its }"]
  ],
  ["an open bracket", "brokers: [1\nqueues: {}", ["a [ is not closed at line 1, column 10. Add its ]"]],
  [
    "a wrong indentation",
    "brokers:\n  a: 'memory:'\n b: 'memory:'",
    ["a line is indented differently from those next to it at line 3, column 1. Indent it like those lines"]
  ],
  [
    "a variable without quotes in braces",
    "brokers: { main: 'memory:' }\nqueues: { w: { concurrency: ${CONC} } }",
    ['${CONC} has no quotes inside { } or [ ] at line 2, column 30. Put the whole text in quotes, as in "${CONC}"']
  ],
  [
    "the same within a URL and with further keys",
    "brokers: { main: { url: amqp://u:${PW}@host, heartbeat: 1 } }",
    ['${PW} has no quotes inside { } or [ ] at line 1, column 35. Put the whole text in quotes, as in "${PW}"']
  ]
]

describe("a bad file", () => {
  it.each(cases)("%s", async (_, yaml, expected) => {
    const lines = await complaints(yaml)
    for (const [index, line] of expected.entries()) assert.include(lines[index], file + line)
    assert.strictEqual(lines.length, expected.length)
  })
})

/** What is said when a broker of the file is opened. */
const refusal = async (config: Configuration.Configuration, broker?: string): Promise<ConfigFileError> => {
  const error = await Effect.runPromise(Effect.flip(Effect.scoped(Effect.provide(Effect.void, config.layer(broker)))))
  assert.instanceOf(error, ConfigFileError)
  return error
}

it("two queues may be one where they retry alike, or on different brokers", async () => {
  await sound("brokers: { main: 'memory:' }\nqueues: { w: { name: x, concurrency: 2 }, v: { name: x } }")
  await sound(
    "broker: a\nbrokers: { a: 'memory:', b: 'memory:' }\nqueues: { w: { name: x, retry: { maxRetries: 1 } }, v: { name: x, broker: b } }"
  )
})

describe("a bad broker", () => {
  it.each(["'amqp://me:hunter2@host'", "{ main: ['amqp://me:hunter2@host'] }", "{ main: { url: { hunter2: 1 } } }"])(
    "has no value shown, which may be a secret: %s",
    async (brokers) => {
      const shown = await complaints(`brokers: ${brokers}`)
      assert.isNotEmpty(shown)
      assert.notInclude(shown.join(), "hunter2")
    }
  )

  it("has a secret that is missing, which matters only where it is used", async () => {
    const yaml = "broker: local\nbrokers: { local: 'memory:', live: { url: 'amqp://u:${RABBIT_PASSWORD}@127.0.0.1' } }"
    const config = await sound(yaml)
    await Effect.runPromise(Effect.provide(Effect.void, config.layer()))
    assert.strictEqual(
      (await refusal(config, "live")).message,
      `${file}brokers.live.url: the environment variable RABBIT_PASSWORD is not set. Set RABBIT_PASSWORD`
    )
  })

  it("has an option that its adapter does not know", async () => {
    const { message } = await refusal(await sound("brokers: { main: { url: 'memory:', maxMesages: 5 } }"))
    assert.strictEqual(message, `${file}brokers.main.maxMesages: unknown option. Did you mean maxMessages?`)
  })

  it("has an option of connect", async () => {
    const { message } = await refusal(await sound("brokers: { main: { url: 'memory:', logger: json } }"))
    assert.strictEqual(
      message,
      `${file}brokers.main.logger: a config file cannot have this option of connect. ` +
        'Remove the option, and write connect("main", { logger: … }) in the program'
    )
  })

  it("has an option of an option that its adapter does not know", async () => {
    const { message } = await refusal(
      await sound("brokers: { main: { url: 'sqs://eu-west-1', requestHandler: { connectonTimeout: 5 } } }")
    )
    assert.strictEqual(
      message,
      `${file}brokers.main.requestHandler.connectonTimeout: unknown option. Did you mean connectionTimeout?`
    )
  })

  it("has no adapter", async () => {
    const { message } = await refusal(await sound("brokers: { main: 'gopher://hunter2@host' }"))
    assert.match(message, /brokers\.main\.url: no adapter serves the scheme gopher:/)
    assert.notInclude(message, "hunter2")
  })

  it("has a name that nobody knows", async () => {
    const { message } = await refusal(await sound("brokers: { main: 'memory:' }"), "mian")
    assert.strictEqual(message, `${file}brokers: there is no broker named mian. Did you mean main?`)
  })

  it("cannot do what a queue's own policy asks", async () => {
    const yaml = "brokers: { main: 'memory:' }\nqueues: { orders: { retry: { deadLetter: orders } } }"
    assert.strictEqual(
      (await refusal(await sound(yaml))).message,
      `${file}queues.orders.retry.deadLetter: on broker main, for queue orders: the queue is its own dead-letter ` +
        "queue: its dead letters would be consumed again for ever. Set deadLetter to another queue, or remove it to use orders.dlq"
    )
  })

  it("cannot do what a shared policy asks", async () => {
    const yaml =
      "brokers: { main: 'memory:' }\npolicies: { own: { deadLetter: orders } }\nqueues: { orders: { retry: own } }"
    assert.include((await refusal(await sound(yaml))).message, `${file}policies.own.deadLetter: on broker main`)
  })
})

it("the errors of a broker name it as the file does", async () => {
  const config = await sound("broker: left\nbrokers: { left: 'memory:', right: 'amqp://127.0.0.1:1' }")
  const connecting = Effect.flip(Effect.scoped(Effect.provide(Effect.void, config.layer("right"))))
  assert.match(String(await Effect.runPromise(connecting)), /right: connect: ConnectionFailed: connect ECONNREFUSED/)

  const full = new BrokerError.BrokerError({
    broker: "memory",
    operation: "publish",
    reason: "QueueFull",
    detail: "it is full"
  })
  const refused = Effect.gen(function* () {
    const own = yield* Broker.Broker
    const failing = [
      Effect.fail(full),
      Direct.make<void, typeof full>((onExit) => Direct.ended(onExit, Exit.fail(full)))
    ]
    const errors = failing.map((failure) => {
      const { admin, publish } = config.named("left", {
        ...own,
        publish: () => failure,
        admin: { ...own.admin, counts: () => Effect.fail(full) }
      })
      return [Effect.flip(publish([])), Effect.flip(admin.counts("q"))]
    })
    return (yield* Effect.all(errors.flat())).map(({ broker }) => broker)
  })
  assert.deepStrictEqual(await Effect.runPromise(Effect.provide(refused, config.layer())), [
    "left",
    "left",
    "left",
    "left"
  ])
})

describe("a policy that SQS cannot keep", () => {
  const sqs = "brokers: { aws: 'sqs://eu-west-1' }\n"

  it.each([
    [
      "a handler that outlives the longest lease",
      "queues: { orders: { handlerTimeout: 12 hours } }",
      "queues.orders.handlerTimeout: on broker aws, for queue orders: a handler may run for 12h, the broker's lease " +
        "ends after 11h 59m. Set handlerTimeout below 11h 59m"
    ],
    [
      "a delay for which no FIFO group can be held up",
      "queues: { orders: { name: orders.fifo, retry: { backoff: { type: constant, delay: 13 hours } } } }",
      "queues.orders.retry.backoff: on broker aws, for queue orders: a retry waits for 13h, a message can hold its " +
        'place in a FIFO queue for 11h 59m. Use shorter delays, or fifoRetry: "resend"'
    ],
    [
      "the same in a shared policy",
      "policies: { slow: { backoff: { type: constant, delay: 13 hours } } }\nqueues: { orders.fifo: { retry: slow } }",
      "policies.slow.backoff: on broker aws, for queue orders.fifo: a retry waits for 13h"
    ],
    [
      "a dead-letter queue of another type",
      "queues: { orders.fifo: { retry: { deadLetter: graves } } }",
      'queues["orders.fifo"].retry.deadLetter: on broker aws, for queue orders.fifo: graves is a standard queue, ' +
        "orders.fifo a FIFO one: SQS requires both to be of the same kind. End the dead-letter queue's name in .fifo"
    ],
    [
      "a dead-letter queue's name",
      "queues: { orders: { retry: { deadLetter: graves! } } }",
      "queues.orders.retry.deadLetter: on broker aws, for queue orders: graves!: SQS refuses characters of this name"
    ],
    [
      "a name",
      "queues: { orders: { name: orders! } }",
      "queues.orders.name: on broker aws, for queue orders: SQS refuses characters of this name"
    ],
    [
      "more time than SQS keeps a message",
      "queues: { orders: { retry: { maxRetries: 20, backoff: { type: constant, delay: 6 hours } } } }",
      "brokers.aws.retention: a message is retried for 5d, SQS deletes it after 4d"
    ]
  ])("%s", async (_, yaml, expected) => {
    assert.include((await refusal(await sound(sqs + yaml))).message, file + expected)
  })
})

describe("a URL with a password, in the place of a name", () => {
  const url = "amqp://me:hunter2@host/"
  const expected =
    "the value must be the name of a broker, got a URL. Allowed: main. To change the URL of a broker, set REQUEUE_BROKERS_<NAME>_URL"

  it.each<[string, string, Record<string, string>, string]>([
    ["the default broker", `broker: "${url}"\nbrokers: { main: "memory:" }`, {}, `broker: ${expected}`],
    [
      "the default broker, in the environment",
      'brokers: { main: "memory:" }',
      { REQUEUE_BROKER: url },
      `broker: ${expected}`
    ],
    [
      "a queue's broker",
      `brokers: { main: "memory:" }\nqueues: { a: { broker: "${url}" } }`,
      {},
      `queues.a.broker: ${expected}`
    ],
    ["a broker without a scheme", 'broker: "me:hunter2@host"\nbrokers: { main: "memory:" }', {}, `broker: ${expected}`],
    [
      "a policy",
      `brokers: { main: "memory:" }\nqueues: { a: { retry: "${url}" } }`,
      {},
      "queues.a.retry: there is no policy named amqp://me:***@host/. Write the policy under policies"
    ],
    [
      "the name of a broker",
      `broker: main\nbrokers: { "${url}": {} }`,
      {},
      'brokers["amqp://me:***@host/"].url: the value is missing. Add it'
    ],
    [
      "a known broker",
      `broker: main\nbrokers: { "${url}": "memory:" }`,
      {},
      "broker: there is no broker named main. Allowed: amqp://me:***@host/"
    ],
    [
      "a key",
      `brokers: { main: "memory:" }\n"${url}": 1`,
      {},
      '["amqp://me:***@host/"]: unknown key. Allowed: $schema, broker, brokers, policies, queues'
    ],
    [
      "a number",
      `brokers: { main: "memory:" }\nqueues: { a: { concurrency: "${url}" } }`,
      {},
      'queues.a.concurrency: must be a number, got "amqp://me:***@host/"'
    ],
    [
      "a duration",
      `brokers: { main: "memory:" }\nqueues: { a: { delay: "${url}" } }`,
      {},
      "queues.a.delay: must be a duration"
    ]
  ])("is not shown: %s", async (_, yaml, environment, line) => {
    const lines = await complaints(yaml, environment)
    assert.notInclude(lines.join("\n"), "hunter2")
    assert.isTrue(
      lines.some((each) => each.startsWith(file + line)),
      lines.join("\n")
    )
  })

  it("is not shown by a program's call", async () => {
    const config = await sound('brokers: { main: "memory:" }')
    const ofBroker = await refusal(config, url)
    const ofQueue = await Effect.runPromise(Effect.flip(Configuration.queue(config, url)))
    const ofFile = await Effect.runPromise(Effect.flip(Configuration.load({ file: url, environment: {} })))
    assert.strictEqual(ofBroker.message, `${file}brokers: ${expected}`)
    assert.notInclude(inspect([ofBroker, ofQueue, ofFile], { depth: 9 }), "hunter2")
  })
})

describe("a mistake in the syntax of a file", () => {
  const first = "text begins with a character that has a meaning in YAML"
  const quotes = "Put text that begins with *, &, !, @, % or ` in quotes"

  it.each<[string, string, string]>([
    ["yaml", "a: 1\nb: *hunter2", `${first} at line 2, column 4. ${quotes}`],
    ["yaml", "a: 1\nb: &hunter2 x", `${first} at line 2, column 13. ${quotes}`],
    ["yaml", "b: &hunter2", `${first} at line 1, column 12. ${quotes}`],
    ["yaml", "b: !hunter2 x", `${first} at line 1, column 4. ${quotes}`],
    ["yaml", "b: @hunter2", `${first} at line 1, column 4. ${quotes}`],
    ["yaml", "b: %hunter2", `${first} at line 1, column 4. ${quotes}`],
    ["yaml", "b: `hunter2`", `${first} at line 1, column 4. ${quotes}`],
    ["yaml", "%hunter2\n---\nb: 1", `${first} at line 1, column 1. ${quotes}`],
    ["yaml", "b: |hunter2", "the file is not valid YAML at line 1, column 5. Fix the syntax there"],
    ["yaml", 'b: "hunter2', "a quote, a bracket or a comma is missing at line 1, column 12. Add it"],
    ["yaml", "b: 1\nb: hunter2", "a key is repeated at line 2, column 1. Remove one of these keys"],
    ["yaml", "b:\n\tc: hunter2", "a tab indents the line at line 2, column 1. Indent it with spaces"],
    ["yaml", "b: 1\n---\nb: hunter2", "a second document begins at line 2, column 1. Remove the line ---"],
    ["json", '{"password": hunter2}', "the file is not valid JSON at line 1, column 14. Fix the syntax there"],
    [
      "json",
      '{"a": 1,\n "password": "hunter2\n"}',
      "the file is not valid JSON at line 2, column 22. Fix the syntax there"
    ],
    ["json", '{"password": "hunter2"', "the file is not valid JSON at line 1, column 23. Fix the syntax there"],
    ["json", "", "the file is not valid JSON at line 1, column 1. Fix the syntax there"]
  ])("is told by its place, and without the text: %s %j", async (extension, text, expected) => {
    const cwd = await folder({ [`requeue.config.${extension}`]: text })
    const error = await Effect.runPromise(Effect.flip(Configuration.load({ cwd, environment: {} })))
    assert.notInclude(inspect(error, { depth: 9 }).replaceAll(cwd, ""), "hunter2")
    assert.strictEqual(error.message, `requeue.config.${extension}: ${expected}`)
  })

  it("is no anchor that an alias names", async () => {
    const { policies } = await sound(
      "brokers: { main: 'memory:' }\npolicies: { a: { maxRetries: &n 7 }, b: { maxRetries: *n } }"
    )
    assert.deepStrictEqual(policies["a"], policies["b"])
  })

  it("of a module is told without the text", async () => {
    const told = [
      [
        "export default {\n  password: hunter2\n}",
        "the file uses a name that is not defined at line 2. Put text in quotes"
      ],
      [
        "export default {\n  password: 'a' hunter2\n}",
        "the file is not valid JavaScript. Run node requeue.config.mjs to see the line"
      ],
      ["throw new Error('set HOST')", "set HOST. Fix the file"]
    ] as const
    const folders = await Promise.all(told.map(([text]) => folder({ "requeue.config.mjs": text })))
    // In a process, because here vitest would load the modules, with errors of its own.
    const program = `import { loadConfig } from ${JSON.stringify(new URL("../src/index.ts", import.meta.url))}
      for (const cwd of ${JSON.stringify(folders)}) await loadConfig({ cwd }).catch((error) => console.log(error.message))`
    const flags = ["--conditions=@requeue/source", "--input-type=module", "--eval", program]
    const { stdout } = await promisify(execFile)(process.execPath, flags)
    assert.deepStrictEqual(
      stdout.trimEnd().split("\n"),
      told.map(([, expected]) => `requeue.config.mjs: ${expected}`)
    )
  })
})

describe("a secret", () => {
  it("is not shown by what is wrong with it", async () => {
    const yaml = "brokers: { main: 'memory:' }\npolicies: { p: { maxAge: '${PASSWORD}' } }"
    const lines = await complaints(yaml, { PASSWORD: "hunter2" })
    assert.include(lines[0], "policies.p.maxAge: must be a duration")
    assert.include(lines[0], 'got "${PASSWORD}"')
  })

  it("is not shown where it is taken for a name", async () => {
    const yaml = "brokers: { main: 'memory:' }\nqueues: { orders: { retry: '${PASSWORD}' } }"
    assert.deepStrictEqual(await complaints(yaml, { PASSWORD: "hunter2" }), [
      `${file}queues.orders.retry: there is no policy named \${PASSWORD}. Write the policy under policies`
    ])
  })

  it.each([
    "retryDelay: ?",
    "handlerTimeout: ?",
    "drainTimeout: ?",
    "delay: ?",
    "name: ?",
    "codec: ?",
    "broker: ?",
    "concurrency: ?",
    "batch: { maxBatchTimeout: ? }",
    "consumerBackoff: { multiplier: ? }",
    "consumerBackoff: { strategy: ? }",
    "retry: ?",
    "retry: { maxAge: ? }",
    "retry: { preset: ? }",
    "retry: { backoff: { type: constant, delay: ? } }",
    "retry: { backoff: { type: sequence, delays: [?] } }"
  ])("of any length is not shown by %s, not even in part", async (field) => {
    const letters = String.fromCharCode(...Array.from({ length: 250 }, (_, index) => 0x4e00 + index))
    for (const PASSWORD of ["hunter2", letters.slice(0, 40), letters.slice(0, 41), letters]) {
      for (const written of ["${PASSWORD}", "at ${PASSWORD} once", "${PASSWORD}".repeat(7)]) {
        const yaml = `brokers: { main: 'memory:' }\nqueues: { orders: { ${field.replace("?", `"${written}"`)} } }`
        // A name may be any text that is short enough.
        const said = field.startsWith("name") && PASSWORD.length < 100 ? "" : await complaints(yaml, { PASSWORD })
        assert.notMatch(String(said), /hunter|[\u4e00-\u4eff]/)
      }
    }
  })

  it.each(["name: '${PASSWORD}'", "retry: { deadLetter: '${PASSWORD}' }"])(
    "is not shown where a broker refuses %s",
    async (field) => {
      const yaml = `brokers: { aws: 'sqs://eu-west-1' }\nqueues: { orders: { ${field} } }`
      const { message } = await refusal(await sound(yaml, { PASSWORD: "hunter2!" }))
      assert.include(message, "SQS refuses characters of this name")
      assert.notInclude(message, "hunter2")
    }
  )

  it.each(["hunter2", 'hun"ter2', "hun  ter2", "hun\nter2", "$&hunter2"])("like %j is masked in any text", (secret) => {
    const secrets = new Map([["PASSWORD", secret]])
    for (const text of [secret, JSON.stringify(secret), `got ${secret}.`, secret.replaceAll(/\s+/g, " ")]) {
      assert.include(mask(text, secrets), "${PASSWORD}")
      assert.notInclude(mask(text, secrets), "ter2")
    }
  })

  it("is not shown by the configuration", async () => {
    const config = await sound("brokers: { main: 'amqp://u:${PASSWORD}@host' }", { PASSWORD: "hunter2" })
    const resolved = await Effect.runPromise(config.find())
    for (const value of [config, resolved]) {
      assert.notInclude(JSON.stringify(value), "hunter2")
      assert.notInclude(String(value), "hunter2")
    }
  })
})
