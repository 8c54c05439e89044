/** Publish commands and their answers. */
import * as Effect from "effect/Effect"
import { counts, create, createTopic, dpub, mpub, nsqd, pub, publish, publisher, type Row, settled } from "./Script.ts"

const source = `${nsqd}protocol_v2.go`
const closed = "nsqd connection closed"

/** A command that is refused, and what the topic holds afterwards. */
const refusal = (name: string, command: (topic: string) => Buffer, text: string, after: unknown): Row => ({
  name,
  source,
  script: (bench) =>
    Effect.gen(function* () {
      const topic = bench.name("t")
      const answers = yield* publish(bench, command(topic))
      return [answers, yield* counts(bench, topic)]
    }),
  answer: [[text], after]
})

const big = "x".repeat(1001)

export const rows: ReadonlyArray<Row> = [
  {
    name: "PUB, MPUB and DPUB are answered in their order",
    source: "https://nsq.io/clients/tcp_protocol_spec.html#pub",
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* create(bench, topic)
        const answers = yield* publish(bench, pub(topic, "a"), mpub(topic, ["b", "c", "d"]), dpub(topic, 10_000, "e"))
        return [answers, yield* settled(bench, topic)]
      }),
    answer: [["OK", "OK", "OK"], { topic: 0, work: "4, 0, 1" }]
  },
  refusal(
    "an empty message is refused",
    (topic) => pub(topic, ""),
    "E_BAD_MESSAGE PUB invalid message body size 0",
    undefined
  ),
  refusal(
    "a message that is too large is refused",
    (topic) => pub(topic, big),
    "E_BAD_MESSAGE PUB message too big 1001 > 1000",
    undefined
  ),
  refusal(
    "a deferred message that is too large is refused",
    (topic) => dpub(topic, 1, big),
    "E_BAD_MESSAGE DPUB message too big 1001 > 1000",
    undefined
  ),
  refusal(
    "an MPUB with a message that is too large stores none, but makes its topic",
    (topic) => mpub(topic, ["a", big, "b"]),
    "E_BAD_MESSAGE MPUB message too big 1001 > 1000",
    { topic: 0 }
  ),
  refusal(
    "an MPUB with an empty message stores none",
    (topic) => mpub(topic, ["a", ""]),
    "E_BAD_MESSAGE MPUB invalid message(1) body size 0",
    { topic: 0 }
  ),
  refusal(
    "an MPUB that is too large is refused",
    (topic) =>
      mpub(
        topic,
        Array.from({ length: 4 }, () => "x".repeat(900))
      ),
    "E_BAD_BODY MPUB body too big 3620 > 3000",
    { topic: 0 }
  ),
  refusal(
    "an MPUB without messages is refused",
    (topic) => mpub(topic, []),
    "E_BAD_BODY MPUB invalid message count 0",
    {
      topic: 0
    }
  ),
  refusal(
    "a DPUB with too long a delay is refused",
    (topic) => dpub(topic, 10_001, "m"),
    "E_INVALID DPUB timeout 10001 out of range 0-10000",
    undefined
  ),
  refusal(
    "a DPUB with a fraction of a millisecond is refused",
    (topic) => dpub(topic, 1.5, "m"),
    "E_INVALID DPUB could not parse timeout 1.5",
    undefined
  ),
  refusal(
    "a DPUB with a negative delay is refused",
    (topic) => dpub(topic, -1, "m"),
    "E_INVALID DPUB could not parse timeout -1",
    undefined
  ),
  refusal(
    "a DPUB whose delay overflows is refused",
    (topic) => dpub(topic, "9223372036855", "m"),
    "E_INVALID DPUB timeout 9223372036855 out of range 0-10000",
    undefined
  ),
  ...["bad!", "t".repeat(65), "t#ephemeral.b", "#ephemeral"].map((topic) =>
    refusal(
      `the topic ${topic} is refused`,
      () => pub(topic, "m"),
      `E_BAD_TOPIC PUB topic name "${topic}" is not valid`,
      undefined
    )
  ),
  refusal(
    "an MPUB to an invalid topic is refused with its code twice",
    () => mpub("bad!", ["m"]),
    'E_BAD_TOPIC E_BAD_TOPIC MPUB topic name "bad!" is not valid',
    undefined
  ),
  refusal(
    "an unknown command is refused",
    () => Buffer.from("NONSENSE\n"),
    "E_INVALID invalid command NONSENSE",
    undefined
  ),
  refusal(
    "RDY without SUB is refused",
    () => Buffer.from("RDY 1\n"),
    "E_INVALID cannot RDY in current state",
    undefined
  ),
  refusal(
    "FIN without SUB is refused",
    () => Buffer.from("FIN 0123456789abcdef\n"),
    "E_INVALID cannot FIN in current state",
    undefined
  ),
  refusal("CLS without SUB is refused", () => Buffer.from("CLS\n"), "E_INVALID cannot CLS in current state", undefined),
  {
    name: "a refused publish closes the connection, and nsqd reads none of the later ones",
    source: `${source} IOLoop`,
    script: (bench) =>
      Effect.gen(function* () {
        const topic = bench.name("t")
        yield* createTopic(bench, topic)
        const send = yield* publisher(bench)
        const answers = yield* send(pub(topic, "a"), pub(topic, ""), pub(topic, "b"), pub(topic, "c"))
        return [answers, yield* counts(bench, topic)]
      }),
    answer: [["OK", "E_BAD_MESSAGE PUB invalid message body size 0", closed, closed], { topic: 1 }]
  },
  {
    name: "a message of the largest size is stored",
    source: "https://nsq.io/components/nsqd.html --max-msg-size",
    script: (bench) =>
      publish(bench, pub(bench.name("t"), "x".repeat(1000)), mpub(bench.name("t"), ["x".repeat(1000)])),
    answer: ["OK", "OK"]
  },
  {
    name: "a publish makes its topic, without a channel",
    source,
    script: (bench) =>
      Effect.andThen(
        publish(bench, pub(bench.name("t"), "m"), dpub(bench.name("t"), 0, "m")),
        Effect.suspend(() => counts(bench, bench.name("t")))
      ),
    answer: { topic: 2 }
  }
]
