/** Claims of a browser. A claim without an answer may hold messages that were not shown: its token finds them. */
import { Random } from "@requeue/core/port"
import { SqlMessage } from "@requeue/kit"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Session } from "../client.ts"
import type { Store } from "../connect/store.ts"
import { maxToken } from "../connect/token.ts"
import { isLeased } from "../rows.ts"

/** Claims up to `limit` messages. `isWhole`: no other message is ready. */
type Claim = (
  session: Session,
  limit: number
) => Promise<{ readonly rows: ReadonlyArray<SqlMessage.Row>; readonly isWhole: boolean }>

/** Before all messages. */
export const beginning = { at: 0, seq: 0 }

const blocksOf = (column: unknown): number | undefined => (column === null ? undefined : Number(column))

/**
 * Returns a function that claims messages of a queue. After a claim without an answer, the next claim or the end of the scope returns
 * that claim's messages to the queue.
 */
export const open = (
  queue: string,
  { read, settings, statements, wake }: Store
): Effect.Effect<Claim, never, Scope.Scope> =>
  Effect.gen(function* () {
    const random = yield* Random.source
    /** The token of a claim without an answer. */
    let unanswered: number | undefined

    const giveBack = async (session: Session) => {
      if (unanswered === undefined) return
      const rows = await session.query(statements.unclaim, [queue, unanswered])
      unanswered = undefined
      if (rows.length > 0) wake(queue, Math.min(...rows.map(([at]) => Number(at))))
    }
    yield* Effect.addFinalizer(() =>
      // After an error, the leases end.
      unanswered === undefined ? Effect.void : Effect.ignore(read({ operation: "browse", queue }, giveBack))
    )

    /** Claims messages after a position, until there are some, or none is due. Others may wait for earlier ones of their keys. */
    const claimed = async (
      session: Session,
      limit: number,
      { at, seq }: SqlMessage.Position
    ): Promise<ReadonlyArray<SqlMessage.Row>> => {
      const token = Math.floor(Random.draw(random) * maxToken)
      unanswered = token
      const columns = await session.query(statements.claimAs, [queue, at, seq, limit, settings.lease, 0, token])
      unanswered = undefined
      const due = columns.map((row) => ({ ...SqlMessage.fromColumns(row), blocks: blocksOf(row.at(-1)) }))
      const rows = due.filter(isLeased)
      return rows.length > 0 || due.length < limit ? rows : claimed(session, limit, due.at(-1)!)
    }

    return async (session, limit) => {
      await giveBack(session)
      const [counts] = await session.query(statements.count, [queue])
      const rows = await claimed(session, limit, beginning)
      return { rows, isWhole: Number(counts?.[0]) <= rows.length }
    }
  })
