/** Async contexts: a tenant or a transaction of one request reaches no function that runs for another request. */
import { Backoff, Codec, type Handler, QueueDefinition, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import * as AsyncContext from "../internal/asyncContext.ts"
import { bury } from "./redriving.ts"

const test = Case.inGroup("contexts")

/** Records in which contexts functions run. Each function leaves another context behind. */
const witness = () => {
  const seen = new Map<string, Set<string>>()
  const note = (what: string): void => {
    seen.set(what, (seen.get(what) ?? new Set()).add(AsyncContext.current()))
  }
  const see = (what: string): void => {
    note(what)
    AsyncContext.enter(`after ${what}`)
  }
  return {
    /** Records only, for functions that run several times in one of our calls. */
    note,
    see,
    /** Fails unless exactly these functions ran, each in this context alone. */
    check: (context: string, ...functions: ReadonlyArray<string>) => {
      const told = Object.fromEntries([...seen].map(([what, contexts]) => [what, [...contexts].toSorted()]))
      Check.equal("contexts", told, Object.fromEntries(functions.map((what) => [what, [context]])))
    }
  }
}

const kinds = ["plain", "promise", "effect"] as const

export const cases: ReadonlyArray<Case.Case> = [
  test("a handler runs in the async context of its consumer, and not in that of a send or of another message", function* (lab) {
    const { check, see } = witness()
    const handle: Handler.MessageHandler<string> = ({ attempts, body }) => {
      const run = () => see(body)
      // A retry arrives by a timer, by another connection or by another poll.
      const end = () => {
        if (attempts === 1) throw new Error("again")
      }
      if (body === "effect") {
        return Effect.sync(run).pipe(Effect.andThen(Effect.yieldNow), Effect.andThen(Effect.sync(end)))
      }
      run()
      return body === "plain" ? end() : Promise.resolve().then(end)
    }
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(lab.unit) })
    const producer = yield* AsyncContext.within("client", lab.producer<string>())
    yield* AsyncContext.within("consumer", lab.start<string>({ retry }, handle))
    for (const body of [...kinds, ...kinds]) yield* AsyncContext.within(`request of ${body}`, producer.send(body))
    yield* lab.untilRuns(4 * kinds.length)
    check("consumer", ...kinds)
  }),
  test("hooks, codecs, classifiers, redactors and listeners run in the async context of their consumer", function* (lab) {
    const { check, see } = witness()
    const codec: Codec.Codec<string> = {
      ...Codec.json,
      decode: (bytes) => {
        see("codec")
        return Codec.json.decode(bytes, {})
      }
    }
    const retry = RetryPolicy.make({
      maxRetries: 1,
      backoff: Backoff.constant(lab.unit),
      classify: {
        with: () => {
          see("classifier")
          return undefined
        }
      },
      deadLetter: {
        redact: (error) => {
          see("redactor")
          return error
        }
      }
    })
    const onEvent = () => see("hook")
    const held: Array<Handler.Received<string>> = []
    const handle: Handler.MessageHandler<string> = (message, { signal }) => {
      if (message.body === "held") held.push(message)
      signal.addEventListener("abort", () => see("listener"))
      return Effect.runPromise(Effect.never)
    }
    const options = { retry, onEvent, handlerTimeout: lab.unit }
    const queue = QueueDefinition.make(lab.queue, { codec })
    const producer = yield* AsyncContext.within("client", lab.producer(queue))
    yield* AsyncContext.within("consumer", lab.start(options, handle, queue))
    yield* AsyncContext.within("request", producer.send("late"))
    yield* lab.untilDeadLetters(1)
    yield* AsyncContext.within("another request", producer.send("held"))
    yield* lab.until("the message", () => held.length > 0)
    // A call on a message settles it, wherever the call is made.
    yield* AsyncContext.within(
      "elsewhere",
      Effect.sync(() => held[0]!.ack())
    )
    yield* lab.untilEvents("Succeeded", 1)
    check("consumer", "hook", "codec", "listener", "classifier", "redactor")
  }),
  test("the properties of a thrown error are read in the async context of its consumer", function* (lab) {
    const { check, note } = witness()
    /** An error with getters, as some libraries have. */
    const failed = (): Error => {
      const error = new Error("again")
      for (const name of ["message", "cause", "permanent", "retryAfter"]) {
        Object.defineProperty(error, name, { get: () => note(name) })
      }
      return error
    }
    const handle: Handler.MessageHandler<string> = (message) => {
      if (message.body === "effect") return Effect.fail(failed())
      if (message.body === "promise") return Promise.reject(failed())
      if (message.body === "plain") throw failed()
      return message.fail(failed())
    }
    const retry = RetryPolicy.make({ maxRetries: 1, backoff: Backoff.constant(lab.unit) })
    const codec: Codec.Codec<string> = {
      ...Codec.json,
      decode: (bytes, headers) => {
        const body = Codec.json.decode(bytes, headers)
        if (body === "undecodable") throw failed()
        return body
      }
    }
    const queue = QueueDefinition.make(lab.queue, { codec })
    const producer = yield* AsyncContext.within("client", lab.producer(queue))
    yield* AsyncContext.within("consumer", lab.start({ retry }, handle, queue))
    const bodies = [...kinds, "fail", "undecodable"]
    for (const body of bodies) yield* AsyncContext.within(`request of ${body}`, producer.send(body))
    yield* lab.untilDeadLetters(bodies.length)
    check("consumer", "message", "cause", "permanent", "retryAfter")
  }),
  test("a codec encodes in the async context of its producer, and not in that of a send", function* (lab) {
    const { check, see } = witness()
    const encode = (body: string) => {
      see("encode")
      return Codec.json.encode(body)
    }
    const sealing: Codec.Codec<string> = {
      ...Codec.json,
      encode,
      encodeMessage: async (body, given) => {
        see("seal")
        return { ...given, body: Codec.json.encode(body) }
      }
    }
    for (const codec of [{ ...Codec.json, encode }, sealing]) {
      const queue = QueueDefinition.make(lab.queue, { codec })
      const { send, sendBatch } = yield* AsyncContext.within("client", lab.producer(queue))
      for (const name of ["one", "two"]) {
        yield* AsyncContext.within(name, send(name))
        yield* AsyncContext.within(name, sendBatch([{ body: name }, { body: name }]))
      }
    }
    check("client", "encode", "seal")
  }),
  test("filters, audits and progress of dead letters run in the async context of their call", function* (lab) {
    const { check, see } = witness()
    yield* bury(lab, ["a", "b"])
    const letters = yield* AsyncContext.within("client", lab.letters)
    const filter = () => {
      see("filter")
      return true
    }
    const seen = { filter, onProgress: () => see("progress") }
    yield* AsyncContext.within("operator", letters.list(seen))
    yield* AsyncContext.within("operator", letters.redrive({ ...seen, audit: () => see("audit"), limit: 1 }))
    yield* AsyncContext.within("operator", letters.purge({ filter, audit: () => see("audit") }))
    check("operator", "filter", "progress", "audit")
  })
]
