/**
 * An adapter with a store beside it: its transactions are those of another broker, which has an inbox and an outbox.
 *
 * When to use: to run the cases of transactions against a broker that has none, or against the inbox of one that has.
 */
import { Broker, Relay, Store } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Harness, type Transactions } from "./Harness.ts"

/** What of a memory transaction a harness needs. */
interface MemoryTransaction {
  readonly onCommit: (effect: () => void) => void
  readonly commit: () => void
  readonly rollback: () => void
}

/** Returns the transactions of one memory broker. `make` begins one. */
export const inMemory = (make: () => MemoryTransaction) => (): Transactions => {
  const rows: Array<string> = []
  const rollBack = ({ rollback }: MemoryTransaction) => Effect.sync(rollback)
  return {
    rows: Effect.sync(() => [...rows]),
    begin: Effect.map(Effect.acquireRelease(Effect.sync(make), rollBack), (value) => ({
      value,
      write: (row) => Effect.sync(() => value.onCommit(() => rows.push(row))),
      commit: Effect.try({ try: value.commit, catch: (error) => error }),
      rollback: rollBack(value)
    }))
  }
}

/** Puts a store beside an adapter and its harness, and relays its outbox. `transactions` are those of the store. */
export const layer = <E, E2>(
  tested: Layer.Layer<Broker.Broker | Harness, E>,
  store: Layer.Layer<Broker.Broker, E2>,
  transactions: () => Transactions
): Layer.Layer<Broker.Broker | Harness, unknown> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const given = yield* Layer.build(tested)
      const harness = Context.get(given, Harness)
      const database = Layer.succeedContext(yield* Layer.build(store))
      const beside = (broker: Broker.Service) =>
        Effect.map(Layer.build(Store.layer(Layer.succeed(Broker.Broker, broker), database)), (context) =>
          Context.get(context, Broker.Broker)
        )
      const broker = yield* beside(Context.get(given, Broker.Broker))
      yield* Effect.provideService(Relay.start(), Broker.Broker, broker)
      return Context.make(Broker.Broker, broker).pipe(
        Context.add(
          Harness,
          Harness.of({
            ...harness,
            name: `${harness.name} with a store`,
            another: harness.another && Effect.flatMap(harness.another, beside),
            crash: harness.crash && Effect.flatMap(harness.crash, beside),
            powerCut: harness.powerCut && Effect.flatMap(harness.powerCut, beside),
            transactions: transactions()
          })
        )
      )
    })
  )
