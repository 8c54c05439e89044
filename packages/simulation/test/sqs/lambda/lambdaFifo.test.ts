/** FIFO queues on Lambda. */
import { Backoff, Failure } from "@requeue/core"
import * as Effect from "effect/Effect"
import { assert, test } from "vitest"
import { bodiesOf, type Function, json, onLambda } from "./Mapping.ts"

const onFifo = (program: Parameters<typeof onLambda>[0]) => onLambda(program, { queue: "orders.fifo" })

const bodies = ({ letters, messages }: Function) => messages(letters).map(({ content }) => content.body)

test.each(["single messages", "batches"])("a message that comes again takes those behind it along: %s", (kind) =>
  onFifo(({ apply, batchLambda, context, event, lambda, put, round }) =>
    Effect.gen(function* () {
      const runs: Array<string> = []
      const handle = (message: { readonly body: string; readonly attempts: number }): boolean => {
        runs.push(`${message.body} ${message.attempts}`)
        return message.body !== "a2" || message.attempts > 1
      }
      const options = { concurrency: 3, retry: { backoff: Backoff.constant("1 second") } }
      const invoke =
        kind === "batches"
          ? yield* batchLambda<string>(options, ({ messages }) => {
              for (const message of messages) if (!handle(message)) message.retry()
            })
          : yield* lambda<string>(options, (message) => (handle(message) ? Effect.void : Effect.fail(new Error("no"))))
      yield* put(...json("a1", "a2", "b1", "a3", "b2", "a4"))
      const received = yield* event()
      assert.lengthOf(received.Records, 6)
      const response = yield* invoke(received, context())
      assert.deepStrictEqual(bodiesOf(received, response), ["a2", "a3", "a4"])
      // A batch handler sees what is behind it in its batch, and a handler of single messages does not.
      const seen = kind === "batches" ? ["a3 1", "a4 1"] : []
      assert.deepStrictEqual(runs.toSorted(), ["a1 1", "a2 1", ...seen, "b1 1", "b2 1"])
      yield* apply(received, response)
      assert.lengthOf((yield* event()).Records, 0)
      runs.length = 0
      while (runs.length < 3) if ((yield* round(invoke)) === 0) yield* Effect.sleep(50)
      // That a3 and a4 were received before and not run is no attempt of theirs.
      assert.deepStrictEqual(runs, kind === "batches" ? ["a2 2", "a3 2", "a4 2"] : ["a2 2", "a3 1", "a4 1"])
      assert.lengthOf((yield* event()).Records, 0)
    })
  )
)

test("ten of one group, of which two fit into an invocation, each of another instance: no letter of any that was not run", () =>
  onFifo((world) =>
    Effect.gen(function* () {
      const { lambda, put, round } = world
      const names = Array.from({ length: 10 }, (_, index) => `a${index}`)
      yield* put(...json(...names))
      const seen = new Set<string>()
      while (seen.size < names.length) {
        let begun = 0
        const invoke = yield* lambda<string>({ retry: { maxRetries: 0 }, reserve: 10_000 }, ({ body }) => {
          if (++begun > 2) return Effect.never
          seen.add(body)
          return Effect.void
        })
        if ((yield* round(invoke, 12_000)) === 0) yield* Effect.sleep(50)
      }
      assert.deepStrictEqual([...seen], names)
      assert.deepStrictEqual(bodies(world), [])
    })
  ))

test("messages that were received too often, by another instance: none is given up before it is run", () =>
  onFifo((world) =>
    Effect.gen(function* () {
      const { ask, event, lambda, put, queue, round } = world
      const runs: Array<string> = []
      yield* put(...json("a1", "a2", "a3"))
      for (let time = 0; time < 4; time++) {
        for (const { receiptHandle } of (yield* event()).Records.toReversed()) {
          const Entries = [{ Id: "0", ReceiptHandle: receiptHandle, VisibilityTimeout: 0 }]
          yield* ask("ChangeMessageVisibilityBatch", queue, { Entries })
        }
      }
      const retry = { maxRetries: 3, maxDeliveries: 4 }
      const invoke = yield* lambda<string>({ retry }, ({ body }) => void runs.push(body))
      while (runs.length < 3) yield* round(invoke)
      assert.deepStrictEqual(runs, ["a1", "a2", "a3"])
      assert.deepStrictEqual(bodies(world), [])
    })
  ))

test("a dead letter goes to its group's dead letters, and the next one is run", () =>
  onFifo(({ deadLetters, lambda, letters, messages, put, round }) =>
    Effect.gen(function* () {
      const runs: Array<string> = []
      const invoke = yield* lambda<string>({}, ({ body }) => {
        runs.push(body)
        return body === "a1" ? Effect.fail(new Failure.PermanentError({ message: "never" })) : Effect.void
      })
      yield* put(...json("a1", "a2"))
      while (runs.length < 2) yield* round(invoke)
      assert.deepStrictEqual(runs, ["a1", "a2"])
      const found = messages(letters).map(({ content }) => [content.body, content.group])
      assert.deepStrictEqual(found, [['"a1"', "a"]])
      assert.strictEqual(deadLetters()[0]?.deadLetter?.reason, "permanent")
    })
  ))

test("many groups and failures: each group is done in its order, and nothing is missing", () =>
  onFifo(({ lambda, put, round }) =>
    Effect.gen(function* () {
      const sent = Array.from({ length: 60 }, (_, index) => `${"abcd"[(index * 7) % 4]}${index}`)
      const [done, begun]: [Array<string>, Array<string>] = [[], []]
      const invoke = yield* lambda<string>({ concurrency: 4 }, ({ attempts, body }) =>
        Effect.gen(function* () {
          begun.push(body)
          yield* Effect.sleep(1 + (Number(body.slice(1)) % 3))
          if (attempts === 1 && Number(body.slice(1)) % 5 === 0) return yield* Effect.fail(new Error("no"))
          done.push(body)
        })
      )
      yield* put(...json(...sent))
      while (done.length < sent.length) if ((yield* round(invoke)) === 0) yield* Effect.sleep(50)
      const ofGroup = (all: ReadonlyArray<string>, group: string) => all.filter((body) => body.startsWith(group))
      for (const group of "abcd") {
        assert.deepStrictEqual(ofGroup(done, group), ofGroup(sent, group))
        // None is begun while one before it is not done: a second run comes right after the first.
        assert.deepStrictEqual([...new Set(ofGroup(begun, group))], ofGroup(sent, group))
      }
    })
  ))
