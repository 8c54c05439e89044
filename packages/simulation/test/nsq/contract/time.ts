/** Leases and delays: nothing is early. */
import * as Effect from "effect/Effect"
import {
  counts,
  create,
  dpub,
  elapsed,
  mpub,
  nsqd,
  pub,
  publish,
  type Row,
  settled,
  subscribe,
  until
} from "./Script.ts"

/** Whether at least these milliseconds lie between two times. */
const isAfter = (millis: number, from: number, to: number): boolean => to - from >= millis

const lease = 1000

export const rows: ReadonlyArray<Row> = [
  {
    name: "a message is redelivered when its lease has ended",
    source: "https://nsq.io/components/nsqd.html --msg-timeout",
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic, { timeout: lease })
        yield* publish(bench, pub(topic, "m"))
        const from = yield* elapsed
        yield* write("RDY 1")
        const first = yield* next
        const again = yield* next
        return [again.id === first.id, again.attempts, isAfter(lease, from, again.at)]
      }),
    answer: [true, 2, true]
  },
  {
    name: "TOUCH extends the lease from now on",
    source: `${nsqd}channel.go TouchMessage`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic, { timeout: 10_000 })
        yield* publish(bench, pub(topic, "m"))
        yield* write("RDY 1")
        const { id } = yield* next
        yield* Effect.sleep(500)
        const from = yield* elapsed
        yield* write(`TOUCH ${id}`)
        const again = yield* next
        return [again.attempts, isAfter(10_000, from, again.at)]
      }),
    answer: [2, true]
  },
  {
    name: "TOUCH does not extend a lease beyond the longest",
    source: `${nsqd}channel.go TouchMessage`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic, { timeout: 15_000 })
        yield* publish(bench, pub(topic, "m"))
        const from = yield* elapsed
        yield* write("RDY 1")
        const { id } = yield* next
        const touching = Effect.forever(Effect.andThen(write(`TOUCH ${id}`), Effect.sleep(300)))
        const again = yield* Effect.raceFirst(next, touching)
        return [again.attempts, isAfter(15_000, from, again.at)]
      }),
    answer: [2, true]
  },
  {
    name: "what a closed connection had is redelivered after its lease, and not before",
    source: `${nsqd}channel.go RemoveClient`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const other = yield* subscribe(bench, topic)
        const from = yield* Effect.scoped(
          Effect.gen(function* () {
            const { next, write } = yield* subscribe(bench, topic, { timeout: 5000 })
            yield* publish(bench, pub(topic, "m"))
            const began = yield* elapsed
            yield* write("RDY 1")
            yield* next
            return began
          })
        )
        yield* other.write("RDY 1")
        const again = yield* other.next
        return [again.attempts, isAfter(5000, from, again.at)]
      }),
    answer: [2, true]
  },
  {
    name: "a late FIN finishes the next delivery, when that went to the same connection",
    source: `${nsqd}channel.go popInFlightMessage`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, refusal, write } = yield* subscribe(bench, topic, { timeout: lease })
        yield* publish(bench, pub(topic, "m"))
        yield* write("RDY 1")
        const { id } = yield* next
        yield* next
        yield* write(`FIN ${id}`, `FIN ${id}`)
        return [(yield* refusal).replace(id, "ID"), yield* counts(bench, topic)]
      }),
    answer: ["E_FIN_FAILED FIN ID failed ID not in flight", { topic: 0, work: "0, 0, 0" }]
  },
  {
    name: "a late FIN fails when the message went to another connection",
    source: `${nsqd}channel.go popInFlightMessage`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, refusal, write } = yield* subscribe(bench, topic, { timeout: 5000 })
        const other = yield* subscribe(bench, topic)
        yield* publish(bench, pub(topic, "m"))
        yield* write("RDY 1")
        const { id } = yield* next
        yield* write("RDY 0")
        yield* other.write("RDY 1")
        const { attempts } = yield* other.next
        yield* write(`FIN ${id}`)
        return [attempts, (yield* refusal).replace(id, "ID"), yield* counts(bench, topic)]
      }),
    answer: [2, "E_FIN_FAILED FIN ID failed client does not own message", { topic: 0, work: "0, 1, 0" }]
  },
  {
    name: "the end of a lease makes room for another message",
    source: `${nsqd}client_v2.go TimedOutMessage`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic, { timeout: lease })
        yield* publish(bench, mpub(topic, ["a", "b"]))
        yield* write("RDY 1")
        return [(yield* next).body, (yield* next).body]
      }),
    answer: ["a", "b"]
  },
  {
    name: "REQ delays a message, which counts as deferred",
    source: "https://nsq.io/clients/tcp_protocol_spec.html#req",
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic)
        yield* publish(bench, pub(topic, "m"))
        yield* write("RDY 1")
        const { id } = yield* next
        const from = yield* elapsed
        yield* write(`REQ ${id} 8000`)
        const deferred = yield* until(counts(bench, topic), (all) => JSON.stringify(all).includes("0, 0, 1"))
        const again = yield* next
        return [deferred, again.attempts, isAfter(8000, from, again.at)]
      }),
    answer: [{ topic: 0, work: "0, 0, 1" }, 2, true]
  },
  {
    name: "REQ with too long a delay is cut to the longest",
    source: `${nsqd}protocol_v2.go REQ`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic)
        yield* publish(bench, pub(topic, "m"))
        yield* write("RDY 1")
        const { id } = yield* next
        const from = yield* elapsed
        yield* write(`REQ ${id} 3600000`)
        const again = yield* next
        return [again.attempts, isAfter(10_000, from, again.at)]
      }),
    answer: [2, true]
  },
  {
    name: "REQ with a delay that overflows does not delay",
    source: `${nsqd}protocol_v2.go REQ`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { connection, next, write } = yield* subscribe(bench, topic)
        yield* publish(bench, pub(topic, "m"))
        yield* write("RDY 1")
        const { id } = yield* next
        yield* write("RDY 0", `REQ ${id} 9223372036855`)
        const back = yield* until(counts(bench, topic), (all) => !JSON.stringify(all).includes("0, 1, 0"))
        return [connection.isOpen(), back]
      }),
    answer: [true, { topic: 0, work: "1, 0, 0" }]
  },
  {
    name: "DPUB delays a message",
    source: "https://nsq.io/clients/tcp_protocol_spec.html#dpub",
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic)
        const from = yield* elapsed
        yield* publish(bench, dpub(topic, 1200, "m"))
        yield* write("RDY 1")
        const { at, attempts } = yield* next
        return [attempts, isAfter(1200, from, at)]
      }),
    answer: [1, true]
  },
  {
    name: "a shorter delay overtakes a longer one, and a delayed message holds up nothing",
    source: `${nsqd}channel.go processDeferredQueue`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        const { next, write } = yield* subscribe(bench, topic)
        // nsqd scans a new channel after up to 5 seconds.
        yield* Effect.sleep(5100)
        yield* publish(bench, dpub(topic, 2000, "long"), dpub(topic, 500, "short"), pub(topic, "none"))
        yield* write("RDY 3")
        return [(yield* next).body, (yield* next).body, (yield* next).body]
      }),
    answer: ["none", "short", "long"]
  },
  {
    name: "a deferral begins when there is a channel",
    source: `${nsqd}topic.go messagePump`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* publish(bench, dpub(topic, 1000, "m"))
        yield* Effect.sleep(1500)
        const waiting = yield* counts(bench, topic)
        const from = yield* elapsed
        yield* create(bench, topic)
        const { next, write } = yield* subscribe(bench, topic)
        yield* write("RDY 1")
        return [waiting, isAfter(1000, from, (yield* next).at)]
      }),
    answer: [{ topic: 1 }, true]
  },
  {
    name: "a deferred message is in no depth",
    source: "https://nsq.io/components/nsqd.html#get-stats",
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
