/** The changes of delivered messages: those of one turn of the event loop in one statement of each kind. */
import type { BrokerError } from "@requeue/core/port"
import type { SqlCommand, SqlMessage } from "@requeue/kit"
import type { Row, Session, Value } from "../client.ts"
import type { Add } from "../connect/gather.ts"
import type { Store } from "../connect/store.ts"
import { handles } from "../rows.ts"
import { type Context, errors, locked, stateOf } from "../toBrokerError.ts"

/**
 * When a changed message is due, in epoch milliseconds of the server; for a removed one, when the next one of its key is due.
 * `locked`: another transaction has it, and nothing happened. `lost`: the delivery no longer holds it.
 */
export type Outcome = number | "locked" | "lost"

/** Returns the error of a message that was not changed. */
export const problemOf = (outcome: Outcome | undefined, context: Context): BrokerError.BrokerError | undefined =>
  outcome === "locked" ? locked(context) : outcome === "lost" ? errors.leaseLost(context) : undefined

export interface Changes {
  readonly remove: Add<InLane, Outcome>
  /** Removes a message that may be removed already. */
  readonly removeAgain: Add<SqlMessage.Handle, Outcome>
  /** Returns a message to its place. `uncounted`: how many deliveries do not count. */
  readonly giveBack: Add<SqlMessage.Handle & { readonly uncounted: 0 | 1 }, Outcome>
  readonly replace: Add<SqlMessage.Handle & SqlCommand.Replacement, Outcome>
  /** Renews a lease. */
  readonly extend: Add<SqlMessage.Handle, Outcome>
  /** Removes a message that is still delayed. */
  readonly removeDelayed: Add<SqlMessage.Handle, Outcome>
}

/** A message with the queue whose next message of the key it holds up. */
interface InLane extends SqlMessage.Handle {
  readonly lane: string | undefined
}

/** Maximum number of messages in one statement. */
const maxChange = 500

/** The SQLSTATE of a lock that another transaction holds for too long. */
const lockNotAvailable = "55P03"

const outcomes = (rows: ReadonlyArray<Row>): ReadonlyArray<Outcome> =>
  rows.map(([at, isPresent]) => (at !== null ? Number(at) : isPresent === true ? "locked" : "lost"))

export const make = ({ gather, lanes, settings, statements }: Store): Changes => {
  const change = <I extends SqlMessage.Handle>(
    statement: string,
    values: (items: ReadonlyArray<I>) => ReadonlyArray<Value>
  ) =>
    gather<I, Outcome>(lanes.settle, maxChange, async (session: Session, items) => {
      const rows = await session.query(statement, [...handles(items), ...values(items)])
      return outcomes(rows)
    })
  return {
    remove: gather<InLane, Outcome>(lanes.settle, maxChange, async (session, items) => {
      if (items.some(({ lane }) => lane !== undefined)) {
        return outcomes(await session.query(statements.remove, handles(items)))
      }
      try {
        const rows = await session.query(statements.removeUnlocked, handles(items))
        const removed = new Set(rows.map(([seq]) => seq))
        return items.map(({ seq }) => (removed.has(seq) ? 0 : "lost"))
      } catch (cause) {
        if (stateOf(cause) !== lockNotAvailable) throw cause
        return outcomes(await session.query(statements.remove, handles(items)))
      }
    }),
    removeAgain: change(statements.removeAgain, () => []),
    giveBack: change(statements.giveBack, (items) => [items.map(({ uncounted }) => uncounted)]),
    replace: change(statements.replace, (items) => [
      items.map(({ queue }) => queue),
      items.map(({ delay }) => delay),
      items.map(({ metadata }) => metadata),
      items.map(({ place }) => place?.queue ?? null)
    ]),
    extend: change(statements.extend, () => [settings.lease]),
    removeDelayed: change(statements.removeDelayed, () => [])
  }
}
