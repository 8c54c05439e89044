import { assert, describe, it } from "@effect/vitest"
import { Backoff, ConfigurationError, RetryPolicy } from "@requeue/core"
import * as fc from "fast-check"
import * as Names from "../src/internal/names.ts"
import { NsqPlan } from "../src/index.ts"

const parse = (name: string, channel = "requeue") => {
  const parsed = Names.parse(name, channel)
  if (Names.isRefused(parsed)) throw new Error(parsed.detail)
  return parsed
}

const at = ({ channel, topic }: Names.Queue) => `${topic} ${channel}`

describe("a name", () => {
  it.each([
    ["orders", "orders requeue"],
    ["orders/billing", "orders billing"],
    ["orders.eu", "orders.eu requeue"],
    ["orders.dlq", "orders.requeue.dlq requeue"],
    ["orders/billing.dlq", "orders.billing.dlq requeue"],
    ["orders/billing.v2", "orders billing.v2"],
    ["orders/.b-_.", "orders .b-_."],
    ["orders/billing.v2#ephemeral", "orders billing.v2#ephemeral"],
    ["orders.dlq.dlq", "orders.requeue.dlq.requeue.dlq requeue"],
    ["orders#ephemeral", "orders#ephemeral requeue"],
    ["orders/tmp#ephemeral", "orders tmp#ephemeral"]
  ])("%s means %s", (name, meaning) => assert.strictEqual(at(parse(name)), meaning))

  it("of a topic alone takes the default channel, its dead letters too", () => {
    assert.strictEqual(at(parse("orders", "billing")), "orders billing")
    assert.strictEqual(at(parse("orders.dlq", "billing")), "orders.billing.dlq requeue")
    assert.strictEqual(at(parse("orders.dlq", "billing")), at(parse("orders/billing.dlq")))
    const isSame = (one: string, other: string) => Names.isSame(one, other, "billing")
    assert.isTrue(isSame("orders.dlq", "orders/billing.dlq") && isSame("orders.dlq", "orders.billing.dlq/requeue"))
    assert.isTrue(isSame("orders", "orders/billing"))
    assert.isFalse(isSame("orders", "orders/other") || isSame("orders.dlq", "orders-dlq") || isSame("a b", "a b"))
  })

  it("that is long, or ephemeral, has a digest in what is derived from it", () => {
    const long = "x".repeat(64)
    assert.match(parse(`${long}.dlq`).topic, /^x{46}\.[0-9a-z]{13}\.dlq$/)
    assert.match(Names.retry(parse(long)).topic, /^x{44}\.[0-9a-z]{13}\.retry$/)
    assert.match(Names.retry(parse("orders/tmp#ephemeral")).topic, /^orders\.tmp\.[0-9a-z]{13}\.retry#ephemeral$/)
    // They exist on servers: never another digest for the same queue, also not for one that begins with 0.
    assert.strictEqual(parse(`${long}.dlq`).topic, `${"x".repeat(46)}.3t1fbu6xw8no2.dlq`)
    assert.strictEqual(Names.retry(parse("orders/t3#ephemeral")).topic, "orders.t3.0mcm7fnneaotg.retry#ephemeral")
    // A channel with dots would share its topics with that of another topic.
    assert.match(parse("orders/billing.v2.dlq").topic, /^orders\.billing\.v2\.[0-9a-z]{13}\.dlq$/)
    assert.notStrictEqual(parse("orders/billing.v2.dlq").topic, parse("orders.billing/v2.dlq").topic)
    // A dead letter outlives its queue.
    assert.match(parse("orders/tmp#ephemeral.dlq").topic, /^orders\.tmp\.[0-9a-z]{13}\.dlq$/)
  })

  it.each([
    "",
    " ",
    "a b",
    "a/b/c",
    "a/",
    "/a",
    "a/.dlq",
    ".dlq",
    "a#b",
    "a#ephemeral.x",
    "a/b#ephemeral.x",
    "ü",
    "a/ü",
    "x".repeat(65),
    `a/${"x".repeat(65)}`,
    `a/${"x".repeat(55)}#ephemeral`
  ])("%o is refused", (name) => {
    const refused = Names.parse(name, "requeue")
    assert.isTrue(Names.isRefused(refused))
    if (Names.isRefused(refused)) assert.include(refused.remedy, "64")
  })
})

describe("names of any kind", () => {
  const part = fc.stringMatching(/^[.a-zA-Z0-9_-]{1,54}$/)
  const ephemeral = fc.constantFrom("", "", "", "#ephemeral")
  const name = fc
    .tuple(part, ephemeral)
    .map(([stem, mark]) => `${stem}${mark}`)
    .filter((each) => !each.endsWith(".dlq"))
  const queue = fc.oneof(
    name,
    fc.tuple(name, name).map(([left, right]) => `${left}/${right}`),
    // What is most likely to be taken for another.
    fc.constantFrom(
      "a",
      "a.b",
      "a/b",
      "a.b/c",
      "a.b.c",
      "a/b.c",
      "a/b.c#ephemeral",
      "a.b/c#ephemeral",
      "a/b#ephemeral",
      "a.b#ephemeral",
      "a/requeue",
      "a.requeue"
    )
  )

  it("are within what nsqd takes, whatever is derived from them", () =>
    fc.assert(
      fc.property(queue, (text) => {
        const source = parse(text)
        for (const each of [source, Names.retry(source), parse(`${text}.dlq`), parse(`${text}.dlq.dlq`)]) {
          assert.match(each.topic, /^[.a-zA-Z0-9_-]+(#ephemeral)?$/)
          assert.match(each.channel, /^[.a-zA-Z0-9_-]+(#ephemeral)?$/)
          assert.isAtMost(each.topic.length, 64)
          assert.isAtMost(each.channel.length, 64)
        }
      })
    ))

  it("never share a retry or dead-letter topic", () =>
    fc.assert(
      fc.property(queue, queue, (one, other) => {
        const [a, b] = [parse(one), parse(other)]
        const derived = (text: string) => [Names.retry(parse(text)).topic, parse(`${text}.dlq`).topic]
        const shared = derived(one).filter((each) => derived(other).includes(each))
        assert.lengthOf(shared, at(a) === at(b) ? 2 : 0, JSON.stringify([one, other, shared]))
      })
    ))
})

describe("a plan", () => {
  const settings = { channel: "requeue", retry: "native", envelope: "always", create: true, http: true } as const
  const make = (
    options: Partial<Parameters<typeof NsqPlan.make>[1]> = {},
    backoff = Backoff.constant("10 minutes")
  ) => {
    const request = { queue: "orders/billing", retry: RetryPolicy.make({ backoff }), deadLetterQueues: ["poison"] }
    const made = NsqPlan.make(request, { ...settings, ...options }, 3_600_000)
    if (made instanceof ConfigurationError.ConfigurationError) throw made
    return made
  }

  it("names what a queue becomes, and prints it", () =>
    assert.strictEqual(
      NsqPlan.format(make()),
      [
        "messages: topic orders, channel billing",
        "retries: topic orders.billing.retry, channel billing",
        "dead letters: topic poison, channel requeue",
        "retries are requeued by nsqd, up to 1h"
      ].join("\n")
    ))

  it("says when a delay is over the cap, and when all retries are copies", () => {
    assert.match(make({}, Backoff.constant("2 hours")).notes.join(), /longer delays are deferred copies/)
    assert.match(make({ retry: "exact" }).notes.join(), /retries are copies/)
  })

  it("says what the options cost", () => {
    assert.match(make({ envelope: "never" }).notes.join(), /without id and headers/)
    for (const option of ["create", "http"]) assert.match(make({ [option]: false }).notes.join(), /on first use/)
  })

  it.each([
    [{ queue: "a b" }, "queue"],
    [{ queue: "a", deadLetterQueues: ["b c"] }, "retry.deadLetter"],
    [{ queue: "a/b", deadLetterQueues: ["a/b.poison"] }, "retry.deadLetter"],
    [{ queue: "a/b", deadLetterQueues: ["a"] }, "retry.deadLetter"]
  ])("%j is refused at %s", (request, field) => {
    const refused = NsqPlan.make(request, settings, 1000)
    assert.instanceOf(refused, ConfigurationError.ConfigurationError)
    if (refused instanceof ConfigurationError.ConfigurationError) assert.strictEqual(refused.field, field)
  })
})
