/** Messages of foreign producers whose body is not what their attributes say. */
import { type Case, Check, Harness, Lab } from "@requeue/conformance"
import * as Effect from "effect/Effect"

/** A message whose encoding is wrong: no handler sees it, and its dead letter has its text. */
const undecodable = (encoding: string, text: string): Case.Case => ({
  name: `a body that is marked ${encoding} and is not: its dead letter has the text, and no handler runs`,
  group: "decoding",
  run: Effect.gen(function* () {
    const lab = yield* Lab.make("decoding")
    const { publishRaw } = yield* Harness.Harness
    yield* lab.start()
    yield* publishRaw(lab.queue, new TextEncoder().encode(text), { "requeue-encoding": encoding })
    const [letter] = yield* lab.untilDeadLetters(1)
    Check.equal("text", Buffer.from(letter!.body).toString(), text)
    Check.equal("reason", letter!.metadata.deadLetter?.reason, "undecodable")
    Check.equal("runs", lab.runs.length, 0)
  })
})

export const cases: ReadonlyArray<Case.Case> = [
  undecodable("base64", "bm90IGJhc2U2NA=!"),
  undecodable("empty", "not empty")
]
