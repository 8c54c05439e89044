/** A message is delivered as it was sent. */
import { Codec, QueueDefinition } from "@requeue/core"
import { Settlement } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

const test = Case.inGroup("delivery")

const everyByte = Uint8Array.from({ length: 1024 }, (_, index) => (index * 7) % 256)

/** Sends bytes, and returns the bytes that the handler received. */
const roundTrip = (lab: Lab, body: Uint8Array) =>
  Effect.gen(function* () {
    const queue = QueueDefinition.make(lab.queue, { codec: Codec.bytes })
    const producer = yield* lab.producer(queue)
    yield* producer.send(body)
    let received: Uint8Array | undefined
    yield* lab.start({}, ({ body }) => void (received = body), queue)
    yield* lab.untilRuns(1)
    return Check.present("body", received)
  })

const odd = { "Straße-π": "naïve ☃ 🚀", "x-empty": "", "X-Case": "a", "x-case": "b", ["__proto__"]: "p" }

export const cases: ReadonlyArray<Case.Case> = [
  test("a message is delivered once, with its body, id and first attempt", function* (lab) {
    const producer = yield* lab.producer<unknown>()
    const sent = lab.now()
    const id = yield* producer.send({ hello: ["world", 1, null] })
    yield* lab.start()
    const [run] = yield* lab.untilRuns(1)
    Check.equal("body", run!.body, { hello: ["world", 1, null] })
    Check.equal("id", run!.id, id)
    Check.equal("attempts", run!.attempts, 1)
    Check.isTrue("the timestamp is when it was sent", run!.timestamp >= sent - 1000 && run!.timestamp <= run!.at + 1000)
    yield* lab.quiet()
    Check.equal("runs", lab.runs.length, 1)
    yield* lab.untilEmpty
  }),
  test("a body of any bytes survives byte for byte", function* (lab) {
    Check.sameBytes("body", yield* roundTrip(lab, everyByte), everyByte)
  }),
  test("an empty body survives", function* (lab) {
    Check.sameBytes("body", yield* roundTrip(lab, new Uint8Array(0)), new Uint8Array(0))
  }),
  test("a body of 256 KB survives", function* (lab) {
    // Metadata and headers may count towards the broker's limit as well.
    const size = Math.min(256_000, lab.capabilities.maxBodySize - 4096)
    const body = Uint8Array.from({ length: size }, (_, index) => (index * 31 + (index >> 8)) % 256)
    Check.sameBytes("body", yield* roundTrip(lab, body), body)
  }),
  test("headers survive, with any text and with names that differ in case", function* (lab) {
    const producer = yield* lab.producer()
    yield* producer.send("a", { headers: odd })
    yield* lab.start()
    const [run] = yield* lab.untilRuns(1)
    Check.equal("headers", run!.headers, { "content-type": "application/json", ...odd })
  }),
  test("headers, body, id and time of first publish are the same after retries", function* (lab) {
    const producer = yield* lab.producer()
    const id = yield* producer.send({ n: 1 }, { headers: odd })
    yield* lab.start({}, (message) => {
      if (message.attempts === 1) message.retry()
      if (message.attempts === 2) message.retry({ delay: lab.unit })
    })
    const runs = yield* lab.untilRuns(3)
    for (const run of runs) {
      Check.equal("id", run.id, id)
      Check.equal("headers", run.headers, { "content-type": "application/json", ...odd })
      Check.equal("body", run.body, { n: 1 })
      Check.equal("timestamp", run.timestamp, runs[0]!.timestamp)
    }
  }),
  test("messages wait for a consumer", function* (lab) {
    yield* lab.send("a", "b", "c")
    yield* lab.quiet()
    yield* lab.start()
    const runs = yield* lab.untilRuns(3)
    Check.equal("ids", runs.map(({ id }) => id).toSorted(), ["a", "b", "c"])
  }),
  test(
    "messages come in the order in which they were sent",
    function* (lab) {
      const ids = Array.from({ length: 40 }, (_, index) => `m${index}`)
      yield* lab.send(...ids.slice(0, 20))
      for (const id of ids.slice(20)) yield* lab.send(id)
      yield* lab.start()
      yield* lab.untilRuns(40)
      Check.equal(
        "order",
        lab.runs.map(({ id }) => id),
        ids
      )
    },
    Needs.has("ordered")
  ),
  test(
    "where the broker keeps an order, what is given back comes before what was sent after it",
    function* (lab) {
      for (const id of ["a", "b", "c"]) yield* lab.publish(id)
      const port = yield* Port.open(lab.broker, { queue: lab.queue, credit: 1 })
      yield* port.settle(yield* port.next, Settlement.Release())
      const seen: Array<string> = []
      for (let count = 1; count <= 3; count++) {
        const delivery = yield* port.next
        seen.push(delivery.metadata.id)
        yield* port.settle(delivery, Settlement.Ack)
      }
      Check.equal("order", seen, ["a", "b", "c"])
    },
    Needs.has("ordered")
  ),
  test(
    "where the broker keeps no order, every message comes all the same",
    function* (lab) {
      const ids = Array.from({ length: 40 }, (_, index) => `m${index}`)
      yield* lab.send(...ids)
      yield* lab.start()
      yield* lab.untilRuns(40)
      Check.equal("ids", lab.runs.map(({ id }) => id).toSorted(), ids.toSorted())
    },
    Needs.lacks("ordered")
  ),
  test("two consumers of a queue share its messages", function* (lab) {
    const ids = Array.from({ length: 20 }, (_, index) => `m${index}`)
    const seen = [new Set<string>(), new Set<string>()]
    for (const mine of seen) {
      yield* lab.start({}, (message) => {
        mine.add(message.id)
        return lab.until("a message for each consumer", () => seen.every(({ size }) => size > 0))
      })
    }
    yield* lab.send(...ids)
    yield* lab.untilEvents("Succeeded", 20)
    yield* lab.quiet()
    // The other consumer runs a message whose lease has ended.
    checkKept(lab, "runs", lab.runs.length, 20, lab.runs[0]!.at)
  }),
  test("two queues do not mix", function* (lab) {
    const other = yield* lab.harness.uniqueQueue("other")
    const producer = yield* lab.producer(other)
    yield* producer.send("theirs")
    yield* lab.send("ours")
    yield* lab.start()
    yield* lab.untilRuns(1)
    yield* lab.quiet()
    Check.equal(
      "ids",
      lab.runs.map(({ id }) => id),
      ["ours"]
    )
    yield* lab.untilPending({ ready: 1 }, other)
  }),
  test("a codec may be asynchronous, and its rejection is an undecodable body", function* (lab) {
    const decode = async (bytes: Uint8Array): Promise<unknown> => {
      const value: unknown = Codec.json.decode(bytes, {})
      await Promise.resolve()
      if (value === "bad") throw new Error("refused")
      return value
    }
    const queue = QueueDefinition.make<unknown>(lab.queue, { codec: { ...Codec.json, decode } })
    yield* lab.send("a", "bad", "c")
    yield* lab.start({}, () => {}, queue)
    yield* lab.untilEvents("Succeeded", 2)
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("dead letter", [letter!.metadata.id, letter!.metadata.deadLetter?.reason], ["bad", "undecodable"])
    Check.equal("runs", lab.runs.map(({ id }) => id).toSorted(), ["a", "c"])
  })
]
