/** Restarts, each on an nsqd of its own. */
import * as Effect from "effect/Effect"
import {
  ask,
  type Bench,
  counts,
  create,
  dpub,
  mpub,
  nsqd,
  pub,
  publish,
  type Row,
  settled,
  subscribe
} from "./Script.ts"

const durability = "https://nsq.io/overview/features_and_guarantees.html"

/** A topic with two messages that wait, one in flight and one deferred. */
const filled = (bench: Bench) =>
  Effect.gen(function* () {
    const topic = bench.name("t")
    yield* create(bench, topic)
    yield* publish(bench, pub(topic, "in flight"))
    const consumer = yield* subscribe(bench, topic)
    yield* consumer.write("RDY 1")
    yield* consumer.next
    yield* publish(bench, mpub(topic, ["a", "b"]))
    yield* settled(bench, topic)
    yield* publish(bench, dpub(topic, 10_000, "deferred"))
    return { topic, closed: consumer.closed, before: yield* settled(bench, topic) }
  })

const before = { topic: 0, work: "2, 1, 1" }

/** What a restart leaves. */
const left = (how: "orderly" | "kill") => (bench: Bench) =>
  Effect.gen(function* () {
    const { before: full, closed, topic } = yield* filled(bench)
    yield* bench.driver.restart(how)
    return [full, yield* closed, yield* counts(bench, topic)]
  })

const ended = "nsqd closed the connection"

export const rows: ReadonlyArray<Row> = [
  {
    name: "an orderly restart keeps all messages, and forgets deferrals",
    source: `${nsqd}channel.go flush`,
    script: left("orderly"),
    answer: [before, ended, { topic: 0, work: "4, 0, 0" }]
  },
  {
    name: "an orderly restart keeps attempts, times and bodies",
    source: `${nsqd}message.go WriteTo`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const first = yield* Effect.scoped(
          Effect.gen(function* () {
            const { next, write } = yield* subscribe(bench, topic)
            yield* publish(bench, pub(topic, "m"))
            yield* write("RDY 1")
            return yield* next
          })
        )
        yield* bench.driver.restart("orderly")
        const { next, write } = yield* subscribe(bench, topic)
        yield* write("RDY 1")
        const again = yield* next
        return [again.id === first.id, again.timestamp === first.timestamp, again.body, again.attempts]
      }),
    answer: [true, true, "m", 2]
  },
  {
    name: "an orderly restart keeps what waits in a topic, and delivers deferred messages at once",
    source: `${nsqd}topic.go flush`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* publish(bench, pub(topic, "a"), dpub(topic, 10_000, "b"))
        yield* bench.driver.restart("orderly")
        const kept = yield* counts(bench, topic)
        yield* create(bench, topic)
        return [kept, yield* settled(bench, topic)]
      }),
    answer: [{ topic: 2 }, { topic: 0, work: "2, 0, 0" }]
  },
  {
    name: "a restarted nsqd has another identity, and still its topics",
    source: "https://nsq.io/components/nsqd.html#get-info",
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* create(bench, topic)
        const [, one] = yield* ask(bench, "GET", "info")
        yield* Effect.sleep(1000)
        yield* bench.driver.restart("orderly")
        const [, other] = yield* ask(bench, "GET", "info")
        return [JSON.stringify(one) === JSON.stringify(other), yield* counts(bench, topic)]
      }),
    answer: [false, { topic: 0, work: "0, 0, 0" }]
  },
  {
    name: "a killed nsqd loses what was in memory, in flight and deferred, and keeps its topics and channels",
    source: durability,
    script: left("kill"),
    answer: [before, ended, { topic: 0, work: "0, 0, 0" }]
  }
]

/** The flags of an nsqd that keeps nothing in memory. */
export const withoutMemory = { memQueueSize: 0 }

export const rowsWithoutMemory: ReadonlyArray<Row> = [
  {
    name: "without memory, a killed nsqd loses what it has just written, what was in flight, and what was deferred",
    source: "https://github.com/nsqio/go-diskqueue/blob/v1.1.0/diskqueue.go retrieveMetaData, seen on 1.3.0",
    script: left("kill"),
    answer: [before, ended, { topic: 0, work: "0, 0, 0" }]
  },
  {
    name: "without memory, a killed nsqd keeps what it wrote 2 seconds ago, and loses what was in flight",
    source: "https://github.com/nsqio/go-diskqueue/blob/v1.1.0/diskqueue.go ioLoop",
    script: (bench) =>
      Effect.gen(function* () {
        const { topic } = yield* filled(bench)
        yield* Effect.sleep(2500)
        yield* bench.driver.restart("kill")
        const { isQuiet, next, write } = yield* subscribe(bench, topic)
        yield* write("RDY 10")
        return [(yield* next).body, (yield* next).body, yield* isQuiet]
      }),
    answer: ["a", "b", true]
  },
  {
    name: "without memory, an orderly restart keeps everything",
    source: `${nsqd}channel.go flush`,
    script: left("orderly"),
    answer: [before, ended, { topic: 0, work: "4, 0, 0" }]
  },
  {
    name: "without memory and without a channel, a deferral is forgotten",
    source: `${nsqd}topic.go put, https://github.com/nsqio/nsq/pull/1376`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* publish(bench, dpub(topic, 10_000, "m"))
        yield* create(bench, topic)
        return yield* settled(bench, topic)
      }),
    answer: { topic: 0, work: "1, 0, 0" }
  },
  {
    name: "without memory, a channel that is ready for it defers a message",
    source: `${nsqd}topic.go put, https://github.com/nsqio/nsq/pull/1376`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* create(bench, topic)
        yield* publish(bench, dpub(topic, 10_000, "m"))
        return yield* settled(bench, topic)
      }),
    answer: { topic: 0, work: "0, 0, 1" }
  }
]
