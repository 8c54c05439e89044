/** The state of connections that are counted: why none is open. */
import { BrokerError } from "@requeue/core/port"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { assert, test } from "vitest"
import { NsqOptions } from "../src/index.ts"
import * as Connection from "../src/internal/connect/connection.ts"
import * as ConnectionCount from "../src/internal/connect/connectionCount.ts"
import { toBrokerError } from "../src/internal/toBrokerError.ts"

const settings = { ...Result.getOrThrow(NsqOptions.decode({})), reconnectFirst: 1, reconnectMax: 1 }

const refusal = (text: string): BrokerError.BrokerError =>
  toBrokerError(new Error(text), { operation: "connect", node: "127.0.0.1:4150" }, "ConnectionFailed")

test("a connection that cannot be made is down because of the last failure, until one is open", async () => {
  let time = 0
  const count = ConnectionCount.make(() => ++time)
  const gone = Deferred.makeUnsafe<void>()
  const connection = { isOpen: () => true, heard: () => 0, destroy: () => {} }
  const states: Array<unknown> = []
  const answers = [refusal("E_AUTH_FAILED"), refusal("ECONNREFUSED"), undefined, refusal("ECONNRESET")]
  const connect = Effect.suspend(() => {
    states.push(count.state())
    if (answers.length === 0) return Effect.never
    const error = answers.shift()
    // The driver's connection has more, which counting does not need.
    return error === undefined ? Effect.succeed({ connection, gone } as unknown as Connection.Live) : Effect.fail(error)
  })
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const kept = yield* Connection.make(settings, count, { connect, annotations: {} })
        yield* kept.live
        states.push(count.state())
        Deferred.doneUnsafe(gone, Exit.void)
        while (states.length < 6) yield* Effect.sleep(1)
      })
    )
  )
  assert.deepStrictEqual(states, [
    { state: "down", since: 1 },
    { state: "down", since: 1, because: refusal("E_AUTH_FAILED").message },
    { state: "down", since: 1, because: refusal("ECONNREFUSED").message },
    { state: "up", since: 2 },
    { state: "down", since: 3 },
    { state: "down", since: 3, because: refusal("ECONNRESET").message }
  ])
})

test("a failure beside an open connection is no reason", () => {
  const count = ConnectionCount.make(() => 0)
  count.changed({})
  count.failed(refusal("ECONNREFUSED"))
  assert.deepStrictEqual(count.state(), { state: "up", since: 0 })
  count.changed(undefined)
  assert.deepStrictEqual(count.state(), { state: "down", since: 0 })
})
