import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Explanation from "../../src/explain/Explanation.ts"
import { Backoff, BatchPolicy, ConsumerBackoff, RetryPolicy } from "@requeue/core"
import { type ConsumerOptions } from "@requeue/core/port"

const said = (options: ConsumerOptions.Options, about: string): string =>
  Explanation.of("orders", options)
    .find((part) => part.about === about)!
    .sentences.join(" ")

const retries = (options: RetryPolicy.Options) => said({ retry: RetryPolicy.make(options) }, "Retries")

describe("an explanation", () => {
  it("says what the defaults are, and that they are defaults", () => {
    const parts = Explanation.of("orders", {})
    assert.isTrue(parts.every(({ isDefault }) => isDefault))
    assert.strictEqual(
      said({}, "Retries"),
      "A message that fails is retried up to 3 times: 4 attempts in all. " +
        "A message whose handler never comes to an end, because its process dies, is dead-lettered after 14 deliveries. " +
        "A retry comes at once. A delay that the handler or its error asks for comes first. That is at most 4 handler runs."
    )
    assert.strictEqual(
      said({}, "Dead letters"),
      "Messages that fail for good go to orders.dlq. A consumer makes any number of dead letters."
    )
  })

  it("says how many handler runs may begin in a time", () => {
    const sentence = "In any 1s at most 10 handler runs begin in each consumer; a batch is one run."
    assert.include(said({ rateLimit: { max: 10, per: "1 second" } }, "Batches"), sentence)
  })

  it("says how many messages of a tenant may be in progress, and begin in a time", () => {
    const shareLimits = { concurrency: 2, rateLimit: { max: 1, per: "1 second" } } as const
    const sentence =
      "Of the messages with one fairBy, at most 2 messages are in progress, and at most 1 message is delivered in any 1s, over all consumers."
    assert.include(said({ shareLimits }, "Batches"), sentence)
    assert.include(said({ shareLimits }, "Batches"), "No message waits in addition to those in progress.")
  })

  it.each<readonly [RetryPolicy.Options, RegExp]>([
    [
      { maxRetries: 0 },
      /^A message is tried once: its first failure is its last\. .*after 11 deliveries\. .*1 handler run\.$/
    ],
    [
      { maxRetries: "unlimited", maxDeliveries: "unlimited" },
      /without a limit of attempts\. .*delivered again without limit/
    ],
    [{ immediate: 1 }, /its handler runs up to 1 time more at once/],
    [{ maxAge: "3 days" }, /No retry comes later than 3d after the first publish/],
    [{ backoff: Backoff.constant("10 seconds") }, /A retry comes after 10s, each time\. .* over 30s/],
    [{ backoff: Backoff.linear("15 minutes") }, /after 15m, and each time 15m later.*\. No delay is longer than 1d\./],
    [
      { backoff: Backoff.exponential("1 second", { factor: 1.5, max: "1 minute", jitter: "full" }) },
      /after 1s, and each time after 1\.5 times as long.*random between 0 and that.*No delay is longer than 1m\./
    ],
    [{ backoff: Backoff.sequence(["5 seconds", "2 hours"]) }, /after 5s, 2h; from there on the last of these repeats/],
    [{ backoff: Backoff.constant(1000, { jitter: { proportional: 0.125 } }) }, /within 12\.5 % of that/],
    [
      { backoff: Backoff.switchAfter(2, Backoff.constant(0), Backoff.linear("1 hour")) },
      /After each of the first 2 failures, a retry comes at once\. From there on, a retry comes after 1h/
    ]
  ])("says how %j retries", (options, expected) => assert.match(retries(options), expected))

  it("names errors, and where dead letters go by their reasons", () => {
    const retry = RetryPolicy.make({
      classify: { permanent: ["A", "B"], drop: ["C"] },
      deadLetter: { queue: "discard", routes: { permanent: "rejects", undecodable: "rejects" } }
    })
    assert.include(said({ retry }, "Failures"), "Errors named A and B are dead-lettered at once")
    assert.include(said({ retry }, "Failures"), "Errors named C are dropped")
    assert.match(
      said({ retry }, "Dead letters"),
      /used up their retries, or .* are discarded: no dead letter is kept\./
    )
    assert.include(said({ retry }, "Dead letters"), "failed for good, or could not be decoded go to rejects.")
  })

  it("says what else is configured", () => {
    const options: ConsumerOptions.Options = {
      batch: BatchPolicy.make({ maxBatchSize: 50 }),
      concurrency: 4,
      prefetch: 0,
      consumerBackoff: ConsumerBackoff.make({ strategy: "full-jitter", recovery: "stepwise" }),
      deadLetterBudget: { max: 100 },
      handlerTimeout: "unlimited",
      onLimit: "clamp"
    }
    assert.match(
      said(options, "Batches"),
      /gets 50 messages at a time, .* 5s after the first\. Up to 4 .* No message waits/
    )
    assert.match(
      said(options, "Consumer backoff"),
      /^After 10 failed attempts in a row, the whole consumer pauses: for 2s, 4s, 8s and so on, 2m at most\. Each pause is random/
    )
    const begun = (consumerBackoff: ConsumerBackoff.ConsumerBackoff) => said({ consumerBackoff }, "Consumer backoff")
    assert.match(begun(ConsumerBackoff.nsq()), /^After a failed attempt, the whole consumer pauses: for 2s/)
    assert.match(
      begun(ConsumerBackoff.ratio()),
      /^When 50 % of the attempts of the last 30s have failed, of at least 20, the whole consumer pauses: for 2s/
    )
    assert.match(
      begun(ConsumerBackoff.ratio({ failureRatio: 0.125, window: { attempts: 50 } })),
      /^When 12\.5 % of the last 50 attempts have failed, of at least 20, the whole consumer pauses: for 2s/
    )
    assert.include(said(options, "Dead letters"), "stops itself after 100 dead letters, and each success earns 0.1")
    assert.include(said(options, "Limits"), "as long as it likes")
    assert.include(said(options, "Limits"), "shortened to the longest")
  })

  it("consists of whole sentences, whatever is configured", () => {
    const backoff = fc.oneof(
      fc.constant(undefined),
      fc.integer({ min: 0, max: 86_400_000 }).map((ms) => Backoff.constant(ms)),
      fc.double({ min: 1, max: 1e9, noNaN: true }).map((factor) => Backoff.exponential(1, { factor })),
      fc
        .array(fc.integer({ min: 0, max: 86_400_000 }), { minLength: 1, maxLength: 500 })
        .map((all) => Backoff.sequence(all))
    )
    const max = fc.oneof(fc.nat(), fc.constant("unlimited" as const))
    const policies = fc.record({
      maxRetries: max,
      immediate: fc.nat(10),
      backoff,
      maxAge: fc.option(fc.nat(), { nil: undefined })
    })
    fc.assert(
      fc.property(policies, (options) => {
        const text = Explanation.of("orders", { retry: RetryPolicy.make(options) }).flatMap(
          ({ sentences }) => sentences
        )
        for (const sentence of text) assert.match(sentence, /^[A-Z].*\.$/)
        assert.notMatch(text.join(" "), /NaN|undefined|Infinity/)
        assert.isBelow(text.join(" ").length, 4000)
      })
    )
  })
})
