/** The outbox and its relay: what was sent in a transaction reaches the broker as if it had been sent there. */
import { Broker, Producer, Relay } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkOrder, idsOf, keyOf, watch } from "../internal/keys.ts"
import { begin, neighbor, sentTo } from "../internal/transactions.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const needs = Needs.all(Needs.transactions, Needs.has("inbox"))

const test = (name: string, body: Case.Body): Case.Case => Case.inGroup("relay")(name, body, needs)

export const cases: ReadonlyArray<Case.Case> = [
  test("a message from the outbox has the id, the body, the headers and the time of its send", function* (lab) {
    const before = lab.now()
    const work = yield* begin(lab)
    const headers = { "x-tenant": "acme", "content-type": "text/plain" }
    const producer = yield* lab.producer(sentTo(lab))
    yield* producer.within(work.value).send({ amount: 5 }, { id: "a", headers })
    yield* work.commit
    const after = lab.now()
    yield* lab.quiet()
    yield* lab.untilPending({ ready: 1 }, sentTo(lab))
    const [message] = yield* Port.oldest(lab.broker, sentTo(lab), 2)
    const { body, metadata } = message!
    Check.equal("id", metadata.id, "a")
    Check.equal("body", new TextDecoder().decode(body), JSON.stringify({ amount: 5 }))
    Check.equal("headers", message!.headers, headers)
    Check.isTrue(
      "the time of the send",
      metadata.firstPublished >= before && metadata.firstPublished <= after,
      metadata.firstPublished
    )
    Check.equal("attempts", message!.attempts, 1)
  }),
  test("a delayed message from the outbox is never early", function* (lab) {
    const delay = 4 * lab.unit
    const work = yield* begin(lab)
    const producer = yield* lab.producer()
    yield* lab.start()
    const begun = lab.now()
    yield* producer.within(work.value).send("a", { id: "a", delay })
    yield* work.commit
    yield* lab.untilRuns(1)
    Check.isTrue("not early", lab.runs[0]!.at >= begun + delay, lab.runs[0]!.at - begun)
  }),
  test("many messages of many transactions leave the outbox, each once", function* (lab) {
    const ids = Array.from({ length: 60 }, (_, index) => `m${index}`)
    const producer = yield* lab.producer(sentTo(lab))
    for (let at = 0; at < ids.length; at += 20) {
      const open = yield* begin(lab)
      const entries = ids.slice(at, at + 20).map((id) => ({ id, body: id }))
      yield* producer.within(open.value).sendBatch(entries)
      yield* open.commit
    }
    yield* lab.untilPending({ ready: ids.length }, sentTo(lab))
    const sent = yield* Port.oldest(lab.broker, sentTo(lab), ids.length + 1)
    Check.equal("ids", sent.map(({ metadata }) => metadata.id).toSorted(), ids.toSorted())
  }),
  test("brokers in two namespaces share a store: a relay publishes only the messages of its namespace", function* (lab) {
    const other = Effect.provideService(Broker.Broker, yield* neighbor(lab))
    const [own, others] = [yield* lab.producer(sentTo(lab)), yield* other(Producer.make(sentTo(lab)))]
    const work = yield* begin(lab)
    yield* others.within(work.value).send("b", { id: "b" })
    yield* own.within(work.value).send("a", { id: "a" })
    yield* work.commit
    yield* lab.untilPending({ ready: 1 }, sentTo(lab))
    yield* lab.quiet()
    const [first, ...rest] = yield* Port.oldest(lab.broker, sentTo(lab), 2)
    Check.equal("published without its relay", [first?.metadata.id, rest.length], ["a", 0])
    yield* other(Relay.start())
    yield* lab.untilPending({ ready: 2 }, sentTo(lab))
  }),
  Case.inGroup("relay")(
    "messages with keys leave the outbox in the order of their sends, with their keys",
    function* (lab) {
      const ids = idsOf(["a", "b"], 20)
      const order = watch()
      const keys = new Set<string>()
      yield* lab.start({ concurrency: 10 }, (message) => {
        keys.add(String(message.key))
        return order.during(message, Effect.void)
      })
      const producer = yield* lab.producer()
      for (let at = 0; at < ids.length; at += 10) {
        const open = yield* begin(lab)
        const entries = ids.slice(at, at + 10).map((id) => ({ id, body: id, key: keyOf(id) }))
        yield* producer.within(open.value).sendBatch(entries)
        yield* open.commit
      }
      yield* lab.untilEvents("Succeeded", ids.length)
      checkOrder(order, ids)
      Check.equal("keys", [...keys].map(String).toSorted(), ["a", "b"])
    },
    Needs.all(needs, Needs.has("keyedOrder"), Needs.has("parkedKeys"))
  )
]
