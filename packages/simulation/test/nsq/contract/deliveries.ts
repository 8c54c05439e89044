/** Credit, deliveries and their settlement. */
import * as Effect from "effect/Effect"
import {
  type Bench,
  channel,
  counts,
  type Consumer,
  create,
  mpub,
  nsqd,
  pub,
  publish,
  type Row,
  settled,
  subscribe,
  until
} from "./Script.ts"

const source = `${nsqd}protocol_v2.go`

/** A consumer of a topic with these messages. */
const consumer = (bench: Bench, ...bodies: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const topic = bench.name("t")
    yield* create(bench, topic)
    yield* publish(bench, mpub(topic, bodies))
    yield* settled(bench, topic)
    return { topic, ...(yield* subscribe(bench, topic)) }
  })

const bodies = ({ next }: Consumer, count: number) =>
  Effect.map(Effect.replicateEffect(next, count), (all) => all.map(({ body }) => body))

/** A command that a consumer writes while a message is in flight, and the reason for which nsqd ends the connection. */
const fatal = (name: string, command: (id: string) => string, text: string): Row => ({
  name,
  source,
  script: (bench) =>
    Effect.gen(function* () {
      const { closed, next, topic, write } = yield* consumer(bench, "m")
      yield* write("RDY 1")
      const { id } = yield* next
      yield* write(command(id))
      return [(yield* closed).replace(id, "ID"), yield* counts(bench, topic)]
    }),
  answer: [text, { topic: 0, work: "0, 1, 0" }]
})

export const rows: ReadonlyArray<Row> = [
  {
    name: "no more is in flight than RDY, and a settlement makes room for one",
    source: "https://nsq.io/clients/tcp_protocol_spec.html#rdy",
    script: (bench) =>
      Effect.gen(function* () {
        const { isQuiet, next, topic, write } = yield* consumer(bench, "a", "b", "c")
        const before = yield* isQuiet
        yield* write("RDY 2")
        const [{ id }] = [yield* next, yield* next]
        const full = yield* isQuiet
        const held = yield* counts(bench, topic)
        yield* write(`FIN ${id}`)
        return [before, full, held, (yield* next).body]
      }),
    answer: [true, true, { topic: 0, work: "1, 2, 0" }, "c"]
  },
  {
    name: "RDY without a number is RDY 1",
    source: `${source} RDY`,
    script: (bench) =>
      Effect.gen(function* () {
        const { isQuiet, next, write } = yield* consumer(bench, "a", "b")
        yield* write("RDY")
        return [(yield* next).body, yield* isQuiet]
      }),
    answer: ["a", true]
  },
  {
    name: "a lower RDY than what is in flight takes nothing back, and sends nothing until less is in flight",
    source: `${nsqd}client_v2.go IsReadyForMessages`,
    script: (bench) =>
      Effect.gen(function* () {
        const { isQuiet, next, write } = yield* consumer(bench, "a", "b", "c", "d")
        yield* write("RDY 3")
        const [{ id: first }, { id: second }, { id: third }] = [yield* next, yield* next, yield* next]
        yield* write("RDY 1", `FIN ${first}`, `FIN ${second}`)
        const quiet = yield* isQuiet
        yield* write(`FIN ${third}`)
        return [quiet, (yield* next).body]
      }),
    answer: [true, "d"]
  },
  {
    name: "two connections share the messages of a channel",
    source: "https://nsq.io/overview/design.html",
    script: (bench) =>
      Effect.gen(function* () {
        const { next, topic, write } = yield* consumer(bench, "a", "b")
        const other = yield* subscribe(bench, topic)
        yield* write("RDY 1")
        yield* other.write("RDY 1")
        return [(yield* next).body, (yield* other.next).body].toSorted()
      }),
    answer: ["a", "b"]
  },
  {
    name: "CLS stops messages, later RDY are ignored, and what is in flight can be settled",
    source: `${source} CLS`,
    script: (bench) =>
      Effect.gen(function* () {
        const { connection, isQuiet, next, topic, write } = yield* consumer(bench, "a", "b", "c")
        yield* write("RDY 2")
        const [{ id }, { id: other }] = [yield* next, yield* next]
        yield* Effect.promise(connection.stop)
        yield* write("RDY 5", `FIN ${id}`, `REQ ${other} 0`)
        return [yield* isQuiet, connection.isOpen(), yield* counts(bench, topic)]
      }),
    answer: [true, true, { topic: 0, work: "2, 0, 0" }]
  },
  {
    name: "a requeued message goes to the end, and its attempts grow",
    source: `${nsqd}channel.go put`,
    script: (bench) =>
      Effect.gen(function* () {
        const { next, write } = yield* consumer(bench, "a", "b")
        yield* write("RDY 1")
        const { id } = yield* next
        yield* write(`REQ ${id} 0`)
        const second = yield* next
        yield* write(`FIN ${second.id}`)
        const again = yield* next
        return [second.body, again.body, again.attempts]
      }),
    answer: ["b", "a", 2]
  },
  {
    name: "commands of one write are carried out in their order",
    source: `${source} IOLoop`,
    script: (bench) =>
      Effect.gen(function* () {
        const { isQuiet, next, write, ...rest } = yield* consumer(bench, "a", "b", "c", "d")
        yield* write("RDY 2")
        const [{ id }, { id: other }] = [yield* next, yield* next]
        yield* write(`FIN ${id}`, `REQ ${other} 0`, "RDY 0", "RDY 1", "NOP")
        const first = yield* bodies({ isQuiet, next, write, ...rest }, 1)
        return [first.length, rest.connection.isOpen()]
      }),
    answer: [1, true]
  },
  ...["FIN", "REQ", "TOUCH"].map(
    (command): Row => ({
      name: `${command} of a message that is not in flight fails with its id, and keeps the connection`,
      source: `https://nsq.io/clients/tcp_protocol_spec.html#${command.toLowerCase()}`,
      script: (bench) =>
        Effect.gen(function* () {
          const { connection, refusal, write } = yield* consumer(bench, "m")
          yield* write(command === "REQ" ? "REQ 0123456789abcdef 0" : `${command} 0123456789abcdef`)
          return [yield* refusal, connection.isOpen()]
        }),
      answer: [`E_${command}_FAILED ${command} 0123456789abcdef failed ID not in flight`, true]
    })
  ),
  {
    name: "a message is settled once",
    source: `${nsqd}channel.go popInFlightMessage`,
    script: (bench) =>
      Effect.gen(function* () {
        const { next, refusal, topic, write } = yield* consumer(bench, "m")
        yield* write("RDY 1")
        const { id } = yield* next
        yield* write(`FIN ${id}`, `FIN ${id}`, `REQ ${id} 0`)
        const refused = [(yield* refusal).replace(id, "ID"), (yield* refusal).replace(id, "ID")]
        return [refused, yield* counts(bench, topic)]
      }),
    answer: [
      ["E_FIN_FAILED FIN ID failed ID not in flight", "E_REQ_FAILED REQ ID failed ID not in flight"],
      { topic: 0, work: "0, 0, 0" }
    ]
  },
  {
    name: "only the connection that received a message may settle it",
    source: `${nsqd}channel.go popInFlightMessage`,
    script: (bench) =>
      Effect.gen(function* () {
        const { next, topic, write } = yield* consumer(bench, "m")
        const other = yield* subscribe(bench, topic)
        yield* write("RDY 1")
        const { id } = yield* next
        yield* other.write(`FIN ${id}`, `TOUCH ${id}`)
        const refused = [(yield* other.refusal).replace(id, "ID"), (yield* other.refusal).replace(id, "ID")]
        return [refused, yield* counts(bench, topic)]
      }),
    answer: [
      [
        "E_FIN_FAILED FIN ID failed client does not own message",
        "E_TOUCH_FAILED TOUCH ID failed client does not own message"
      ],
      { topic: 0, work: "0, 1, 0" }
    ]
  },
  fatal("RDY above the limit closes the connection", () => "RDY 11", "E_INVALID RDY count 11 out of range 0-10"),
  fatal("a negative RDY closes the connection", () => "RDY -1", "E_INVALID RDY could not parse count -1"),
  fatal("an id of another length closes the connection", () => "FIN short", "E_INVALID invalid message ID"),
  fatal(
    "a fraction of a millisecond closes the connection, and the message stays in flight",
    (id) => `REQ ${id} 1500.5`,
    "E_INVALID REQ could not parse timeout 1500.5"
  ),
  fatal(
    "a number with an exponent closes the connection",
    (id) => `REQ ${id} 1e+21`,
    "E_INVALID REQ could not parse timeout 1e+21"
  ),
  fatal(
    "REQ without a delay closes the connection",
    (id) => `REQ ${id}`,
    "E_INVALID REQ insufficient number of params"
  ),
  fatal("a second SUB closes the connection", () => `SUB t ${channel}`, "E_INVALID cannot SUB in current state"),
  {
    name: "what follows a command that closes the connection is not read",
    source: `${source} IOLoop`,
    script: (bench) =>
      Effect.gen(function* () {
        const { closed, next, topic, write } = yield* consumer(bench, "a", "b")
        yield* write("RDY 2")
        const [{ id }, { id: other }] = [yield* next, yield* next]
        yield* write(`FIN ${id}`, "RDY 99", `FIN ${other}`)
        return [yield* closed, yield* counts(bench, topic)]
      }),
    answer: ["E_INVALID RDY count 99 out of range 0-10", { topic: 0, work: "0, 1, 0" }]
  },
  {
    name: "a channel delivers what was published before its first client came",
    source: "https://nsq.io/overview/design.html",
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* publish(bench, pub(topic, "a"))
        const { next, write } = yield* subscribe(bench, topic)
        yield* write("RDY 1")
        const message = yield* next
        yield* write(`FIN ${message.id}`)
        return [message.body, message.attempts, yield* until(counts(bench, topic), (all) => all?.topic === 0)]
      }),
    answer: ["a", 1, { topic: 0, work: "0, 0, 0" }]
  }
]
