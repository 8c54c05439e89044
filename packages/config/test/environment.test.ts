import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { assert, describe, it } from "vitest"
import { variableOf } from "../src/internal/overrides.ts"
import { expand } from "../src/internal/placeholders.ts"
import { complaints, sound } from "./folder.ts"

const yaml = `
brokers: { main: "memory:", spare-one: "memory:" }
broker: main
policies: { patient: { maxRetries: 5 } }
queues:
  orders: { retry: patient, concurrency: 2, drainTimeout: 1 second, consumerBackoff: false }
`

describe("the environment", () => {
  it.each([
    [["broker"], "REQUEUE_BROKER"],
    [["brokers", "spare-one", "url"], "REQUEUE_BROKERS_SPARE_ONE_URL"],
    [["queues", "orders", "retry", "maxRetries"], "REQUEUE_QUEUES_ORDERS_RETRY_MAX_RETRIES"],
    [["policies", "p", "backoff", "delays", 0], "REQUEUE_POLICIES_P_BACKOFF_DELAYS_0"]
  ] as const)("calls %j %s", (path, name) => {
    assert.strictEqual(variableOf(path), name)
  })

  it("overrides what the file says, each value as its own type", async () => {
    const { defaultBroker, policies, queues } = await sound(yaml, {
      REQUEUE_BROKER: "spare-one",
      REQUEUE_POLICIES_PATIENT_MAX_RETRIES: "unlimited",
      REQUEUE_QUEUES_ORDERS_CONCURRENCY: "7",
      REQUEUE_QUEUES_ORDERS_DRAIN_TIMEOUT: "2 seconds",
      REQUEUE_QUEUES_ORDERS_CONSUMER_BACKOFF: "true"
    })
    assert.strictEqual(defaultBroker, "spare-one")
    assert.strictEqual(policies["patient"]?.maxAttempts, Number.POSITIVE_INFINITY)
    const { broker, options } = queues["orders"]!
    assert.strictEqual(broker, "spare-one")
    assert.strictEqual(options.concurrency, 7)
    assert.strictEqual(options.drainTimeout, "2 seconds")
    assert.isDefined(options.consumerBackoff)
  })

  it("overrides what the file leaves out, where that chooses a broker", async () => {
    const { queues } = await sound(yaml, { REQUEUE_QUEUES_ORDERS_BROKER: "spare-one" })
    assert.strictEqual(queues["orders"]?.broker, "spare-one")
  })

  it("gives numbers and booleans by ${NAME}, where the place takes one, and text elsewhere", async () => {
    const file =
      "brokers: { main: 'memory:?maxBodySize=${BYTES}' }\nqueues: { orders: { name: '${N}', concurrency: '${N}', " +
      "consumerBackoff: '${YES}', handlerTimeout: '${MS}', drainTimeout: '${TEXT}', retry: { maxRetries: '${N}' } } }"
    const { queues } = await sound(file, { BYTES: "500", N: "7", YES: "true", MS: "5000", TEXT: "5s" })
    const { name, options } = queues["orders"]!
    assert.deepStrictEqual([name, options.concurrency, options.retry?.maxAttempts], ["7", 7, 8])
    assert.deepStrictEqual([options.handlerTimeout, options.drainTimeout], [5000, "5s"])
    assert.isDefined(options.consumerBackoff)
  })

  it("is asked about names that override nothing", async () => {
    assert.deepStrictEqual(await complaints(yaml, { REQUEUE_BROKERS_MIAN_URL: "memory:" }), [
      'requeue.config.yaml: REQUEUE_BROKERS_MIAN_URL: the environment variable "REQUEUE_BROKERS_MIAN_URL" overrides nothing in the file. ' +
        "Did you mean REQUEUE_BROKERS_MAIN_URL?"
    ])
  })

  it.each([
    [
      "REQUEUE_QUEUES_ORDERS_HANDLER_TIMEOUT",
      "the file has no queues.orders.handlerTimeout that this environment variable could override. " +
        "Write queues.orders.handlerTimeout in the file first, or unset REQUEUE_QUEUES_ORDERS_HANDLER_TIMEOUT"
    ],
    [
      "REQUEUE_POLICIES_PATIENT_BACKOFF_MAX",
      "the file has no policies.patient.backoff.max that this environment variable could override. " +
        "Write policies.patient.backoff.max in the file first, or unset REQUEUE_POLICIES_PATIENT_BACKOFF_MAX"
    ],
    [
      "REQUEUE_BROKERS_MAIN_MAX_MESSAGES",
      'the environment variable "REQUEUE_BROKERS_MAIN_MAX_MESSAGES" overrides nothing in the file. ' +
        "Write the value in the file first, or unset REQUEUE_BROKERS_MAIN_MAX_MESSAGES"
    ],
    [
      "REQUEUE_QUEUES_ORDERS_CONCURENCY",
      'the environment variable "REQUEUE_QUEUES_ORDERS_CONCURENCY" overrides nothing in the file. Did you mean REQUEUE_QUEUES_ORDERS_CONCURRENCY?'
    ],
    [
      "REQUEUE_QUEUES_ORDERS_HANDLER_TIMOUT",
      'the environment variable "REQUEUE_QUEUES_ORDERS_HANDLER_TIMOUT" overrides nothing in the file. Did you mean REQUEUE_QUEUES_ORDERS_HANDLER_TIMEOUT?'
    ]
  ])("is asked for a value that the file lacks, or a name that is misspelt: %s", async (name, expected) => {
    assert.deepStrictEqual(await complaints(yaml, { [name]: "5" }), [`requeue.config.yaml: ${name}: ${expected}`])
  })

  it("must not mean two things", async () => {
    const [line] = await complaints(`brokers: { a-b: "memory:", a.b: "memory:" }`, {
      REQUEUE_BROKERS_A_B_URL: "memory:"
    })
    assert.include(line, "could override brokers.a-b.url or brokers.a.b.url. Rename one of these in the file")
  })

  it("has other variables that are none of ours", async () => {
    assert.strictEqual((await sound(yaml, { REQUEUE_RABBITMQ_URL: "x", REQUEUE_KILLS: "3" })).defaultBroker, "main")
  })
})

describe("a variable in a URL", () => {
  const expanded = (text: string, value: string) => expand(text, { V: value }, ["brokers", "main", "url"])

  it.each([
    ["amqp://me:${V}@host", "p@/%41 ü", "amqp://me:p%40%2F%2541%20%C3%BC@host"],
    ["amqp://${V}:p@host", "me:", "amqp://me%3A:p@host"],
    ["amqp://me:p@host:${V}", "5672", "amqp://me:p@host:5672"],
    ["amqp://host/${V}", "a/b?c", "amqp://host/a%2Fb%3Fc"],
    ["amqp://host?management=${V}", "http://u:p%40@h", "amqp://host?management=http%3A%2F%2Fu%3Ap%2540%40h"],
    ["${V}", "amqp://me:p%40@host", "amqp://me:p%40@host"],
    ["orders ${V}", "a/b", "orders a/b"]
  ])("%s is filled in with %s", (text, value, expected) => {
    assert.deepStrictEqual(expanded(text, value).problems, [])
    assert.strictEqual(expanded(text, value).value, expected)
  })

  it.each([
    ["amqp://me:p@${V}", "evil@host", /characters that no host or port has/],
    ["amqp://me:${V}@host", "", /is empty/],
    ["${V}", "", /^the environment variable V is empty$/],
    ["amqp://me:${V}@host", "\ud800", /a character that no URL can have/],
    ["amqp://host?management=http%3A%2F%2Fu%3A${V}%40h", "a%41", /part of a URL in the query of another URL/]
  ])("%s is refused with %j", (text, value, words) => {
    const [problem, ...others] = expanded(text, value).problems
    assert.deepStrictEqual(others, [])
    assert.match(problem?.detail ?? "", words)
    if (value !== "") assert.notInclude(JSON.stringify(problem), value)
  })
})

describe("what looks like a variable", () => {
  it.each([
    ["${PW:-hunter2}", "${PW:-…}", "${PW}"],
    ["${PW-hunter2}", "${PW-…}", "${PW}"],
    ["${PW:?hunter2}", "${PW:?…}", "${PW}"],
    ["${ PW }", "${ PW …}", "${PW}"],
    ["${PW }", "${PW …}", "${PW}"],
    ["${hunter2", "${…}", "${NAME}"],
    ["${hunter2-x}", "${…}", "${NAME}"],
    ["${}", "${…}", "${NAME}"],
    ["${2}", "${…}", "${NAME}"],
    ["$$${hunter2-x}", "${…}", "${NAME}"]
  ])("%s is refused at its path, and not shown", async (form, shown, remedy) => {
    for (const text of [form, `amqp://me:${form}@host`]) {
      const file = JSON.stringify({
        broker: "main",
        brokers: { main: "memory:", live: { url: "amqp:", tls: { passphrase: text } }, other: text },
        queues: { orders: { name: text, concurrency: text } }
      })
      const problem =
        `${shown} is not a variable: defaults, spaces and other forms are not supported. ` +
        `Write ${remedy}, or $\${ for the text \${`
      assert.deepStrictEqual(
        await complaints(file, { PW: "hunter2" }),
        ["brokers.live.tls.passphrase", "brokers.other.url", "queues.orders.name", "queues.orders.concurrency"].map(
          (path) => `requeue.config.yaml: ${path}: ${problem}`
        )
      )
    }
  })

  it.each([
    ["$${PW}", "${PW}"],
    ["$${PW:-guest}", "${PW:-guest}"],
    ["a$${", "a${"],
    ["$$${PW}", "$secret"],
    ["$$$${PW}", "$${PW}"],
    ["$$", "$$"],
    ["$$PW", "$$PW"],
    ["{PW}", "{PW}"]
  ])("%s is the text %s", async (written, text) => {
    const { queues } = await sound(JSON.stringify({ brokers: { main: "memory:" }, queues: { a: { name: written } } }), {
      PW: "secret"
    })
    assert.strictEqual(queues["a"]?.name, text)
  })

  it.each(["amqp://me:$PW@host"])("%s is refused where that variable is set", async (url) => {
    const file = JSON.stringify({ broker: "main", brokers: { main: "memory:", live: { url } } })
    assert.deepStrictEqual(await complaints(file, { PW: "secret" }), [
      "requeue.config.yaml: brokers.live.url: $PW is text, although an environment variable PW is set. " +
        "Write ${PW}, or another variable whose value is this text"
    ])
    await sound(file, { PWD: "secret" })
    await sound(file.replace("$PW", "a$PW"), { PW: "secret" })
  })

  it.each([
    ["$RABBIT_URL", "$RABBIT_URL", "${RABBIT_URL}"],
    ["$RABBIT_URL?heartbeat=1000", "$RABBIT_URL", "${RABBIT_URL}"],
    ["$hunter2", "$…", "${NAME}"]
  ])("%s is refused as the beginning of a URL, set or not", async (url, shown, remedy) => {
    const file = JSON.stringify({ broker: "main", brokers: { main: "memory:", live: { url } } })
    for (const environment of [{}, { RABBIT_URL: "memory:" }]) {
      assert.deepStrictEqual(await complaints(file, environment), [
        `requeue.config.yaml: brokers.live.url: a URL cannot begin with ${shown}, which is not a variable. ` +
          `Write ${remedy} for the environment variable`
      ])
    }
  })

  it("is text in the value of an override", async () => {
    const { find } = await sound("brokers: { main: 'memory:' }", { REQUEUE_BROKERS_MAIN_URL: "memory:?x=${PW:-y}" })
    const { address } = await Effect.runPromise(find())
    assert.strictEqual(Redacted.value(address).url.search, "?x=${PW:-y}")
  })
})
