/** A function on Lambda whose effects are in the database of a connection. */
import { MemoryBroker, MemoryTransaction } from "@requeue/adapter-memory"
import { type Broker, type Handler, Store, Transaction } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { assert, test } from "vitest"
import { failed, json, onLambda } from "./Mapping.ts"

/** Connects for a function. */
const connected = (layer: Layer.Layer<Broker.Broker, unknown>) =>
  Effect.gen(function* () {
    const context = Context.add(yield* Layer.build(layer), Scope.Scope, yield* Effect.scope)
    return { run: Effect.runPromiseWith(context) }
  })

test("a message that a transaction has done is not done again by another instance of the function", () =>
  onLambda(({ apply, context, event, lambda, put }) =>
    Effect.gen(function* () {
      const connection = yield* connected(Store.layer(MemoryBroker.layer(), MemoryBroker.layer()))
      const effects: Array<unknown> = []
      const handler = (message: Handler.Received<unknown>) =>
        MemoryTransaction.runEffect((transaction) =>
          Effect.andThen(
            Transaction.within(message, transaction),
            Effect.sync(() => transaction.onCommit(() => effects.push(message.body)))
          )
        )
      const [one, other] = [yield* lambda({ connection }, handler), yield* lambda({ connection }, handler)]
      yield* put(...json(1, 2))
      const received = yield* event()
      assert.deepStrictEqual(failed(yield* one(received, context())), [])
      const response = yield* other(received, context())
      assert.deepStrictEqual(failed(response), [])
      assert.deepStrictEqual(effects, [1, 2])
      yield* apply(received, response)
    })
  ))

test("a message whose transaction is rolled back is redelivered, although its handler succeeds", () =>
  onLambda(({ context, event, lambda, put }) =>
    Effect.gen(function* () {
      const connection = yield* connected(Store.layer(MemoryBroker.layer(), MemoryBroker.layer()))
      const invoke = yield* lambda({ connection }, (message) =>
        Effect.gen(function* () {
          const transaction = MemoryTransaction.make()
          yield* Transaction.within(message, transaction)
          transaction.rollback()
        })
      )
      yield* put(...json(1))
      assert.strictEqual(failed(yield* invoke(yield* event(), context())).length, 1)
    })
  ))

test("the connection must have a store", () =>
  onLambda(({ context, event, lambda, put }) =>
    Effect.gen(function* () {
      const connection = yield* connected(MemoryBroker.layer())
      const invoke = yield* lambda({ connection }, () => {})
      yield* put(...json(1))
      const error = yield* Effect.flip(invoke(yield* event(), context()))
      assert.match(error.message, /^connection .*the connection has no store/)
    })
  ))
