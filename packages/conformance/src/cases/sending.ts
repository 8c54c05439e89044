/** The promises to a producer: confirmation, delays, refusals and bounds. */
import { BrokerError, Codec, QueueDefinition } from "@requeue/core"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"
import * as Workload from "../Workload.ts"

const test = Case.inGroup("sending")

/** Waits for a message's delivery, and returns its time. */
const arrival = (lab: Lab, id: string) =>
  Effect.map(
    lab.until(`the arrival of ${id}`, () => lab.runs.some((run) => run.id === id)),
    () => lab.runs.find((run) => run.id === id)!.at
  )

/** The time at which the broker confirmed a message. */
const confirmation = (lab: Lab, id: string) =>
  lab.entriesOf("Published").find(({ messages }) => messages.some(({ metadata }) => metadata.id === id))!.at

/** Checks that a message that was sent with a delay arrives at its time. */
const comes = (lab: Lab, id: string, delay: number, sent: number) =>
  Effect.map(arrival(lab, id), (at) => lab.checkDelay(id, delay, sent, at, { accepted: confirmation(lab, id) }))

const nothingWasSent = (lab: Lab) =>
  Effect.gen(function* () {
    yield* lab.quiet()
    Check.equal("published", lab.entriesOf("Publishing").length, 0)
    yield* lab.untilEmpty
  })

const exactly = Needs.all(Needs.has("exactCounts"), Needs.counts("ready"))

export const cases: ReadonlyArray<Case.Case> = [
  test(
    "a send ends when the message is stored, not before",
    function* (lab) {
      yield* lab.send("a")
      Check.equal("ready", (yield* lab.harness.pending(lab.queue)).ready, 1)
      yield* lab.send("b", "c")
      Check.equal("ready", (yield* lab.harness.pending(lab.queue)).ready, 3)
    },
    exactly
  ),
  test("a batch is sent in order, and its ids are answered in order", function* (lab) {
    const producer = yield* lab.producer()
    const answered = yield* producer.sendBatch([{ body: 1 }, { body: 2, id: "mine" }, { body: 3 }])
    yield* lab.start()
    yield* lab.untilRuns(3)
    const idOf = new Map(lab.runs.map(({ body, id }) => [body, id]))
    Check.equal("ids", answered, [idOf.get(1), "mine", idOf.get(3)])
    Check.equal("distinct ids", new Set(answered).size, 3)
    Check.equal("an empty batch", yield* producer.sendBatch([]), [])
  }),
  test("a publish of messages for several queues ends when each is stored in its own", function* (lab) {
    const other = yield* lab.harness.uniqueQueue("other")
    const queues = [lab.queue, other]
    const messages = Workload.ids(12).map((id, index) => Workload.outgoing(queues[index % 2]!, id, { now: lab.now() }))
    yield* lab.broker.publish(messages)
    for (const queue of queues) {
      const port = yield* Port.open(lab.broker, { queue, credit: messages.length, within: lab.recovery })
      const found = (yield* port.take(messages.length / 2)).map(({ metadata }) => metadata.id)
      const wanted = messages.filter((message) => message.queue === queue).map(({ metadata }) => metadata.id)
      Check.equal(`messages in ${queue}`, found.toSorted(), wanted.toSorted())
    }
  }),
  test("a delayed send comes at its time", function* (lab) {
    yield* lab.start()
    const sent = lab.now()
    yield* lab.sendDelayed("a", 2 * lab.unit)
    yield* comes(lab, "a", 2 * lab.unit, sent)
    Check.equal("attempts", lab.runs[0]!.attempts, 1)
  }),
  test("the delay of a send: the message's, else the batch's, else the queue's", function* (lab) {
    const queue = QueueDefinition.make(lab.queue, { delay: 3 * lab.unit })
    const producer = yield* lab.producer(queue)
    yield* lab.start()
    const sent = lab.now()
    yield* producer.send("queue", { id: "queue" })
    yield* producer.sendBatch(
      [
        { body: "batch", id: "batch" },
        { body: "message", id: "message", delay: lab.unit }
      ],
      { delay: 2 * lab.unit }
    )
    const units = { message: 1, batch: 2, queue: 3 }
    for (const [id, count] of Object.entries(units)) yield* comes(lab, id, count * lab.unit, sent)
  }),
  test("an explicit delay of 0 beats the batch's and the queue's", function* (lab) {
    const producer = yield* lab.producer(QueueDefinition.make(lab.queue, { delay: 5 * lab.unit }))
    yield* lab.start()
    const sent = lab.now()
    yield* producer.send("a", { id: "a", delay: 0 })
    yield* comes(lab, "a", 0, sent)
    const again = lab.now()
    yield* producer.sendBatch([{ body: "b", id: "b", delay: 0 }], { delay: 5 * lab.unit })
    yield* comes(lab, "b", 0, again)
    yield* producer.sendBatch([{ body: "c", id: "c" }], { delay: 0 })
    yield* arrival(lab, "c")
    Check.equal(
      "delays",
      lab.entriesOf("Published").flatMap(({ messages }) => messages.map(({ delay }) => delay)),
      [0, 0, 0]
    )
  }),
  test("shorter delays overtake longer ones, and a delayed message holds up nothing", function* (lab) {
    yield* lab.start()
    const sent = lab.now()
    const delayOf = (id: string) => Number(id.slice(1)) * lab.unit
    const producer = yield* lab.producer()
    yield* producer.sendBatch(["d3", "d1", "d2", "d0"].map((id) => ({ id, body: id, delay: delayOf(id) })))
    yield* lab.untilRuns(4)
    const order = lab.runs.map(({ id }) => id)
    lab.checkTimely("order", order, ["d0", "d1", "d2", "d3"], sent)
    for (const id of order) yield* comes(lab, id, delayOf(id), sent)
  }),
  test("an invalid delay is an error before anything is sent", function* (lab) {
    const producer = yield* lab.producer()
    for (const delay of [-1, Number.NaN, Number.POSITIVE_INFINITY, "25 hours" as const]) {
      Check.equal("error", (yield* Effect.flip(producer.send("a", { delay })))._tag, "InvalidDelay")
      const batch = producer.sendBatch([{ body: "good" }, { body: "bad", delay }])
      Check.equal("error of a batch", (yield* Effect.flip(batch))._tag, "InvalidDelay")
    }
    yield* nothingWasSent(lab)
  }),
  test("what cannot be encoded, or has a reserved header, is an error before anything is sent", function* (lab) {
    const producer = yield* lab.producer<unknown>()
    const bad = [{ body: undefined }, { body: 1, headers: { requeue: "x" } }, { body: 1, id: "" }]
    for (const entry of bad) {
      const error = yield* Effect.flip(producer.sendBatch([{ body: "good" }, entry]))
      Check.equal("error", error._tag, "EncodeError")
      Check.equal("error names the entry", error.message.includes("entries[1]."), true)
    }
    yield* nothingWasSent(lab)
  }),
  test(
    "a body over the broker's limit is refused, and one at the limit is not",
    function* (lab) {
      const producer = yield* lab.producer(QueueDefinition.make(lab.queue, { codec: Codec.bytes }))
      const { maxBodySize, maxTextSize = maxBodySize } = lab.capabilities
      const refuses = (size: number) =>
        Effect.map(Effect.flip(producer.send(new Uint8Array(size))), (error) =>
          Check.equal("error", [error._tag, "reason" in error && error.reason], ["BrokerError", "BodyTooLarge"])
        )
      yield* refuses(maxTextSize + 1)
      yield* nothingWasSent(lab)
      // The bytes are not valid text.
      yield* refuses(maxBodySize + 1)
      yield* producer.send(new Uint8Array(maxBodySize))
      yield* lab.untilPending({ ready: 1 })
    },
    Needs.bodyLimit
  ),
  test("a send without a confirmation ends with a timeout that says so", function* (lab) {
    lab.faults.publish = () => Effect.never
    const producer = yield* lab.producer(undefined, { publishTimeout: lab.unit })
    const begun = lab.now()
    const error = yield* Effect.flip(producer.send("a"))
    Check.equal("error", [error._tag, "reason" in error && error.reason], ["BrokerError", "Timeout"])
    Check.isTrue("after its time", lab.now() - begun >= lab.unit)
  }),
  test("a broker's refusal reaches the sender", function* (lab) {
    const refusal = new BrokerError.BrokerError({
      broker: "test",
      operation: "publish",
      reason: "QueueFull",
      detail: "full"
    })
    lab.faults.publish = () => Effect.fail(refusal)
    const producer = yield* lab.producer()
    Check.isTrue("the broker's own error", (yield* Effect.flip(producer.send("a"))) === refusal)
  }),
  test("sends that wait for their confirmation are bounded", function* (lab) {
    const gate = yield* Deferred.make<void>()
    lab.faults.publish = () => Deferred.await(gate)
    const producer = yield* lab.producer(undefined, { maxPending: 2 })
    const senders = yield* Effect.forEach(["a", "b", "c"], (id) => Effect.forkChild(producer.send(id, { id })))
    const underWay = () => lab.entriesOf("Publishing").length
    yield* lab.until("two under way", () => underWay() === 2)
    yield* lab.quiet()
    Check.equal("under way", underWay(), 2)
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.joinAll(senders)
    Check.equal("sent", lab.entriesOf("Published").length, 3)
  })
]
