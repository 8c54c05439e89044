/**
 * An adapter with a store next to it: its transactions are those of another broker, which has an inbox and an outbox.
 *
 * When to use: to run the cases of transactions against a broker that has none, or against the inbox of one that has.
 */
import { Broker, Relay, Store } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Case } from "./Case.ts"
import { cases as all } from "./Cases.ts"
import { Harness, type Transactions as TransactionsOf } from "./Harness.ts"

/** The transactions of a store. */
export class Transactions extends Context.Service<Transactions, TransactionsOf>()(
  "@requeue/conformance/Transactions"
) {}

/** The part of a memory transaction that a harness uses. */
interface MemoryTransaction {
  readonly onCommit: (effect: () => void) => void
  readonly commit: () => void
  readonly rollback: () => void
}

/** Returns the transactions of one memory broker. `make` begins one. */
export const memoryTransactions = (make: () => MemoryTransaction): TransactionsOf => {
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

/** Makes a store of a memory broker. `make` begins a transaction. */
export const inMemory = <E>(
  broker: Layer.Layer<Broker.Broker, E>,
  make: () => MemoryTransaction
): Layer.Layer<Broker.Broker | Transactions, E> =>
  Layer.merge(
    broker,
    Layer.effect(
      Transactions,
      Effect.sync(() => memoryTransactions(make))
    )
  )

/** Makes a store of an adapter with transactions and its harness. */
export const tested = <E>(
  adapter: Layer.Layer<Broker.Broker | Harness, E>
): Layer.Layer<Broker.Broker | Transactions, E> =>
  Layer.effectContext(
    Effect.map(Layer.build(adapter), (context) =>
      Context.make(Broker.Broker, Context.get(context, Broker.Broker)).pipe(
        Context.add(Transactions, Context.get(context, Harness).transactions!)
      )
    )
  )

/** Puts a store next to an adapter and its harness, and relays its outbox. */
export const layer = <E, E2>(
  adapter: Layer.Layer<Broker.Broker | Harness, E>,
  store: Layer.Layer<Broker.Broker | Transactions, E2>
): Layer.Layer<Broker.Broker | Harness, unknown> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const given = yield* Layer.build(adapter)
      const harness = Context.get(given, Harness)
      const database = yield* Layer.build(store)
      const beside = (broker: Broker.Service) =>
        Effect.map(
          Layer.build(Store.layer(Layer.succeed(Broker.Broker, broker), Layer.succeedContext(database))),
          (context) => Context.get(context, Broker.Broker)
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
            transactions: Context.get(database, Transactions)
          })
        )
      )
    })
  )

/** The cases whose outcome depends on the store. */
export const cases: ReadonlyArray<Case> = all.filter(({ group }) => ["transactions", "inbox", "relay"].includes(group))
