/** Handlers that work in transactions, and the books of their effects. */
import { Broker, type Handler, Store, Transaction } from "@requeue/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import type { Transaction as Begun } from "../Harness.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Port from "../Port.ts"

/** Makes a case for brokers with transactions. */
export const test = (name: string, body: Case.Body): Case.Case =>
  Case.inGroup("transactions")(name, body, Needs.transactions)

/** The queue that handlers send to. */
export const sentTo = (lab: Lab) => `${lab.queue}.sent`

/** The committed rows of this case. */
export const rowsOf = (lab: Lab) =>
  Effect.map(lab.harness.transactions!.rows, (rows) =>
    rows.flatMap((row) => (row.startsWith(`${lab.queue} `) ? [row.slice(lab.queue.length + 1)] : [])).toSorted()
  )

/** Begins a transaction, and returns what a handler does in it. */
export const begin = (lab: Lab): Effect.Effect<Work, unknown, Scope.Scope> =>
  Effect.map(lab.harness.transactions!.begin, (begun) => ({
    ...begun,
    write: (row) => begun.write(`${lab.queue} ${row}`),
    send: (id) => Effect.flatMap(lab.producer(sentTo(lab)), (producer) => producer.within(begun.value).send(id, { id }))
  }))

/** An open transaction, and what a handler does in it. */
export interface Work extends Begun {
  /** Sends a message with this id and body in the transaction. */
  readonly send: (id: string) => Effect.Effect<unknown, unknown>
}

/** Returns the broker of the case in another namespace of its store, without a relay. */
export const neighbor = ({ broker, queue }: Lab): Effect.Effect<Broker.Service, unknown, Scope.Scope> => {
  const [beside, store] = [broker, broker.store!].map((each) => Layer.succeed(Broker.Broker, each))
  const layer = Store.layer(beside!, store!, { storeNamespace: queue.replaceAll(/\W/g, "-").slice(-64) })
  return Effect.map(Layer.build(layer), (context) => Context.get(context, Broker.Broker))
}

/** Acks the message, writes a row and sends a message, in one transaction that stays open. */
export const all = (work: Work, message: Handler.Received<unknown>) =>
  Effect.gen(function* () {
    yield* Transaction.within(message, work.value)
    yield* work.write(message.id)
    yield* work.send(message.id)
  })

/** Runs a handler in a transaction of its own. The end of the handler rolls back what it has not committed. */
export const handler =
  (lab: Lab, body: (work: Work, message: Handler.Received<unknown>) => Effect.Effect<unknown, unknown>) =>
  (message: Handler.Received<unknown>) =>
    Effect.scoped(Effect.flatMap(begin(lab), (work) => body(work, message)))

/** Checks that these messages are done: each wrote one row and sent one message, and its queue is empty. */
export const checkDone = (lab: Lab, ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* lab.untilEmpty
    yield* lab.quiet()
    yield* lab.untilEmpty
    Check.equal("rows", yield* rowsOf(lab), ids.toSorted())
    const sent = yield* Port.oldest(lab.broker, sentTo(lab), ids.length + 1)
    Check.equal("messages sent", sent.map(({ metadata }) => metadata.id).toSorted(), ids.toSorted())
    yield* lab.untilEvents("Succeeded", ids.length)
    const succeeded = lab.eventsOf("Succeeded")
    Check.equal("successes", succeeded.map(({ id }) => id).toSorted(), ids.toSorted())
    Check.isTrue(
      "all in transactions",
      succeeded.every(({ inTransaction }) => inTransaction === true),
      succeeded
    )
  })

/** Checks how often handlers ran and failed. */
export const checkRuns = (lab: Lab, runs: ReadonlyArray<readonly [string, number]>, failures: number) => {
  Check.equal(
    "runs",
    lab.runs.map(({ attempts, id }) => [id, attempts]),
    runs
  )
  Check.equal("failed attempts", lab.eventsOf("AttemptFailed").length, failures)
}

/** The failure of a handler. */
export const no = Effect.fail(new Error("no"))
