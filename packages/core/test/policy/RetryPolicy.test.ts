import { assert, describe, it } from "@effect/vitest"
import * as Backoff from "../../src/policy/Backoff.ts"
import * as Failure from "../../src/policy/Failure.ts"
import * as RetryPolicy from "../../src/policy/RetryPolicy.ts"
import * as Settlement from "../../src/message/Settlement.ts"

const boom = Failure.make(new Error("boom"), 0)
const error = { name: "Error", message: "boom" }
const asked = { name: "Retry", message: "the handler called retry" }

const facts: RetryPolicy.RetryContext = {
  queue: "work",
  attempts: 1,
  age: 0,
  delay: undefined,
  asked: false,
  failure: boom,
  defaultDelay: undefined,
  random: 0
}

type Case = readonly [string, RetryPolicy.Options, Partial<RetryPolicy.RetryContext>, Settlement.Settlement]

const decide = (options: RetryPolicy.Options, given: Partial<RetryPolicy.RetryContext>) =>
  RetryPolicy.decide(RetryPolicy.make(options), { ...facts, ...given })

const table = (name: string, cases: ReadonlyArray<Case>) =>
  describe("decide", () => {
    it.each(cases)(`${name}: %s`, (_, options, given, expected) =>
      assert.deepStrictEqual(decide(options, given), expected)
    )
  })

const failed = (properties: object) => ({ failure: Failure.make(Object.assign(new Error("boom"), properties), 0) })
const exhausted = Settlement.DeadLetter("retries-exhausted", "work.dlq", error)
const permanent = Settlement.DeadLetter("permanent", "work.dlq", error)
const tooOld = Settlement.DeadLetter("too-old", "work.dlq", error)
const constant = { backoff: Backoff.constant(1000) }

table("the limit of attempts", [
  ["maxRetries 0: the first failure is the last", { maxRetries: 0 }, {}, exhausted],
  ["maxRetries 2: the second attempt is retried", { maxRetries: 2 }, { attempts: 2 }, Settlement.Retry(0, error)],
  ["maxRetries 2: the third is not", { maxRetries: 2 }, { attempts: 3 }, exhausted],
  ["maxAttempts 3: the second attempt is retried", { maxAttempts: 3 }, { attempts: 2 }, Settlement.Retry(0, error)],
  ["maxAttempts 3: the third is not", { maxAttempts: 3 }, { attempts: 3 }, exhausted],
  ["over-counted attempts", { maxAttempts: 3 }, { attempts: 9 }, exhausted],
  ["3 retries by default", {}, { attempts: 3 }, Settlement.Retry(0, error)],
  ["and no fourth", {}, { attempts: 4 }, exhausted],
  ["unlimited", { maxRetries: "unlimited" }, { attempts: 1e9 }, Settlement.Retry(0, error)],
  ["attempts that are no number", { maxAttempts: 3 }, { attempts: Number.NaN }, exhausted],
  [
    "an asked retry on the last attempt",
    { maxRetries: 0 },
    { asked: true, failure: undefined, delay: 5 },
    Settlement.DeadLetter("retries-exhausted", "work.dlq", asked)
  ]
])

table("the delay: the first that is given", [
  ["explicit", constant, { delay: 5, ...failed({ retryAfter: 2 }), defaultDelay: 7 }, Settlement.Retry(5, error)],
  ["an explicit 0", constant, { delay: 0, ...failed({ retryAfter: 2 }), defaultDelay: 7 }, Settlement.Retry(0, error)],
  [
    "the error's retryAfter",
    constant,
    { ...failed({ retryAfter: 2 }), defaultDelay: 7 },
    Settlement.Retry(2000, error)
  ],
  ["a retryAfter of 0", constant, { ...failed({ retryAfter: 0 }), defaultDelay: 7 }, Settlement.Retry(0, error)],
  ["the backoff's", constant, { defaultDelay: 7 }, Settlement.Retry(1000, error)],
  ["a backoff of 0", { backoff: Backoff.constant(0) }, { defaultDelay: 7 }, Settlement.Retry(0, error)],
  ["the consumer's", {}, { defaultDelay: 7 }, Settlement.Retry(7, error)],
  ["none", {}, {}, Settlement.Retry(0, error)],
  ["the backoff of this attempt", { backoff: Backoff.linear(10) }, { attempts: 3 }, Settlement.Retry(30, error)],
  [
    "its randomness",
    { backoff: Backoff.constant(100, { jitter: "full" }) },
    { random: 0.5 },
    Settlement.Retry(50, error)
  ],
  ["an asked retry has no error", constant, { asked: true, failure: undefined }, Settlement.Retry(1000)]
])

table("the limit of age", [
  ["exactly as old as allowed", { maxAge: 3000, ...constant }, { age: 2000 }, Settlement.Retry(1000, error)],
  ["a millisecond older", { maxAge: 3000, ...constant }, { age: 2001 }, tooOld],
  ["an explicit delay beyond it", { maxAge: 3000 }, { delay: 3001 }, tooOld],
  ["after the limit of attempts", { maxAge: 0, maxRetries: 0 }, { age: 5 }, exhausted],
  ["a clock that went backwards", { maxAge: 3000, ...constant }, { age: -50 }, Settlement.Retry(1000, error)]
])

const dropped = Settlement.Drop("dropped", error)
const all = { permanent: ["Error"], drop: ["Error"], uncounted: ["Error"] }

table("the classification", [
  ["permanent by its name", { classify: { permanent: ["Error"] } }, {}, permanent],
  ["permanent by its tag", { classify: { permanent: ["Bad"] } }, failed({ _tag: "Bad" }), permanent],
  [
    "permanent by a cause",
    { classify: { permanent: ["TypeError"] } },
    failed({ cause: new TypeError("x") }),
    Settlement.DeadLetter("permanent", "work.dlq", { ...error, message: "boom, caused by TypeError: x" })
  ],
  ["permanent by itself", {}, failed({ permanent: true }), permanent],
  ["dropped by its name", { classify: { drop: ["Error"] } }, {}, dropped],
  ["dropped by itself", {}, failed({ _tag: "DropError" }), dropped],
  ["drop comes before permanent", { classify: all }, {}, dropped],
  [
    "before the limits",
    { classify: { permanent: ["Error"] }, maxRetries: 0, maxAge: 0 },
    { attempts: 9, age: 9 },
    permanent
  ],
  ["uncounted is retried", { classify: { uncounted: ["Error"] } }, {}, Settlement.Retry(0, error)],
  ["uncounted is limited", { classify: { uncounted: ["Error"] }, maxRetries: 0 }, {}, exhausted],
  ["with is asked first", { classify: { ...all, with: () => "dead-letter" } }, {}, permanent],
  [
    "with overrules the error itself",
    { classify: { with: () => "retry" } },
    failed({ permanent: true }),
    Settlement.Retry(0, error)
  ],
  ["with leaves it to the tags", { classify: { drop: ["Error"], with: () => undefined } }, {}, dropped],
  ["asked beats it", { classify: { ...all, with: () => "drop" } }, { asked: true }, Settlement.Retry(0, error)]
])

const routes = { permanent: "bad", "too-old": "old" }

table("the dead-letter queue", [
  ["a name", { deadLetter: "dead", maxRetries: 0 }, {}, Settlement.DeadLetter("retries-exhausted", "dead", error)],
  [
    "a route",
    { deadLetter: { routes } },
    failed({ permanent: true }),
    Settlement.DeadLetter("permanent", "bad", error)
  ],
  ["another route", { maxAge: 0, deadLetter: { routes } }, { age: 1 }, Settlement.DeadLetter("too-old", "old", error)],
  ["no route: the default", { deadLetter: { routes }, maxRetries: 0 }, {}, exhausted],
  ["discard", { deadLetter: "discard", maxRetries: 0 }, {}, Settlement.Drop("retries-exhausted", error)],
  [
    "discard all but a route",
    { deadLetter: { queue: "discard", routes } },
    failed({ permanent: true }),
    Settlement.DeadLetter("permanent", "bad", error)
  ]
])

const hidden = { name: "Error", message: "***" }
const redact = { deadLetter: { redact: () => hidden } }

table("the redaction", [
  ["of a retry", redact, {}, Settlement.Retry(0, hidden)],
  [
    "of a dead letter",
    { ...redact, maxRetries: 0 },
    {},
    Settlement.DeadLetter("retries-exhausted", "work.dlq", hidden)
  ],
  [
    "of a permanent failure",
    redact,
    failed({ permanent: true }),
    Settlement.DeadLetter("permanent", "work.dlq", hidden)
  ],
  ["of what is too old", { ...redact, maxAge: 0 }, { age: 1 }, Settlement.DeadLetter("too-old", "work.dlq", hidden)],
  ["of a drop", redact, failed({ _tag: "DropError" }), Settlement.Drop("dropped", hidden)],
  [
    "of a discard",
    { maxRetries: 0, deadLetter: { ...redact.deadLetter, queue: "discard" } },
    {},
    Settlement.Drop("retries-exhausted", hidden)
  ],
  ["not of a retry without an error", redact, { asked: true, failure: undefined }, Settlement.Retry(0)]
])

const throws = () => {
  throw new Error("a bug in the policy")
}

table("a policy's own function that throws", [
  ["leaves the classification to the tags", { classify: { with: throws, permanent: ["Error"] } }, {}, permanent],
  [
    "withholds what it should have redacted",
    { maxRetries: 0, deadLetter: { redact: throws } },
    {},
    Settlement.DeadLetter("retries-exhausted", "work.dlq", { name: "Error", message: "(withheld: redact failed)" })
  ]
])

table("a route", [
  [
    "may discard one reason",
    { deadLetter: { routes: { permanent: "discard" } } },
    failed({ permanent: true }),
    Settlement.Drop("permanent", error)
  ],
  ["and leaves the others", { maxRetries: 0, deadLetter: { routes: { permanent: "discard" } } }, {}, exhausted]
])
