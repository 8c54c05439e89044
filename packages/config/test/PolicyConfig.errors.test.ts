import { assert, describe, it } from "vitest"
import * as Schema from "effect/Schema"
import * as PolicyConfig from "../src/PolicyConfig.ts"

const { BatchPolicy, Consumer, ConsumerBackoff, DeadLetterBudget, RetryPolicy } = PolicyConfig

const schemas = Object.entries(PolicyConfig).filter(([, value]) => Schema.isSchema(value))

type Case = readonly [string, Schema.Codec<any, any>, unknown, path: string, message: string]

const cases: ReadonlyArray<Case> = [
  [
    "a bad backoff",
    Consumer,
    { retry: { backoff: { type: "linear", step: -1 } } },
    '["retry"]["backoff"]["step"]',
    "linear: step"
  ],
  ["an unknown key", Consumer, { retries: 5 }, '["retries"]', "unknown key; known are retry, retryDelay"],
  [
    "an unknown key in a policy",
    Consumer,
    { retry: { retries: 5 } },
    '["retry"]["retries"]',
    "unknown key; known are preset"
  ],
  [
    "an unknown key in a classification",
    RetryPolicy,
    { classify: { fatal: [] } },
    '["classify"]["fatal"]',
    "unknown key"
  ],
  [
    "an unknown reason",
    RetryPolicy,
    { deadLetter: { routes: { tired: "x" } } },
    '["deadLetter"]["routes"]["tired"]',
    "unknown key"
  ],
  [
    "both limits",
    RetryPolicy,
    { maxRetries: 1, maxAttempts: 2 },
    "",
    "RetryPolicy.make: give maxRetries or maxAttempts, not both"
  ],
  [
    "half a retry",
    RetryPolicy,
    { maxRetries: 0.5 },
    '["maxRetries"]',
    "RetryPolicy.make: maxRetries must be a whole number >= 0"
  ],
  ["a limit that is no number", RetryPolicy, { maxRetries: "many" }, '["maxRetries"]', '"unlimited"'],
  ["half a surrogate", RetryPolicy, { deadLetter: "lo\ud801op" }, '["deadLetter"]', "must have no broken surrogates"],
  ["no dead-letter queue", RetryPolicy, { deadLetter: "" }, '["deadLetter"]', "must not be an empty queue name"],
  ["an unknown preset", RetryPolicy, { preset: "magic" }, '["preset"]', '"webhookSender"'],
  [
    "an age that is none",
    RetryPolicy,
    { preset: "nsqRequeue", maxAge: "old" },
    '["maxAge"]',
    "RetryPolicy.make: maxAge must be"
  ],
  [
    "a batch too large",
    Consumer,
    { batch: { maxBatchSize: 101 } },
    '["batch"]["maxBatchSize"]',
    "from 1 to 100, got 101"
  ],
  [
    "a batch too slow",
    BatchPolicy,
    { maxBatchTimeout: "2 minutes" },
    '["maxBatchTimeout"]',
    'from 0ms to 1m, got "2 minutes"'
  ],
  [
    "a multiplier of 0",
    ConsumerBackoff,
    { multiplier: 0 },
    '["multiplier"]',
    "ConsumerBackoff.make: multiplier must be"
  ],
  [
    "an option of another form",
    ConsumerBackoff,
    { form: "nsq", failures: 5 },
    '["failures"]',
    'not an option of the form "nsq". Write form: "consecutive" with failures'
  ],
  [
    "a share in percent",
    ConsumerBackoff,
    { form: "ratio", failureRatio: 50 },
    '["failureRatio"]',
    "up to 1, got 50. Write 0.5 for 50 %"
  ],
  [
    "a window of no attempts",
    ConsumerBackoff,
    { form: "ratio", window: { attempts: 0 } },
    '["window"]',
    "ConsumerBackoff.make: window must be"
  ],
  ["an unknown form", ConsumerBackoff, { form: "rate" }, '["form"]', '"nsq" | "consecutive" | "ratio"'],
  ["an unknown recovery", ConsumerBackoff, { recovery: "slow" }, '["recovery"]', '"resume" | "stepwise"'],
  [
    "an empty budget",
    DeadLetterBudget,
    { max: 0 },
    '["max"]',
    "DeadLetterBudget.make: max must be a whole number >= 1, got 0"
  ],
  [
    "a delay beyond 24 hours",
    Consumer,
    { retryDelay: "2 days" },
    '["retryDelay"]',
    "Consumer.start: retryDelay must be"
  ],
  [
    "a handler without time",
    Consumer,
    { handlerTimeout: 0 },
    '["handlerTimeout"]',
    "Consumer.start: handlerTimeout must be"
  ],
  ["no object", Consumer, "retry", "", "Expected"],
  ["null", RetryPolicy, null, "", "Expected"]
]

const failureOf = (schema: Schema.Codec<any, any>, json: unknown): string => {
  try {
    Schema.decodeUnknownSync(schema)(json)
  } catch (error) {
    return String(error)
  }
  return assert.fail("decoded")
}

describe("an error names its path and the constraint", () => {
  it.each(cases)("%s", (_, schema, json, path, message) => {
    const text = failureOf(schema, json)
    assert.include(text, message)
    if (path === "") assert.notInclude(text, "at [")
    else assert.include(text, `at ${path}`)
  })

  it("tells all of them when asked", () => {
    const decode = Schema.decodeUnknownSync(Consumer, { errors: "all" })
    assert.throws(() => decode({ batch: { maxBatchSize: 0 }, retry: { immediate: 11 } }), /immediate[^]*maxBatchSize/)
  })
})

describe("every schema", () => {
  it.each(schemas)("%s has a JSON Schema", (_, schema) => {
    const document = Schema.toJsonSchemaDocument(schema as Schema.Codec<unknown, unknown>)
    assert.isNotEmpty(JSON.stringify(document.schema))
  })

  it.each(schemas)("%s cannot be written back: a policy may hold functions", (_, schema) => {
    const encode = Schema.encodeUnknownSync(schema as Schema.Codec<unknown, unknown>)
    assert.throws(() => encode({}), /./)
  })

  it("describes what a backoff is in its JSON Schema", () => {
    const text = JSON.stringify(Schema.toJsonSchemaDocument(Consumer))
    for (const word of ["exponential", "proportional", "maxRetries", "too-old"]) assert.include(text, word)
  })
})
